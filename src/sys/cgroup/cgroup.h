/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_CGROUP_CGROUP_H
#define SBX_SYS_CGROUP_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "sys/cgroup/cgroup_find.h"

/*
 * Control groups, version 2 (Documentation/admin-guide/cgroup-v2.rst). A sandbox has a directory of its
 * own, sbx-ID, in the place that sbx_cgroup_find() found:
 *
 *	sbx-ID/			locked (flock) for the launcher's life: a directory that is not is a leftover
 *	sbx-ID/command/		the stage and all that the sandbox is; has the limits
 *	sbx-ID/command/run/	with attach cgroup they are here (sbx_cgroup_settle)
 *	sbx-ID/broker/		sbx-broker, in small limits of its own
 *	sbx-ID/launcher/	the launcher, only where it had to leave the place: a cgroup that gives
 *				controllers to its children may hold no process
 */

struct sbx_cgroup {
	int place_fd, dir_fd; /* the directories; dir_fd has the lock */
	int command_fd, broker_fd;
	int run_fd; /* command/run; -1: processes are in command itself */
	char name[32];
	uint32_t controllers; /* that the command's cgroup has */
	uint32_t opened;      /* that we turned on in the place */
	bool moved;	      /* we went from the place to launcher/ */
};
#define SBX_CGROUP_INIT                                                                             \
	((struct sbx_cgroup){ .place_fd = -1, .dir_fd = -1, .command_fd = -1, .broker_fd = -1, .run_fd = -1 })

/* Make sbx-ID in the place, and move this process if it must leave. No limits yet. 0 or -errno with @err;
 * what was made is for sbx_cgroup_remove() whatever the result. */
int sbx_cgroup_make(const struct sbx_cgroup_place *place, const char *id, struct sbx_cgroup *cg,
		    struct sbx_err *err);
/* Let what is born in it be born in command/run. 0 or -errno. */
int sbx_cgroup_add_run(struct sbx_cgroup *cg);
/* Where the sandbox's processes are to be born; -1: there is no cgroup. */
int sbx_cgroup_birthplace(const struct sbx_cgroup *cg);
/*
 * Is nothing left that belongs to command/run? Not only no process: a socket is its cgroup's for life, also in the
 * hands of somebody else whom it was passed to, and is judged by it (attach cgroup). Such a socket keeps the removed
 * cgroup from going away, which its parent counts as dying. Memory does not: it is charged to `command`, for `run`
 * has no controllers. Removes command/run; with -EBUSY (something is left after @timeout_ms; an empty cgroup takes
 * the kernel some 50 ms) it is there again. 0, -EBUSY, -errno. Accepts one without.
 */
int sbx_cgroup_settle(int command_fd, uint32_t timeout_ms);
/* Not yet, then: command/run is there again, so that a sweep asks once more. */
int sbx_cgroup_unsettle(int command_fd);
/* Cgroups that were removed and are still there in the kernel, below a directory; -1: unknown. */
int64_t sbx_cgroup_dying(int dir_fd);
/* Write a plan into one of its directories. A write that fails is an error unless it is optional. */
int sbx_cgroup_apply(int dir_fd, struct sbx_cgroup_write *v, size_t n, struct sbx_err *err);
/* SIGKILL to all in it and below, and wait until nothing lives. 0, -ETIMEDOUT or -errno. */
int sbx_cgroup_kill(int dir_fd, uint32_t timeout_ms);
/* Remove all of it that is empty, but not command/run; go back to where we came from. Accepts any state, gives
 * back all fds. */
void sbx_cgroup_remove(struct sbx_cgroup *cg);
/* Only give back the fds: in a child, which has copies of them. */
void sbx_cgroup_forget(struct sbx_cgroup *cg);
/* Who removes what a sandbox of attach cgroup has beside its cgroup, by the id (inode) of `command`. */
struct sbx_cgroup_release {
	int (*fn)(void *userdata, uint64_t cgroup_id); /* below 0: it stays, and so does the cgroup */
	void *userdata;
};
/* Remove what dead launchers left in a place, by its path: kill, then remove. A command/run that does not settle
 * stays, and all do where @release is NULL. The number of sandboxes, or -errno. */
int sbx_cgroup_sweep(const char *place, const struct sbx_cgroup_release *release);

/* The same wherever we may have made one: from our own cgroup up to the delegated unit, and below sbx.slice. Those
 * in scopes are systemd's to remove. */
int sbx_cgroup_sweep_all(const struct sbx_cgroup_facts *f, const struct sbx_cgroup_release *release);

/* What it used; -1: the kernel does not tell. */
struct sbx_cgroup_usage {
	int64_t cpu_us, memory_peak_bytes, pids_peak;
	int64_t oom_kills, pids_refused;
	int64_t cpu_pressure_us, memory_pressure_us, io_pressure_us; /* `some total` of PSI */
};
#define SBX_CGROUP_USAGE_UNKNOWN ((struct sbx_cgroup_usage){ -1, -1, -1, -1, -1, -1, -1, -1 })
void sbx_cgroup_usage_read(int dir_fd, struct sbx_cgroup_usage *ret_u);
#endif
