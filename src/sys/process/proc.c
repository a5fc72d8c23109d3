/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starting processes, time and random bits.
 *
 * sbx_proc_clone() is fork() with flags, by clone3 without shared memory. libc does not see it: its
 * atfork handlers do not run and its idea of the thread id stays the parent's, so the caller must
 * have one thread only and the child must not use what depends on the id (robust or error-checking
 * mutexes). getpid() and raise() ask the kernel and are fine.
 */
#include "sys/process/proc.h"

#include <assert.h>
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hex.h"
#include "sys/process/userns.h"

static long do_clone3(uint64_t flags, int *pidfd, int cgroup_fd)
{
	struct clone_args args = {
		.flags = flags | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.cgroup = cgroup_fd >= 0 ? (uint64_t)cgroup_fd : 0,
		.pidfd = (uintptr_t)pidfd,
		/* The parent of a CLONE_PARENT child gets the caller's own exit signal; clone3
		 * takes none for it. */
		.exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD,
	};

	return syscall(SYS_clone3, &args, sizeof(args));
}

/* The same by clone(2): the seccomp filters of containers may not know clone3. */
static long do_clone(uint64_t flags, int *pidfd)
{
	unsigned long all = (unsigned long)flags | SIGCHLD;

#if defined(__s390__)
	return syscall(SYS_clone, 0, all, pidfd, 0, 0);
#else
	return syscall(SYS_clone, all, 0, pidfd, 0, 0);
#endif
}

pid_t sbx_proc_clone(uint64_t flags, int *ret_pidfd, struct sbx_err *err)
{
	return sbx_proc_clone_into(flags, -1, ret_pidfd, err);
}

pid_t sbx_proc_clone_into(uint64_t flags, int cgroup_fd, int *ret_pidfd, struct sbx_err *err)
{
	int pidfd = -1, error;
	long pid;

	assert(!(flags & (CLONE_VM | CLONE_THREAD | CLONE_PIDFD)));
	if (ret_pidfd)
		flags |= CLONE_PIDFD;
	pid = do_clone3(flags, &pidfd, cgroup_fd);
	if (pid < 0 && errno == ENOSYS && cgroup_fd < 0)
		pid = do_clone(flags, &pidfd);
	if (pid >= 0) {
		if (pid > 0 && ret_pidfd)
			*ret_pidfd = pidfd;
		return (pid_t)pid;
	}
	error = errno;
	if (flags & CLONE_NEWUSER) {
		struct sbx_userns_facts facts;
		char why[512];

		sbx_userns_facts_read(&facts);
		sbx_err_set(err, "cannot make a user namespace: %s",
			    sbx_userns_explain(error, &facts, why, sizeof(why)));
	} else {
		sbx_err_set(err, "cannot start a process%s: %s",
			    cgroup_fd >= 0 ? " in the sandbox's cgroup (clone3, Linux 5.7)" : "",
			    strerror(error));
	}
	return -error;
}

int sbx_proc_exe_dir(char *out, size_t n_out)
{
	ssize_t n = readlink("/proc/self/exe", out, n_out);
	char *slash;

	if (n < 0)
		return -errno;
	if ((size_t)n == n_out)
		return -ENAMETOOLONG;
	out[n] = '\0';
	slash = strrchr(out, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

void sbx_random_id(char ret_id[13])
{
	uint8_t bits[6];
	ssize_t n;

	do {
		n = getrandom(bits, sizeof(bits), 0);
	} while (n < 0 && errno == EINTR);
	assert(n == (ssize_t)sizeof(bits)); /* getrandom(2) does not fail for up to 256 bytes */
	sbx_hex_lower(bits, sizeof(bits), ret_id);
}

void sbx_proc_reap(pid_t *pid)
{
	int status;

	while (*pid > 0 && waitpid(*pid, &status, 0) < 0 && errno == EINTR)
		;
	*pid = 0;
}

void sbx_proc_end(pid_t *pid)
{
	if (*pid > 0)
		kill(*pid, SIGKILL);
	sbx_proc_reap(pid);
}

static struct timespec now(clockid_t clock)
{
	struct timespec t = { 0 };
	int r = clock_gettime(clock, &t);

	assert(r == 0);
	(void)r;
	return t;
}

uint64_t sbx_clock_realtime_ms(void)
{
	struct timespec t = now(CLOCK_REALTIME);

	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t sbx_clock_monotonic_us(void)
{
	struct timespec t = now(CLOCK_MONOTONIC);

	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}
