/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The step `cgroup`.
 *
 * A place that is there already (src/sys/cgroup/cgroup.h) is used for every run: it costs little, ends a sandbox
 * with one write and tells what it used. systemd is asked for a scope only when a limit needs one that
 * nothing else can hold: memory and processors; the number of processes is held by RLIMIT_NPROC too, which
 * counts per user namespace (Linux 5.14). The scope is asked for by sbx-scope, a program of its own: this one
 * is static and speaks no D-Bus.
 */
#include "launcher/run/cgroup.h"

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
#include "launcher/run/attach.h"
#include "sys/process/proc.h"

#define SCOPE_TIMEOUT_MS 15000
#define KILL_TIMEOUT_MS	 5000

static const struct sbx_cgroup_limits broker_limits = { .memory_bytes = UINT64_C(512) << 20, .pids = 16 };

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

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (sbx_proc_arrange_fds(fds, numbers, SBX_N_ELEMENTS(fds)) == 0)
		execve(c->path, c->argv, environ);
	_exit(127);
}

/* One line, within the time. Its length without the newline, or -errno. */
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

static int ask_scope(struct sbx_run *r, struct sbx_cgroup_place *place)
{
	const struct sbx_facts *f = r->plan->facts;
	char name[64], pid[16], description[64], path[SBX_CGROUP_PATH_MAX], manager[16], slice[] = SBX_CGROUP_SLICE;
	char *argv[] = { f->scope_helper, manager, name, slice, pid, description, NULL };
	struct scope_child c = { .path = f->scope_helper, .argv = argv };
	SBX_AUTO_CLOSE int read_end = -1, write_end = -1;
	int status = -1, e = sbx_fd_pipe(&read_end, &write_end);
	pid_t child;
	ssize_t n;

	if (e < 0)
		return e;
	sbx_text_fit(manager, sizeof(manager), "%s", f->caller_uid == 0 ? "--system" : "--user");
	sbx_text_fit(name, sizeof(name), "sbx-%s.scope", r->plan->id);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	sbx_text_cut(description, sizeof(description), "sbx sandbox %s", r->plan->id);
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

/* --- the step --- */

static int complain(struct sbx_run *r, const char *limit, const char *why)
{
	if (r->plan->profile->limits.strict) {
		sbx_err_set(&r->err, "limits.%s cannot be enforced here, and limits.enforce is strict: %s",
			    limit, why);
		return -EOPNOTSUPP;
	}
	if (!r->options->quiet)
		fprintf(stderr, "sbx-run: limits.%s is not enforced: %s\n", limit, why);
	return 0;
}

/* What was asked for and nothing holds. */
static int check_limits(struct sbx_run *r, const char *why)
{
	const struct sbx_limit_values *l = &r->plan->profile->limits;
	uint32_t missing = sbx_limits_need(l) & ~r->limited;
	int e = 0;

	if (missing & SBX_CGROUP_BIT(SBX_CGROUP_MEMORY))
		e = complain(r, "memory", why);
	if (e == 0 && missing & SBX_CGROUP_BIT(SBX_CGROUP_CPU))
		e = complain(r, "cpus", why);
	if (e == 0 && missing & SBX_CGROUP_BIT(SBX_CGROUP_IO))
		e = complain(r, "io_weight", why);
	return e;
}

static int make(struct sbx_run *r, const struct sbx_cgroup_place *place)
{
	const struct sbx_limit_values *l = &r->plan->profile->limits;
	const struct sbx_cgroup_limits limits = {
		.memory_bytes = l->memory_bytes,
		.cpus_milli = l->cpus_milli,
		.pids = l->pids,
		.io_weight = l->io_weight,
	};
	struct sbx_cgroup_write v[SBX_CGROUP_WRITES_MAX];
	size_t n;
	int e;

	sbx_cgroup_sweep(place->path, sbx_cgroup_gc_release());
	e = sbx_cgroup_make(place, r->plan->id, &r->cgroup, &r->err);
	if (e == 0 && r->plan->attach.on)
		e = sbx_cgroup_add_run(&r->cgroup);
	if (e == 0)
		sbx_run_attach_capture(r);
	if (e < 0)
		return e;
	n = sbx_cgroup_plan(&limits, r->cgroup.controllers, v);
	e = sbx_cgroup_apply(r->cgroup.command_fd, v, n, &r->err);
	for (size_t i = 0; i < n && e == 0; i++)
		if (v[i].done)
			r->limited |= SBX_CGROUP_BIT(v[i].controller);
	if (e == 0) {
		n = sbx_cgroup_plan(&broker_limits, r->cgroup.controllers, v);
		e = sbx_cgroup_apply(r->cgroup.broker_fd, v, n, &r->err);
	}
	return e;
}

/* Attach cgroup needs no controller. */
static void find_bare(struct sbx_cgroup_place *place)
{
	struct sbx_cgroup_facts facts;

	if (sbx_cgroup_facts_read(&facts, true) == 0)
		sbx_cgroup_find(&facts, true, place);
}

/* Of the whole hierarchy that is mounted. */
static uint32_t mount_controllers(const struct sbx_facts *f)
{
	SBX_AUTO_CLOSE int fd = f->cgroup.mount[0] ? open(f->cgroup.mount, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	return fd < 0 ? 0 : sbx_cgroup_controllers(fd, "cgroup.controllers");
}

int sbx_cgroup_begin(struct sbx_run *r)
{
	const struct sbx_facts *f = r->plan->facts;
	struct sbx_cgroup_place place = f->cgroup_place, own;
	const char *why = sbx_limits_way_out(f, mount_controllers(f));
	bool attach = r->plan->attach.on;
	int e = 0;

	if (attach && place.source == SBX_CGROUP_NONE)
		find_bare(&place);
	own = place;
	if (sbx_limits_want_scope(f, &r->plan->profile->limits) ||
	    (attach && place.source == SBX_CGROUP_NONE && f->scope_helper)) {
		e = ask_scope(r, &place);
		if (e < 0) {
			place = own; /* whose way out is the same: a scope from elsewhere */
		}
	}
	if (attach && place.source == SBX_CGROUP_NONE) {
		sbx_err_set(&r->err, "network.attach: cgroup needs a cgroup of its own: %s", why);
		return -EOPNOTSUPP;
	}
	if (!attach && (place.source == SBX_CGROUP_NONE || !place.controllers))
		return check_limits(r, why);
	e = make(r, &place);
	if (e == 0)
		sbx_text_fit(r->cgroup_path, sizeof(r->cgroup_path), "%s/%s", place.path, r->cgroup.name);
	r->cgroup_source = place.source;
	return e == 0 ? check_limits(r, place.shared ? "other processes are in our cgroup, which can then give no controller "
						       "to a sandbox's: start it alone in a scope (systemd-run --scope, with "
						       "--user for a user), or the service with DelegateSubgroup=" :
						       "the cgroup lacks its controller: the unit above must delegate it "
						       "(Delegate=cpu cpuset io memory pids, in a user's case of user@.service)") : e;
}

/* --- its end --- */

static void judge_oom(struct sbx_run *r)
{
	const struct sbx_limit_values *l = &r->plan->profile->limits;
	bool killed = r->outcome == SBX_OUTCOME_LOST ||
		      (r->outcome == SBX_OUTCOME_DONE && WIFSIGNALED(r->wait_status) &&
		       WTERMSIG(r->wait_status) == SIGKILL) ||
		      (r->outcome == SBX_OUTCOME_DONE && WIFEXITED(r->wait_status) &&
		       WEXITSTATUS(r->wait_status) == 128 + SIGKILL);

	if (!r->released || r->usage.oom_kills <= 0 || !killed)
		return;
	r->outcome = SBX_OUTCOME_OOM_KILLED;
	r->err = (struct sbx_err){ 0 };
	sbx_err_set(&r->err,
		    "the command was killed: it needed more than limits.memory %" PRIu64
		    " MiB (peak %.1f MiB)",
		    l->memory_bytes >> 20, (double)r->usage.memory_peak_bytes / (1 << 20));
}

void sbx_cgroup_end(struct sbx_run *r)
{
	if (r->cgroup.command_fd < 0)
		return;
	if (sbx_cgroup_kill(r->cgroup.command_fd, KILL_TIMEOUT_MS) < 0)
		fprintf(stderr, "sbx-run: processes of the sandbox did not end in %d s; its cgroup %s is left "
				"to the next start\n", KILL_TIMEOUT_MS / 1000, r->cgroup_path);
	sbx_cgroup_usage_read(r->cgroup.command_fd, &r->usage);
	judge_oom(r);
}
