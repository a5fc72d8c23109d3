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
 * Control groups, version 2 (Documentation/admin-guide/cgroup-v2.rst). A sandbox has a directory of
 * its own, sbx-ID, in the place that sbx_cgroup_find() found:
 *
 *   sbx-ID/              locked (flock) for the launcher's life: an unlocked one is a leftover
 *   sbx-ID/command/      the stage and every process of the sandbox; has the limits
 *   sbx-ID/command/run/  the sandbox's processes, with attach cgroup (sbx_cgroup_settle)
 *   sbx-ID/broker/       sbx-broker, in small limits of its own; the stage too, from the first
 *                        sbx_cgroup_freeze() on
 *   sbx-ID/launcher/     the launcher, only where it had to leave the place: a cgroup that gives
 *                        controllers to its children may hold no process
 */

struct sbx_cgroup {
	int place_fd, dir_fd; /* the directories; dir_fd has the lock */
	int command_fd, broker_fd;
	int run_fd; /* command/run; -1: processes are in command itself */
	char name[32];
	uint32_t controllers; /* of the command's cgroup */
	uint32_t opened;      /* controllers that we turned on in the place */
	bool moved;	      /* we moved from the place to launcher/ */
};
#define SBX_CGROUP_INIT \
	((struct sbx_cgroup){ .place_fd = -1, .dir_fd = -1, .command_fd = -1, .broker_fd = -1, \
			      .run_fd = -1 })

/* Make sbx-ID in the place, and move this process if it must leave the place. Sets no limits. 0
 * or -errno with @err; the caller calls sbx_cgroup_remove() in either case. */
int sbx_cgroup_make(const struct sbx_cgroup_place *place, const char *id, struct sbx_cgroup *cg,
		    struct sbx_err *err);
/* Make command/run; sbx_cgroup_birthplace() is then there. 0 or -errno. */
int sbx_cgroup_add_run(struct sbx_cgroup *cg);
/* The cgroup in which the sandbox's processes start; -1: there is no cgroup. */
int sbx_cgroup_birthplace(const struct sbx_cgroup *cg);
/*
 * Has everything that belongs to command/run ended? A socket belongs to the cgroup it was made in
 * until it is closed, also when it was passed to a process elsewhere, and the rules of attach
 * cgroup judge it by that cgroup. Such a socket keeps a removed cgroup in the kernel: its parent
 * counts it as dying. Memory does not: it is charged to `command`, because `run` has no
 * controllers.
 *
 * Removes command/run. -EBUSY: something is left after @timeout_ms (the kernel takes some 50 ms for
 * an empty cgroup), and command/run was made again. 0, -EBUSY, -errno. Accepts a cgroup without
 * command/run.
 */
int sbx_cgroup_settle(int command_fd, uint32_t timeout_ms);
/* Make command/run again, so that the next sweep asks again. */
int sbx_cgroup_unsettle(int command_fd);
/* The ids of a directory and of all below it, as sockets and rules have them. Returns their number,
 * at most @n_max; -E2BIG: there are more; -errno. */
int sbx_cgroup_ids(int dir_fd, uint64_t *v, size_t n_max);
/* The number of removed cgroups below a directory that the kernel still holds; -1: unknown. */
int64_t sbx_cgroup_dying(int dir_fd);
/* Write a plan into a directory of the sandbox. A write that fails is an error unless it is
 * optional. */
int sbx_cgroup_apply(int dir_fd, struct sbx_cgroup_write *v, size_t n, struct sbx_err *err);
/* Freeze the sandbox's processes. Before, move the stage, @stage, to the broker's cgroup, where it
 * stays: it must run to change the ruleset of a frozen sandbox. It may make no socket that rules of
 * attach cgroup have to judge. 0 or -errno. */
int sbx_cgroup_freeze(const struct sbx_cgroup *cg, pid_t stage);
/* 0 or -errno. */
int sbx_cgroup_thaw(const struct sbx_cgroup *cg);
/* Send SIGKILL to every process in the cgroup and below, and wait until none lives. 0,
 * -ETIMEDOUT or -errno. */
int sbx_cgroup_kill(int dir_fd, uint32_t timeout_ms);
/* Remove the sandbox's empty directories, but not command/run, and move this process back.
 * Accepts any state, and closes all fds. */
void sbx_cgroup_remove(struct sbx_cgroup *cg);
/* Removes the rules of a sandbox of attach cgroup, by the id (inode) of `command`. */
struct sbx_cgroup_release {
	/* below 0: the rules stay, and so does the cgroup */
	int (*fn)(void *userdata, uint64_t cgroup_id);
	void *userdata;
};
/* Remove the directories that dead launchers left in a place: kill the processes, then remove. A
 * directory whose command/run does not settle stays, and so does every one with a command/run
 * where @release is NULL. The number of sandboxes removed, or -errno. */
int sbx_cgroup_sweep(const char *place, const struct sbx_cgroup_release *release);

/* The same for every place of sbx_cgroup_each_place(). */
int sbx_cgroup_sweep_all(const struct sbx_cgroup_facts *f,
			 const struct sbx_cgroup_release *release);

/* The resources that a sandbox used; -1: the kernel does not tell. */
struct sbx_cgroup_usage {
	int64_t cpu_us, memory_peak_bytes, pids_peak;
	int64_t oom_kills, pids_refused;
	int64_t cpu_pressure_us, memory_pressure_us, io_pressure_us; /* `some total` of PSI */
};
#define SBX_CGROUP_USAGE_UNKNOWN ((struct sbx_cgroup_usage){ -1, -1, -1, -1, -1, -1, -1, -1 })
void sbx_cgroup_usage_read(int dir_fd, struct sbx_cgroup_usage *ret_u);

/* The resources that it uses now; -1: the kernel does not tell. Four small files are read. */
struct sbx_cgroup_now {
	int64_t cpu_us, memory_bytes, memory_peak_bytes, pids;
};
void sbx_cgroup_now_read(int dir_fd, struct sbx_cgroup_now *ret_now);
#endif
