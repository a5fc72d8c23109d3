/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps `cgroup` (makes and removes it) and `limits` (sets the limits, ends the processes in
 * it).
 *
 * A run uses an existing place (src/sys/cgroup/cgroup.h) if there is one: this costs little, one
 * write ends the sandbox, and the kernel counts its usage. The launcher asks systemd for a scope
 * only for a limit that nothing else can hold: memory and processors. RLIMIT_NPROC can hold the
 * number of processes, because it counts per user namespace (Linux 5.14). The program sbx-scope
 * asks for the scope: sbx-run is static and speaks no D-Bus.
 */
#include "launcher/resources/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/cleanup/cgroup_gc.h"
#include "launcher/plan/plan_limits.h"
#include "launcher/process/exec_failed.h"
#include "sys/process/proc.h"

#define SCOPE_TIMEOUT_MS 15000
#define KILL_TIMEOUT_MS	 5000

static const struct sbx_cgroup_limits broker_limits = { .memory_bytes = UINT64_C(512) << 20,
							.pids = 16 };

void sbx_cgroup_run_init(struct sbx_cgroup_run *c)
{
	*c = (struct sbx_cgroup_run){ .dirs = SBX_CGROUP_INIT, .usage = SBX_CGROUP_USAGE_UNKNOWN };
}

void sbx_cgroup_run_fini(struct sbx_cgroup_run *c)
{
	sbx_cgroup_remove(&c->dirs);
}

bool sbx_cgroup_expected(const struct sbx_facts *f)
{
	return f->cgroup_place.source != SBX_CGROUP_NONE && f->cgroup_place.controllers != 0;
}

/* --- the scope --- */

struct scope_child {
	char *path;
	char **argv;
	int out;
};

static _Noreturn void exec_scope(const struct scope_child *c)
{
	const int fds[] = { c->out, 2 }, numbers[] = { 1, 2 };
	sigset_t none;
	int r;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	r = sbx_proc_arrange_fds(fds, numbers, SBX_N_ELEMENTS(fds));
	if (r == 0)
		execve(c->path, c->argv, environ);
	sbx_exec_failed(c->path, r < 0 ? -r : errno, "");
}

/* Reads one line from sbx-scope, within SCOPE_TIMEOUT_MS. Returns its length without the newline,
 * or -errno. */
static ssize_t read_line(int fd, char *buf, size_t n)
{
	uint64_t end = sbx_clock_monotonic_us() + SCOPE_TIMEOUT_MS * UINT64_C(1000);
	size_t done = 0;

	while (done < n) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = sbx_clock_monotonic_us();
		ssize_t r;

		if (now >= end)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((end - now) / 1000) + 1) <= 0)
			continue;
		r = read(fd, buf + done, n - done);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r == 0)
			return done > 1 && buf[done - 1] == '\n' ? (ssize_t)done - 1 : -ENODATA;
		if (r > 0)
			done += (size_t)r;
	}
	return -EMSGSIZE;
}

static int ask_scope(const struct sbx_plan *p, struct sbx_cgroup_place *place)
{
	const struct sbx_facts *f = p->facts;
	char name[64], pid[16], description[64], path[SBX_CGROUP_PATH_MAX], manager[16],
		slice[] = SBX_CGROUP_SLICE;
	char *argv[] = { f->scope_helper, manager, name, slice, pid, description, NULL };
	struct scope_child c = { .path = f->scope_helper, .argv = argv };
	SBX_AUTO_CLOSE int read_end = -1, write_end = -1;
	int status = -1, e = sbx_fd_pipe(&read_end, &write_end);
	pid_t child;
	ssize_t n;

	if (e < 0)
		return e;
	sbx_text_fit(manager, sizeof(manager), "%s", f->caller_uid == 0 ? "--system" : "--user");
	sbx_text_fit(name, sizeof(name), "sbx-%s.scope", p->id);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	sbx_text_cut(description, sizeof(description), "sbx sandbox %s", p->id);
	c.out = write_end;
	child = sbx_proc_clone(0, NULL, NULL);
	if (child == 0)
		exec_scope(&c);
	if (child < 0)
		return child;
	write_end = sbx_fd_close(write_end);
	n = read_line(read_end, path, sizeof(path) - 1);
	if (n < 0)
		kill(child, SIGKILL); /* our child, not yet reaped */
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (n < 0)
		return (int)n;
	path[n] = '\0';
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return -EPERM;
	return sbx_cgroup_place_scope(&f->cgroup, path, place);
}

/* --- the step `cgroup` --- */

/* For attach cgroup, which needs no controller. */
static void find_bare(struct sbx_cgroup_place *place)
{
	struct sbx_cgroup_facts facts;

	if (sbx_cgroup_facts_read(&facts, true) == 0)
		sbx_cgroup_find(&facts, true, place);
}

