/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_PROCESS_PROC_H
#define SBX_SYS_PROCESS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Processes, ids, capabilities, memfds. */

/* A sealed read-only memfd with these bytes, offset 0. fd or -errno. */
int sbx_memfd_new(const char *name, const void *p, size_t n);

/* Capability sets as bits, 1ull << CAP_X (linux/capability.h). */
struct sbx_caps {
	uint64_t effective, permitted, inheritable, bounding, ambient;
};

/* This process's sets. 0 or -errno. */
int sbx_caps_read(struct sbx_caps *ret_caps);
/* The permitted set alone, by one system call. 0 or -errno. */
int sbx_caps_permitted(uint64_t *ret_mask);
/* All that is permitted becomes effective, or nothing: for a while. 0 or -errno. */
int sbx_caps_use(bool all);
/* Keep exactly these capabilities (bit 1<<CAP_X) in permitted and effective, empty inheritable and
 * ambient, drop all others from the bounding set where allowed. 0; -EPERM: one to keep is not
 * held. */
int sbx_caps_keep(uint64_t keep_mask);

/* Become uid:gid for good: no supplementary groups when we may drop them, all ids set and verified
 * irrevocable, without capabilities (the bounding set may stay) unless uid is 0. 0 or -errno. A real change of
 * uid clears the dumpable flag (prctl(2)). */
int sbx_ids_drop(uid_t uid, gid_t gid);

/* Does no process have the real uid @uid, dying ones and zombies included? By the kernel's own count for
 * RLIMIT_NPROC, which sees all pid namespaces and what runs under @uid in user namespaces of its own; asked by
 * a child that becomes @uid and @gid. Needs the rights to become them. 1: none has; 0: one has; -errno. */
int sbx_ids_unused(uid_t uid, gid_t gid);

/* clone(flags) like fork; with CLONE_NEWUSER etc. pid, 0 in the child, or -errno; on failure @err
 * names the cause (max_user_namespaces, unprivileged_userns_clone, AppArmor) and the remedy.
 * @ret_pidfd may be NULL. */
pid_t sbx_proc_clone(uint64_t flags, int *ret_pidfd, struct sbx_err *err);

/* The same, born in the cgroup that @cgroup_fd is the directory of (a move later costs the kernel a grace
 * period: 11 ms were seen); -1: in ours. */
pid_t sbx_proc_clone_into(uint64_t flags, int cgroup_fd, int *ret_pidfd, struct sbx_err *err);

#define SBX_PROC_FDS_MAX 256

/* Arrange the fds of a child about to exec: fds[i] becomes numbers[i] (not CLOEXEC), everything
 * else is closed (close_range), 0-2 as well unless listed. Safe when source and target numbers
 * overlap. 0 or -errno (-EINVAL: a number twice, or more than SBX_PROC_FDS_MAX); the fds are then
 * in no known state. */
int sbx_proc_arrange_fds(const int *fds, const int *numbers, size_t n);

/* Wait for child *pid, if it is positive, and make it 0. */
void sbx_proc_reap(pid_t *pid);

/* 12 hex digits from getrandom. */
void sbx_random_id(char ret_id[13]);

uint64_t sbx_clock_realtime_ms(void);
uint64_t sbx_clock_monotonic_us(void);

#endif
