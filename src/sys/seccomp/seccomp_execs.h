/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_SECCOMP_SECCOMP_EXECS_H
#define SBX_SYS_SECCOMP_SECCOMP_EXECS_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Seeing which programs are executed (seccomp_unotify(2)): a process installs a filter that asks a
 * listener about each execve(2) and execveat(2), and the listener lets each go on. It decides
 * nothing: other filters and Landlock judge the call as ever, and what is read of its arguments may
 * have changed when the kernel reads them.
 */

/* For this process and its children from now on. Needs no_new_privs. The listener, or -errno
 * (-EBUSY: there is one). When its last copy is closed, every exec fails with ENOSYS. */
int sbx_seccomp_watch_execs(void);

struct sbx_exec_seen {
	uint64_t id;
	pid_t pid; /* in the pid namespace of the listener's holder */
	/* As it was asked for: untrusted, may be relative. "": it could not be read, or only a
	 * descriptor was given. */
	char path[PATH_MAX];
};

/* The next exec that waits. 0; -EAGAIN: none does; -ENOENT: the asking process was killed; -errno.
 * Reading the path needs the right to trace the process. */
int sbx_seccomp_exec_next(int listener, struct sbx_exec_seen *ret_seen);
/* Let it go on. 0 or -errno (-ENOENT: it was killed). */
int sbx_seccomp_exec_continue(int listener, const struct sbx_exec_seen *seen);

#endif
