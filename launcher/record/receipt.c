/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The receipt of a run: the plan, the verdicts of the self-test, and how the run ended.
 *
 * The launcher opens the directory before anything runs, and writes the receipt to that
 * descriptor at the end, wherever the path leads by then. An earlier command may have planted
 * symlinks on the path, so the only symlinks that are followed are root's own, in places where
 * only root can make one. A directory on the path can be renamed as well. A user who can do that
 * gains nothing if the directory belongs to that user anyway; so the directory must belong to
 * that user, or nobody but root and the caller may be able to change the path.
 */
#include "launcher/record/receipt.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/plan/plan_limits.h"
#include "launcher/plan/planner.h"
#include "launcher/record/refusals.h"
#include "launcher/setup/plan_json.h"
#include "sys/fs/path_resolve.h"
#include "sys/process/proc.h"

static json_t *verdicts(const struct sbx_outcome_facts *outcome)
{
	const struct sbx_msg_probes *p = outcome->probes;
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->n_probes; i++) {
		const struct sbx_msg_verdict *v = &outcome->verdicts->v[i];
		char where[SBX_ADDR_STR_MAX] = "";

		if (p->probes[i].addr.family)
			sbx_addr_format(&p->probes[i].addr, where, sizeof(where));
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:b, s:b, s:i, s:s}", "probe",
						sbx_probe_kind_str(p->probes[i].kind), "address",
						where, "name", p->probes[i].name, "seen",
						outcome->has_verdicts, "ok", v->ok, "elapsed_us",
						(int)v->elapsed_us, "detail", v->detail));
	}
	return list;
}

static json_t *step_times(const struct sbx_outcome_facts *outcome)
{
	json_t *o = json_object();

	for (size_t i = 0; i < outcome->n_steps; i++)
		json_object_set_new(o, outcome->steps[i].name, json_integer(outcome->steps[i].us));
	return o;
}

static json_t *traffic(const struct sbx_msg_stats *s)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I}}", "flows",
			 (json_int_t)s->flows, "flows_denied", (json_int_t)s->flows_denied,
			 "dns_queries", (json_int_t)s->dns_queries, "dns_refused",
			 (json_int_t)s->dns_refused, "bytes_out", (json_int_t)s->bytes_out,
			 "bytes_in", (json_int_t)s->bytes_in, "published", "connections",
			 (json_int_t)s->published, "failed", (json_int_t)s->published_failed,
			 "bytes_out", (json_int_t)s->published_bytes_out, "bytes_in",
			 (json_int_t)s->published_bytes_in);
}

/* The plan names the mechanism that should enforce each limit; the receipt names the one that
 * did. */
static void set_limits(json_t *receipt, uint32_t limited)
{
	static const struct {
		const char *limit;
		enum sbx_cgroup_controller controller;
	} rows[] = {
		{ "memory_bytes", SBX_CGROUP_MEMORY },
		{ "cpus_milli", SBX_CGROUP_CPU },
		{ "io_weight", SBX_CGROUP_IO },
		{ "pids", SBX_CGROUP_PIDS },
	};
	json_t *limits = json_object_get(receipt, "limits");

	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++) {
		json_t *limit = json_object_get(limits, rows[i].limit);

		if (json_is_integer(json_object_get(limit, "asked")))
			json_object_set_new(
				limit, "enforced_by",
				json_string(sbx_limits_enforced_by(limited, rows[i].controller)));
	}
}

static json_t *known(int64_t value)
{
	return value < 0 ? json_null() : json_integer((json_int_t)value);
}

static json_t *cgroup(const struct sbx_outcome_facts *outcome)
{
	const struct sbx_cgroup_usage *u = outcome->cgroup.usage;

	return json_pack("{s:s, s:s, s:{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}}", "source",
			 sbx_cgroup_source_str(outcome->cgroup.source), "path",
			 outcome->cgroup.path, "used", "cpu_us", known(u->cpu_us),
			 "memory_peak_bytes", known(u->memory_peak_bytes), "pids_peak",
			 known(u->pids_peak), "oom_kills", known(u->oom_kills), "pids_refused",
			 known(u->pids_refused), "cpu_pressure_us", known(u->cpu_pressure_us),
			 "memory_pressure_us", known(u->memory_pressure_us), "io_pressure_us",
			 known(u->io_pressure_us));
}

