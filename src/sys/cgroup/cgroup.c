/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Control groups: making and ending a sandbox's own. cgroup_find.c finds the place for it.
 *
 * A launcher locks the sandbox's directory when it makes it and until it exits. A sweep removes
 * only directories that it can lock. Between mkdir and lock a sweep may remove a new directory, so
 * the maker checks afterwards that the directory is still there.
 */
#include "sys/cgroup/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sandbox_id.h"
#include "base/text.h"
#include "sys/fs/file_lock.h"
#include "sys/fs/file_text.h"
#include "sys/process/proc.h"

#define PREFIX	      "sbx-"
/* bytes read of a file; enough also of the cgroup.procs of a crowded cgroup */
#define FILE_MAX      8192
#define RUN	      "run"
#define MAKE_TRIES    16
#define SWEEP_WAIT_MS 1000
#define SETTLE_STEP_MS 2

/* --- making --- */

static int open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Give children every controller that the cgroup has. Returns the bits that were turned on now. */
static uint32_t open_controllers(int dir_fd)
{
	uint32_t missing = sbx_cgroup_controllers(dir_fd, "cgroup.controllers") &
			   ~sbx_cgroup_controllers(dir_fd, "cgroup.subtree_control");
	uint32_t opened = 0;

	/* One write per controller: a write of several is all or nothing. */
	for (int c = 0; c < SBX_N_CGROUP_CONTROLLERS; c++) {
		char text[16];

		sbx_text_fit(text, sizeof(text), "+%s", sbx_cgroup_controller_str(c));
		if (missing & SBX_CGROUP_BIT(c) &&
		    sbx_file_text_write(dir_fd, "cgroup.subtree_control", text) == 0)
			opened |= SBX_CGROUP_BIT(c);
	}
	return opened;
}

