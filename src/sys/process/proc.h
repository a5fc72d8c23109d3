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
/* Is @fd, of a sender that is not trusted, a file in memory whose bytes cannot change or go? Then
 * reading it does not block. */
bool sbx_memfd_is_sealed(int fd);
/* The size of a memfd, which may be 0. 0; -EFBIG: more than @n_max; -errno. */
int sbx_memfd_size(int fd, size_t n_max, size_t *ret_n);
/* The first @n bytes of a memfd; its offset stays. 0; -EIO: it has fewer; -errno. */
int sbx_memfd_read(int fd, void *p, size_t n);
/* All of a memfd, malloc'ed, with a NUL behind it. 0; -EFBIG: it has more than @n_max bytes;
 * -ENOMEM; -errno. */
int sbx_memfd_load(int fd, size_t n_max, void **ret_p, size_t *ret_n);

/* Capability sets as bits, 1ull << CAP_X (linux/capability.h). */
struct sbx_caps {
	uint64_t effective, permitted, inheritable, bounding, ambient;
};

/* This process's sets. 0 or -errno. */
int sbx_caps_read(struct sbx_caps *ret_caps);
/* The permitted or the effective set alone, by one system call. 0 or -errno. */
int sbx_caps_permitted(uint64_t *ret_mask);
int sbx_caps_effective(uint64_t *ret_mask);
/* Make every permitted capability effective, or none. 0 or -errno. */
int sbx_caps_use(bool all);
/* Keep exactly these capabilities (bit 1<<CAP_X) in permitted and effective, empty inheritable
 * and ambient, and drop all others from the bounding set where that is allowed. 0; -EPERM: the
 * process lacks one of @keep_mask. */
int sbx_caps_keep(uint64_t keep_mask);

/* Become uid:gid for good: no supplementary groups where they may be dropped, all ids set and
 * checked to be irrevocable, no capabilities unless uid is 0 (the bounding set may stay). 0 or
 * -errno. A real change of uid clears the dumpable flag (prctl(2)). */
int sbx_ids_drop(uid_t uid, gid_t gid);

/* Does no process have the real uid @uid, dying processes and zombies included? Uses the
 * kernel's own count for RLIMIT_NPROC, which sees all pid namespaces, and user namespaces that
 * @uid made. A child that becomes @uid and @gid asks; the caller needs the privileges to become
 * them. 1: no process; 0: there is one; -errno. */
int sbx_ids_unused(uid_t uid, gid_t gid);

/* Like fork(2), with clone(2) flags (CLONE_NEWUSER etc.). pid, 0 in the child, or -errno. On
 * failure @err names the cause (max_user_namespaces, unprivileged_userns_clone, AppArmor) and
 * the remedy. @ret_pidfd may be NULL. */
pid_t sbx_proc_clone(uint64_t flags, int *ret_pidfd, struct sbx_err *err);

/* The same, with the child in the cgroup whose directory is @cgroup_fd; -1: in ours. Moving a
 * process later costs a grace period of the kernel (11 ms were measured). */
pid_t sbx_proc_clone_into(uint64_t flags, int cgroup_fd, int *ret_pidfd, struct sbx_err *err);

#define SBX_PROC_FDS_MAX 256

/* Arrange the fds of a child that is about to exec: fds[i] becomes numbers[i] (not CLOEXEC), and
 * every other fd is closed (close_range), 0-2 too unless listed. Sources and targets may
 * overlap. 0 or -errno (-EINVAL: a number twice, or more than SBX_PROC_FDS_MAX); after an error
 * the fds are in no known state. */
int sbx_proc_arrange_fds(const int *fds, const int *numbers, size_t n);

/* Wait for child *pid and set *pid to 0. Does nothing where *pid is not positive. */
void sbx_proc_reap(pid_t *pid);

/* The same after a SIGKILL. *pid is our child and not yet reaped: so the pid is still its own. */
void sbx_proc_end(pid_t *pid);

/* All that our child @pid writes to the pipe @fd, in @buf (*ret_n bytes, fewer than @n_buf), and
 * its wait status. The child is killed past @deadline_us (sbx_clock_monotonic_us()) and after an
 * error; it is reaped in every case. 0; -EFBIG: it wrote more; -ETIMEDOUT; -errno. */
int sbx_proc_output(pid_t pid, int fd, uint64_t deadline_us, char *buf, size_t n_buf, size_t *ret_n,
		    int *ret_status);

/* The directory of this process's program. 0; -ENAMETOOLONG; -ENOENT: it has none; -errno. */
int sbx_proc_exe_dir(char *out, size_t n_out);

/* 12 hex digits from getrandom. */
void sbx_random_id(char ret_id[13]);

uint64_t sbx_clock_realtime_ms(void);
uint64_t sbx_clock_monotonic_us(void);

#endif