/* The first line of `bwrap --version` ("bubblewrap 0.8.0"); "" if there is none. */
static void bwrap_version(const char *path, char *buf, size_t n_buf)
{
	char name[] = "bwrap", option[] = "--version", *argv[] = { name, option, NULL },
	     *env[] = { NULL };
	posix_spawn_file_actions_t actions;
	SBX_AUTO_CLOSE int read_end = -1;
	int fds[2], status;
	ssize_t n = 0;
	pid_t pid = 0;

	buf[0] = '\0';
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	read_end = fds[0];
	if (posix_spawn_file_actions_init(&actions) == 0) {
		posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
		if (posix_spawn(&pid, path, &actions, NULL, argv, env) != 0)
			pid = 0;
		posix_spawn_file_actions_destroy(&actions);
	}
	sbx_fd_close(fds[1]);
	if (pid <= 0)
		return;
	n = read(read_end, buf, n_buf - 1);
	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

static json_t *kept(const struct sbx_outcome_facts *o)
{
	if (!o->keep.tried)
		return json_null();
	return json_pack("{s:b, s:I, s:I, s:I, s:I, s:s}", "whole", o->keep.whole, "entries",
			 (json_int_t)o->keep.entries, "bytes", (json_int_t)o->keep.bytes, "removed",
			 (json_int_t)o->keep.removed, "left_out", (json_int_t)o->keep.left_out,
			 "message", o->keep.message);
}

json_t *sbx_receipt_refusals(struct sbx_refusals *refused, const char *profile, size_t n_max)
{
	json_t *list = json_array();

	sbx_refusals_sort(refused);
	for (size_t i = 0; i < sbx_refusals_n(refused) && i < n_max; i++) {
		char where[4 * sizeof(((struct sbx_refusal *)NULL)->where)],
			request[4 * sizeof(((struct sbx_refusal *)NULL)->request)],
			why[SBX_REFUSAL_LINE_MAX];
		struct sbx_refusal refusal;

		sbx_refusals_at(refused, i, profile, &refusal);
		sbx_escape(refusal.where, strlen(refusal.where), where, sizeof(where));
		sbx_escape(refusal.request, strlen(refusal.request), request, sizeof(request));
		sbx_escape(refusal.why, strlen(refusal.why), why, sizeof(why));
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:I, s:s, s:o, s:s, s:o}", "to", where, "protocol",
				  sbx_proto_str((enum sbx_proto)refusal.event->proto), "count",
				  (json_int_t)refusal.event->count, "reason",
				  sbx_reason_str((enum sbx_reason)refusal.event->reason), "request",
				  request[0] ? json_string(request) : json_null(), "why", why,
				  "allow",
				  refusal.allow[0] ? json_string(refusal.allow) : json_null()));
	}
	return list;
}

static json_t *build(const struct sbx_plan *plan, const struct sbx_outcome_facts *outcome)
{
	SBX_AUTO_FREE char *plan_text = sbx_plan_json(plan, outcome->setup);
	json_t *o = plan_text ? json_loads(plan_text, 0, NULL) : NULL;
	struct utsname u = { 0 };
	char bwrap[64];

	if (!o)
		return NULL;
	uname(&u);
	bwrap_version(plan->facts->bwrap, bwrap, sizeof(bwrap));
	json_object_set_new(o, "versions",
			    json_pack("{s:s, s:s, s:s, s:s}", "sbx", PACKAGE_VERSION, "kernel",
				      u.release, "bwrap", bwrap, "sqlite",
				      sbx_store_library_version()));
	set_limits(o, outcome->cgroup.limited);
	json_object_set_new(o, "cgroup", cgroup(outcome));
	json_object_set_new(o, "selftest", verdicts(outcome));
	json_object_set_new(o, "step_us", step_times(outcome));
	json_object_set_new(o, "traffic", traffic(outcome->traffic));
	json_object_set_new(o, "refusals",
			    sbx_receipt_refusals(outcome->refusals, plan->options->profile,
						 SBX_REFUSALS_MAX));
	json_object_set_new(o, "refusals_others",
			    json_integer((json_int_t)sbx_refusals_n_others(outcome->refusals)));
	json_object_set_new(o, "kept", kept(outcome));
	json_object_set_new(
		o, "outcome",
		json_pack("{s:s, s:i, s:s, s:b, s:I}", "state", sbx_store_state_str(outcome->state),
			  "exit_status", outcome->exit_status, "message", outcome->why, "released",
			  outcome->released, "elapsed_us",
			  (json_int_t)(sbx_clock_monotonic_us() - outcome->started_us)));
	return o;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Can only root, the caller or the directory's owner change the path? 0 or -EPERM with @err. */
static int judge_way(uid_t caller, const struct sbx_resolved *found, struct sbx_err *err)
{
	const struct sbx_path_steering *way = &found->steering;

	for (size_t i = 0; i < found->n_hops; i++) {
		if (found->hops[i].steering.by == 0 && !found->hops[i].steering.by_others)
			continue;
		sbx_err_set(err,
			    "a command could have made the symlink '%s' on the way: name what it "
			    "leads to",
			    found->hops[i].at);
		return -EPERM;
	}
	if (!way->by_strangers &&
	    (way->by == 0 || way->by == caller || way->by == found->st.st_uid))
		return 0;
	if (way->by_strangers)
		sbx_err_set(err, "others can put another directory in its place: name one that "
				 "nobody else can");
	else
		sbx_err_set(err,
			    "uid %u can put another directory in its place: name one of that user, "
			    "or one that only root can replace",
			    way->by);
	return -EPERM;
}

/* Open the directory of @path, whose last part is @base. @ret_dir: its resolved path, malloc'ed. 0
 * or -errno with @err. */
static int open_dir(const struct sbx_facts *f, const char *path, const char *base, int *ret_fd,
		    char **ret_dir, struct sbx_err *err)
{
	const char *cwd = path[0] == '/' ? "" : f->cwd ? f->cwd : "/nonexistent";
	SBX_CLEANUP(sbx_resolved_fini) struct sbx_resolved found = { .fd = -1 };
	SBX_AUTO_FREE char *dir = NULL;
	int e;

	if (asprintf(&dir, "%s/%.*s", cwd, (int)(base - path), path) < 0) {
		dir = NULL;
		return -ENOMEM;
	}
	e = sbx_path_resolve(dir, err, &found);
	if (e == 0)
		e = judge_way(f->caller_uid, &found, err);
	if (e == 0 && !S_ISDIR(found.st.st_mode))
		e = -ENOTDIR;
	if (e == 0 && found.missing)
		e = -ENOENT;
	if (e == 0 && faccessat(found.fd, ".", W_OK, AT_EACCESS) < 0)
		e = -errno;
	if (e == 0 && !(*ret_dir = strdup(found.path)))
		e = -ENOMEM;
	if (e == 0)
		*ret_fd = sbx_fd_steal(&found.fd);
	return e > 0 ? -EPERM : e;
}

int sbx_receipt_open_dir(const struct sbx_facts *f, const char *path, const char *flag,
			 int *ret_dir_fd, char **ret_dir, struct sbx_err *err)
{
	const char *base = base_name(path);
	struct sbx_err why = { 0 };
	int e;

	if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0 || strlen(base) > 200) {
		sbx_err_set(err, "%s %s is not the name of a file", flag, path);
		return -EINVAL;
	}
	e = open_dir(f, path, base, ret_dir_fd, ret_dir, &why);
	if (e == -ENOENT && !why.msg[0])
		sbx_err_set(err, "%s: cannot write %s: make its directory first (mkdir -p)", flag,
			    path);
	else if (e < 0)
		sbx_err_set(err, "%s: cannot write %s: %s", flag, path,
			    why.msg[0] ? why.msg : strerror(-e));
	return e;
}