static int make_place(const struct sbx_cgroup_place *place)
{
	if (place->source == SBX_CGROUP_DIRECT) {
		size_t n = strlen(place->path) - strlen("/" SBX_CGROUP_SLICE);
		SBX_AUTO_FREE char *root = strndup(place->path, n);
		SBX_AUTO_CLOSE int fd = root ? open_dir(AT_FDCWD, root) : -ENOMEM;

		if (fd < 0)
			return fd;
		open_controllers(fd);
		if (mkdir(place->path, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	return open_dir(AT_FDCWD, place->path);
}

/* Make a directory, lock it, and check that it is still there. The fd or -errno. */
static int make_locked(int place_fd, const char *name)
{
	/* A sweep may hold the lock for a moment. */
	const struct timespec sweep = { .tv_nsec = 1000000 };

	for (int tries = 0; tries < MAKE_TRIES; tries++) {
		SBX_AUTO_CLOSE int fd = -1;
		struct stat ours;
		int r;

		/* Mode 0700: a user that can open the directory can hold the lock. */
		if (mkdirat(place_fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = open_dir(place_fd, name);
		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return fd;
		r = sbx_file_lock(place_fd, name, fd);
		if (r == -ESTALE)
			continue;
		if (r == -EWOULDBLOCK && tries + 1 < MAKE_TRIES) {
			nanosleep(&sweep, NULL);
			continue;
		}
		if (r < 0)
			return r == -EWOULDBLOCK ? -EEXIST : r;
		if (fstat(fd, &ours) < 0)
			return -errno;
		return ours.st_uid == geteuid() ? sbx_fd_steal(&fd) : -EEXIST;
	}
	return -EAGAIN;
}

static int make_child(int dir_fd, const char *name, int *ret_fd)
{
	if (mkdirat(dir_fd, name, 0755) < 0)
		return -errno;
	*ret_fd = open_dir(dir_fd, name);
	return *ret_fd < 0 ? *ret_fd : 0;
}

static int leave_place(struct sbx_cgroup *cg)
{
	SBX_AUTO_CLOSE int fd = -1;
	int r = make_child(cg->dir_fd, "launcher", &fd);

	if (r == 0)
		r = sbx_file_text_write(fd, "cgroup.procs", "0");
	cg->moved = r == 0;
	return r;
}

int sbx_cgroup_make(const struct sbx_cgroup_place *place, const char *id, struct sbx_cgroup *cg,
		    struct sbx_err *err)
{
	const char *what = "opening it";
	int r;

	sbx_text_fit(cg->name, sizeof(cg->name), PREFIX "%s", id);
	r = cg->place_fd = make_place(place);
	if (r >= 0) {
		what = "making a directory in it";
		r = cg->dir_fd = make_locked(cg->place_fd, cg->name);
	}
	if (r >= 0 && place->inside) {
		what = "leaving it";
		r = leave_place(cg);
	}
	if (r >= 0) {
		what = "making the sandbox's";
		cg->opened = place->shared ? 0 : open_controllers(cg->place_fd);
		open_controllers(cg->dir_fd);
		r = make_child(cg->dir_fd, "command", &cg->command_fd);
	}
	if (r >= 0)
		r = make_child(cg->dir_fd, "broker", &cg->broker_fd);
	if (r < 0) {
		sbx_err_set(err, "cgroup %s: %s: %s", place->path, what, strerror(-r));
		return r;
	}
	cg->controllers = sbx_cgroup_controllers(cg->command_fd, "cgroup.controllers");
	return 0;
}

int sbx_cgroup_add_run(struct sbx_cgroup *cg)
{
	return make_child(cg->command_fd, RUN, &cg->run_fd);
}

int sbx_cgroup_birthplace(const struct sbx_cgroup *cg)
{
	return cg->run_fd >= 0 ? cg->run_fd : cg->command_fd;
}

int sbx_cgroup_apply(int dir_fd, struct sbx_cgroup_write *v, size_t n, struct sbx_err *err)
{
	for (size_t i = 0; i < n; i++) {
		int r = sbx_file_text_write(dir_fd, v[i].file, v[i].value);

		v[i].done = r == 0;
		if (r < 0 && !v[i].optional) {
			sbx_err_set(err, "cannot set %s to %s in the sandbox's cgroup: %s",
				    v[i].file, v[i].value, strerror(-r));
			return r;
		}
	}
	return 0;
}

int sbx_cgroup_freeze(const struct sbx_cgroup *cg, pid_t stage)
{
	char text[16];
	int r;

	snprintf(text, sizeof(text), "%d", (int)stage);
	r = sbx_file_text_write(cg->broker_fd, "cgroup.procs", text);
	return r < 0 ? r : sbx_file_text_write(cg->command_fd, "cgroup.freeze", "1");
}

int sbx_cgroup_thaw(const struct sbx_cgroup *cg)
{
	return sbx_file_text_write(cg->command_fd, "cgroup.freeze", "0");
}

/* --- ending --- */

/* Before Linux 5.14 there is no cgroup.kill. The next turn kills processes forked meanwhile. */
static void kill_each(int dir_fd)
{
	char text[FILE_MAX];

	if (sbx_file_text_read(dir_fd, "cgroup.procs", text, sizeof(text)) <= 0)
		return;
	for (char *p = text, *end; *p; p = end + (*end == '\n')) {
		long pid = strtol(p, &end, 10);

		if (end == p || *end != '\n')
			break; /* the last number is cut short: the next turn reads it */
		if (pid > 1 && pid != getpid())
			kill((pid_t)pid, SIGKILL);
	}
}

static bool is_populated(int events_fd)
{
	char text[256];
	ssize_t n = pread(events_fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return n > 0 && sbx_cgroup_parse_value(text, "populated") == 1;
}

int sbx_cgroup_kill(int dir_fd, uint32_t timeout_ms)
{
	SBX_AUTO_CLOSE int events = openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	uint64_t end = sbx_clock_monotonic_us() + timeout_ms * UINT64_C(1000);
	bool by_hand;

	if (events < 0)
		return -errno;
	if (!is_populated(events))
		return 0;
	by_hand = sbx_file_text_write(dir_fd, "cgroup.kill", "1") < 0;
	while (is_populated(events)) {
		struct pollfd p = { .fd = events, .events = POLLPRI };
		uint64_t now = sbx_clock_monotonic_us();

		if (now >= end)
			return -ETIMEDOUT;
		if (by_hand) {
			SBX_AUTO_CLOSE int run = open_dir(dir_fd, RUN);

			kill_each(dir_fd);
			if (run >= 0)
				kill_each(run);
		}
		/* poll(2) on the file wakes us when the cgroup is empty, but not for processes that
		 * were forked while we killed by hand. */
		if (poll(&p, 1, by_hand ? 5 : (int)((end - now) / 1000) + 1) < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}

int64_t sbx_cgroup_dying(int dir_fd)
{
	char text[FILE_MAX];

	if (sbx_file_text_read(dir_fd, "cgroup.stat", text, sizeof(text)) < 0)
		return -1;
	return sbx_cgroup_parse_value(text, "nr_dying_descendants");
}

#define IDS_DEPTH_MAX 16

/* Takes @fd. */
static int add_ids(int fd, unsigned depth, uint64_t *v, size_t n_max, size_t *n)
{
	struct stat st;
	struct dirent *e;
	DIR *dir;
	int r = 0;

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		r = -errno;
		sbx_fd_close(fd);
		return r == -ENOENT && depth > 0 ? 0 : r; /* removed meanwhile */
	}
	if (fstat(dirfd(dir), &st) < 0)
		r = -errno;
	else if (*n == n_max || depth > IDS_DEPTH_MAX)
		r = -E2BIG;
	else
		v[(*n)++] = st.st_ino;
	while (r == 0 && (e = readdir(dir)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			r = add_ids(openat(dirfd(dir), e->d_name,
					   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
				    depth + 1, v, n_max, n);
	closedir(dir);
	return r;
}

int sbx_cgroup_ids(int dir_fd, uint64_t *v, size_t n_max)
{
	size_t n = 0;
	int r = add_ids(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, v, n_max, &n);

	return r < 0 ? r : (int)n;
}

int sbx_cgroup_settle(int command_fd, uint32_t timeout_ms)
{
	uint64_t end = sbx_clock_monotonic_us() + timeout_ms * UINT64_C(1000);

	/* Another process removed the directory, and did not check for sockets that remain. */
	if (unlinkat(command_fd, RUN, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -errno;
	/* No event tells when the kernel has freed a removed cgroup: ask again. */
	while (sbx_cgroup_dying(command_fd) != 0) {
		if (sbx_clock_monotonic_us() >= end)
			return sbx_cgroup_unsettle(command_fd) < 0 ? -errno : -EBUSY;
		poll(NULL, 0, SETTLE_STEP_MS);
	}
	return 0;
}

int sbx_cgroup_unsettle(int command_fd)
{
	return mkdirat(command_fd, RUN, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/* Move back to the place. If no other cgroup is below the place, turn off the controllers that this
 * run turned on. */
static void return_to_place(struct sbx_cgroup *cg)
{
	for (int c = 0; c < SBX_N_CGROUP_CONTROLLERS; c++) {
		char text[16];

		sbx_text_fit(text, sizeof(text), "-%s", sbx_cgroup_controller_str(c));
		if (sbx_cgroup_controllers(cg->dir_fd, "cgroup.subtree_control") &
		    SBX_CGROUP_BIT(c))
			sbx_file_text_write(cg->dir_fd, "cgroup.subtree_control", text);
		if (cg->opened & SBX_CGROUP_BIT(c))
			sbx_file_text_write(cg->place_fd, "cgroup.subtree_control", text);
	}
	if (sbx_file_text_write(cg->place_fd, "cgroup.procs", "0") == 0)
		cg->moved = false;
}

void sbx_cgroup_remove(struct sbx_cgroup *cg)
{
	cg->run_fd = sbx_fd_close(cg->run_fd);
	cg->command_fd = sbx_fd_close(cg->command_fd);
	cg->broker_fd = sbx_fd_close(cg->broker_fd);
	if (cg->dir_fd >= 0) {
		unlinkat(cg->dir_fd, "command", AT_REMOVEDIR);
		unlinkat(cg->dir_fd, "broker", AT_REMOVEDIR);
		if (cg->moved)
			return_to_place(cg);
		unlinkat(cg->dir_fd, "launcher", AT_REMOVEDIR);
		unlinkat(cg->place_fd, cg->name, AT_REMOVEDIR);
	}
	cg->dir_fd = sbx_fd_close(cg->dir_fd);
	cg->place_fd = sbx_fd_close(cg->place_fd);
}

static bool is_sandbox(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && sbx_id_is_valid(name + strlen(PREFIX));
}

/* No process is in the cgroup any more. May it be removed? */
static bool may_remove_command(int command_fd, const struct sbx_cgroup_release *release)
{
	struct stat st;

	if (faccessat(command_fd, RUN, F_OK, 0) < 0 && errno == ENOENT)
		return true;
	/* An earlier look found something left: do not wait again, or each start would wait. */
	if (!release || sbx_cgroup_dying(command_fd) != 0 || fstat(command_fd, &st) < 0 ||
	    sbx_cgroup_settle(command_fd, SWEEP_WAIT_MS) < 0)
		return false;
	if (release->fn(release->userdata, st.st_ino) == 0)
		return true;
	sbx_cgroup_unsettle(command_fd); /* so that the next sweep asks again */
	return false;
}

/* 1: the directory was a leftover, and was removed. */
static int sweep_one(int place_fd, const char *name, const struct sbx_cgroup_release *release)
{
	static const char *const children[] = { "command", "broker", "launcher" };
	enum { N_KILLED = 2 };
	SBX_AUTO_CLOSE int fd = open_dir(place_fd, name);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
	    sbx_file_lock(place_fd, name, fd) < 0)
		return 0;
	for (size_t i = 0; i < SBX_N_ELEMENTS(children); i++) {
		SBX_AUTO_CLOSE int child = open_dir(fd, children[i]);

		/* The launcher is not killed: its cleanup process is in that cgroup too, and may be
		 * the process that sweeps. */
		if (child >= 0 && i < N_KILLED && sbx_cgroup_kill(child, SWEEP_WAIT_MS) < 0)
			return 0;
		if (child >= 0 && i == 0 && !may_remove_command(child, release))
			return 0;
		unlinkat(fd, children[i], AT_REMOVEDIR);
	}
	return unlinkat(place_fd, name, AT_REMOVEDIR) == 0;
}

int sbx_cgroup_sweep(const char *place, const struct sbx_cgroup_release *release)
{
	SBX_AUTO_CLOSE int fd = open_dir(AT_FDCWD, place);
	int list_fd = fd < 0 ? -1 : open_dir(fd, "."), n = 0;
	struct dirent *e;
	DIR *d;

	if (fd == -ENOENT)
		return 0;
	d = list_fd < 0 ? NULL : fdopendir(list_fd);
	if (!d) {
		sbx_fd_close(list_fd);
		return fd < 0 ? fd : -ENOMEM;
	}
	while ((e = readdir(d)))
		if (is_sandbox(e->d_name))
			n += sweep_one(fd, e->d_name, release);
	closedir(d);
	return n;
}

struct sweep {
	const struct sbx_cgroup_release *release;
	int n;
};

static void sweep_place(const char *place, void *userdata)
{
	struct sweep *s = userdata;
	int n = sbx_cgroup_sweep(place, s->release);

	s->n += n > 0 ? n : 0;
}

int sbx_cgroup_sweep_all(const struct sbx_cgroup_facts *f, const struct sbx_cgroup_release *release)
{
	struct sweep s = { .release = release };

	sbx_cgroup_each_place(f, sweep_place, &s);
	return s.n;
}

/* --- what was used --- */

struct value {
	const char *file, *key; /* NULL: the file is the number */
	int64_t *value;
};

static void read_values(int dir_fd, const struct value *rows, size_t n_rows)
{
	for (size_t i = 0; i < n_rows; i++) {
		char text[FILE_MAX + 2] = "= ";
		bool whole = !rows[i].key;
		ssize_t n =
			sbx_file_text_read(dir_fd, rows[i].file, text + (whole ? 2 : 0), FILE_MAX);

		*rows[i].value =
			n < 0 ? -1 : sbx_cgroup_parse_value(text, whole ? "=" : rows[i].key);
	}
}

void sbx_cgroup_usage_read(int dir_fd, struct sbx_cgroup_usage *u)
{
	const struct value rows[] = {
		{ "cpu.stat", "usage_usec", &u->cpu_us },
		{ "memory.peak", NULL, &u->memory_peak_bytes }, /* Linux 5.19 */
		{ "pids.peak", NULL, &u->pids_peak },		/* Linux 6.1 */
		{ "memory.events", "oom_kill", &u->oom_kills },
		{ "pids.events", "max", &u->pids_refused },
		{ "cpu.pressure", "some total", &u->cpu_pressure_us },
		{ "memory.pressure", "some total", &u->memory_pressure_us },
		{ "io.pressure", "some total", &u->io_pressure_us },
	};

	read_values(dir_fd, rows, SBX_N_ELEMENTS(rows));
}

void sbx_cgroup_now_read(int dir_fd, struct sbx_cgroup_now *ret_now)
{
	const struct value rows[] = {
		{ "cpu.stat", "usage_usec", &ret_now->cpu_us },
		{ "memory.current", NULL, &ret_now->memory_bytes },
		{ "memory.peak", NULL, &ret_now->memory_peak_bytes },
		{ "pids.current", NULL, &ret_now->pids },
	};

	read_values(dir_fd, rows, SBX_N_ELEMENTS(rows));
}