/* The controllers of the whole mounted hierarchy. */
static uint32_t mount_controllers(const struct sbx_facts *f)
{
	SBX_AUTO_CLOSE int fd =
		f->cgroup.mount[0] ? open(f->cgroup.mount, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	return fd < 0 ? 0 : sbx_cgroup_controllers(fd, "cgroup.controllers");
}

int sbx_cgroup_begin(struct sbx_cgroup_run *c, const struct sbx_plan *p, struct sbx_err *err)
{
	const struct sbx_facts *f = p->facts;
	struct sbx_cgroup_place place = f->cgroup_place, own;
	bool attach = p->attach.on;
	int e;

	if (attach && place.source == SBX_CGROUP_NONE)
		find_bare(&place);
	own = place;
	if (sbx_limits_want_scope(f, &p->profile->limits) ||
	    (attach && place.source == SBX_CGROUP_NONE && f->scope_helper)) {
		if (ask_scope(p, &place) < 0)
			place = own; /* its way out is the same: a scope from elsewhere */
	}
	if (attach && place.source == SBX_CGROUP_NONE) {
		sbx_err_set(err, "network.attach: cgroup needs a cgroup of its own: %s",
			    sbx_limits_way_out(f, mount_controllers(f)));
		return -EOPNOTSUPP;
	}
	if (!attach && (place.source == SBX_CGROUP_NONE || !place.controllers))
		return 0;
	c->source = place.source;
	c->shared = place.shared;
	sbx_cgroup_sweep(place.path, sbx_cgroup_gc_release());
	e = sbx_cgroup_make(&place, p->id, &c->dirs, err);
	if (e == 0 && attach)
		e = sbx_cgroup_add_run(&c->dirs);
	if (e == 0)
		sbx_text_fit(c->path, sizeof(c->path), "%s/%s", place.path, c->dirs.name);
	return e;
}

/* --- the step `limits` --- */

static int apply_limits(struct sbx_cgroup_run *c, const struct sbx_limit_values *l,
			struct sbx_err *err)
{
	const struct sbx_cgroup_limits limits = {
		.memory_bytes = l->memory_bytes,
		.cpus_milli = l->cpus_milli,
		.pids = l->pids,
		.io_weight = l->io_weight,
	};
	struct sbx_cgroup_write v[SBX_CGROUP_WRITES_MAX];
	size_t n;
	int e;

	n = sbx_cgroup_plan(&limits, c->dirs.controllers, v);
	e = sbx_cgroup_apply(c->dirs.command_fd, v, n, err);
	for (size_t i = 0; i < n && e == 0; i++)
		if (v[i].done)
			c->limited |= SBX_CGROUP_BIT(v[i].controller);
	if (e == 0) {
		n = sbx_cgroup_plan(&broker_limits, c->dirs.controllers, v);
		e = sbx_cgroup_apply(c->dirs.broker_fd, v, n, err);
	}
	return e;
}

/* The reason why the cgroup, or the lack of one, does not hold a limit, and what to do about it. */
static const char *why_not(const struct sbx_cgroup_run *c, const struct sbx_facts *f)
{
	if (c->dirs.command_fd < 0)
		return sbx_limits_way_out(f, mount_controllers(f));
	return c->shared ? "other processes are in our cgroup, which can then give no controller "
			   "to a sandbox's: start it "
			   "alone in a scope (systemd-run --scope, with --user for a user), or the "
			   "service with DelegateSubgroup=" :
			   "the cgroup lacks its controller: the unit above must delegate it "
			   "(Delegate=cpu cpuset io memory "
			   "pids, in a user's case of user@.service)";
}

/* The name of the @i-th limit that nothing holds; NULL: there are no more. */
static const char *unheld_name(const struct sbx_cgroup_run *c, size_t i)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} limits[] = {
		{ SBX_CGROUP_BIT(SBX_CGROUP_MEMORY), "memory" },
		{ SBX_CGROUP_BIT(SBX_CGROUP_CPU), "cpus" },
		{ SBX_CGROUP_BIT(SBX_CGROUP_IO), "io_weight" },
	};

	for (size_t k = 0; k < SBX_N_ELEMENTS(limits); k++)
		if (c->unheld & limits[k].bit && i-- == 0)
			return limits[k].name;
	return NULL;
}

bool sbx_cgroup_warning(const struct sbx_cgroup_run *c, const struct sbx_facts *f, size_t i,
			char out[SBX_CGROUP_WARNING_MAX])
{
	const char *name = unheld_name(c, i);

	if (name)
		sbx_text_cut(out, SBX_CGROUP_WARNING_MAX, "limits.%s is not enforced: %s", name,
			     why_not(c, f));
	return name != NULL;
}

/* Warns of the requested limits that nothing holds. */
static int check_limits(struct sbx_cgroup_run *c, const struct sbx_plan *p, struct sbx_err *err)
{
	char text[SBX_CGROUP_WARNING_MAX];
	const char *name;

	c->unheld = sbx_limits_need(&p->profile->limits) & ~c->limited;
	name = unheld_name(c, 0);
	if (name && p->profile->limits.strict) {
		sbx_err_set(err,
			    "limits.%s cannot be enforced here, and limits.enforce is strict: %s",
			    name, why_not(c, p->facts));
		return -EOPNOTSUPP;
	}
	for (size_t i = 0; !p->options->quiet && sbx_cgroup_warning(c, p->facts, i, text); i++)
		fprintf(stderr, "sbx-run: %s\n", text);
	return 0;
}

int sbx_cgroup_limit(struct sbx_cgroup_run *c, const struct sbx_plan *p, struct sbx_err *err)
{
	int e = c->dirs.command_fd < 0 ? 0 : apply_limits(c, &p->profile->limits, err);

	return e < 0 ? e : check_limits(c, p, err);
}

void sbx_cgroup_end(struct sbx_cgroup_run *c)
{
	if (c->dirs.command_fd < 0)
		return;
	if (sbx_cgroup_kill(c->dirs.command_fd, KILL_TIMEOUT_MS) < 0)
		fprintf(stderr,
			"sbx-run: processes of the sandbox did not end in %d s; its cgroup %s is "
			"left to the next start\n",
			KILL_TIMEOUT_MS / 1000, c->path);
	sbx_cgroup_usage_read(c->dirs.command_fd, &c->usage);
}