int sbx_receipt_prepare(const struct sbx_plan *plan, int *ret_dir_fd, struct sbx_err *err)
{
	const char *path = plan->options->receipt, *base = base_name(path);
	SBX_AUTO_CLOSE int dir_fd = -1;
	SBX_AUTO_FREE char *dir = NULL;
	struct stat st;
	int e = sbx_receipt_open_dir(plan->facts, path, "--receipt", &dir_fd, &dir, err);

	if (e < 0)
		return e;
	if (fstatat(dir_fd, base, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode)) {
		sbx_err_set(err, "the receipt %s is there already and not a regular file", path);
		return -EEXIST;
	}
	*ret_dir_fd = sbx_fd_steal(&dir_fd);
	return 0;
}

static int write_all(int fd, const char *text)
{
	size_t n = strlen(text), done = 0;

	while (done < n) {
		ssize_t w = write(fd, text + done, n - done);

		if (w < 0 && errno != EINTR)
			return -errno;
		if (w > 0)
			done += (size_t)w;
	}
	return 0;
}

int sbx_receipt_write_file(int dir_fd, const char *base, const char *text, bool replace)
{
	SBX_AUTO_CLOSE int fd = -1;
	char temporary[256], random[13];
	int e;

	/* not the sandbox's id: the command knows it, and could make that name first */
	sbx_random_id(random);
	sbx_text_fit(temporary, sizeof(temporary), ".%s.%s", base, random);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	e = write_all(fd, text);
	if (e == 0 && replace && renameat(dir_fd, temporary, dir_fd, base) < 0)
		e = -errno;
	/* a link replaces nothing, on every file system that has links */
	if (e == 0 && !replace && linkat(dir_fd, temporary, dir_fd, base, 0) < 0)
		e = -errno;
	if (e < 0 || !replace)
		unlinkat(dir_fd, temporary, 0);
	return e;
}

void sbx_receipt_write(int dir_fd, const struct sbx_plan *plan,
		       const struct sbx_outcome_facts *outcome)
{
	const char *path = plan->options->receipt;
	SBX_AUTO_FREE char *text = NULL;
	struct sbx_err err = { 0 };
	json_t *o;
	int e;

	if (!path)
		return;
	o = build(plan, outcome);
	text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
	json_decref(o);
	e = text ? sbx_receipt_write_file(dir_fd, base_name(path), text, true) : -ENOMEM;
	if (e < 0) {
		sbx_err_set(&err, "cannot write the receipt %s: %s", path, strerror(-e));
		fprintf(stderr, "sbx-run: %s\n", err.msg);
	}
}
