/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * System calls for sbx-init without a C library (bare.h): each is the bare call, its error in errno. A
 * kernel struct that is not the C library's has a word of its own below.
 */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/bare.h"

int *__errno_location(void)
{
	static int error;

	return &error;
}

static long call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (r > -4096 && r < 0) {
		errno = (int)-r;
		return -1;
	}
	return r;
}

#define PTR(p) ((long)(uintptr_t)(p))

void _exit(int status)
{
	for (;;)
		call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

void sbx_bare_trap(void)
{
	__builtin_trap();
}

void __stack_chk_fail(void)
{
	__builtin_trap();
}

/* --- with as many arguments as the caller gives --- */

long syscall(long nr, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return call(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int open(const char *path, int flags, ...)
{
	/* Nothing here makes a file: there is no mode. */
	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE)
		sbx_bare_trap();
	return (int)call(SYS_openat, AT_FDCWD, PTR(path), flags, 0, 0, 0);
}

int fcntl(int fd, int cmd, ...)
{
	va_list ap;
	long arg;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	return (int)call(SYS_fcntl, fd, cmd, arg, 0, 0, 0);
}

int prctl(int op, ...)
{
	long a[4];
	va_list ap;

	va_start(ap, op);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return (int)call(SYS_prctl, op, a[0], a[1], a[2], a[3], 0);
}

/* --- processes, signals, time --- */

pid_t fork(void)
{
	return (pid_t)call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
}

int execve(const char *path, char *const argv[], char *const envp[])
{
	return (int)call(SYS_execve, PTR(path), PTR(argv), PTR(envp), 0, 0, 0);
}

int kill(pid_t pid, int sig)
{
	return (int)call(SYS_kill, pid, sig, 0, 0, 0, 0);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	return (pid_t)call(SYS_wait4, pid, PTR(status), options, 0, 0, 0);
}

int setpgid(pid_t pid, pid_t group)
{
	return (int)call(SYS_setpgid, pid, group, 0, 0, 0, 0);
}

int sigemptyset(sigset_t *set)
{
	memset(set, 0, sizeof(*set));
	return 0;
}

int sigfillset(sigset_t *set)
{
	memset(set, 0xff, sizeof(*set));
	return 0;
}

/* The kernel's set is the beginning of the C library's. */
int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return (int)call(SYS_rt_sigprocmask, how, PTR(set), PTR(old), _NSIG / 8, 0, 0);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	return (int)call(SYS_clock_gettime, clock, PTR(ret), 0, 0, 0, 0);
}

ssize_t getrandom(void *p, size_t n, unsigned flags)
{
	return call(SYS_getrandom, PTR(p), (long)n, flags, 0, 0, 0);
}

/* --- files --- */

int chdir(const char *path)
{
	return (int)call(SYS_chdir, PTR(path), 0, 0, 0, 0, 0);
}

int close(int fd)
{
	return (int)call(SYS_close, fd, 0, 0, 0, 0, 0);
}

ssize_t write(int fd, const void *p, size_t n)
{
	return call(SYS_write, fd, PTR(p), (long)n, 0, 0, 0);
}

ssize_t readlinkat(int dir_fd, const char *path, char *buf, size_t n)
{
	return call(SYS_readlinkat, dir_fd, PTR(path), PTR(buf), (long)n, 0, 0);
}

int fstat(int fd, struct stat *ret)
{
	return (int)call(SYS_fstat, fd, PTR(ret), 0, 0, 0, 0);
}

int faccessat(int dir_fd, const char *path, int mode, int flags)
{
	return (int)call(SYS_faccessat2, dir_fd, PTR(path), mode, flags, 0, 0);
}

/* --- sockets --- */

int socket(int family, int type, int protocol)
{
	return (int)call(SYS_socket, family, type, protocol, 0, 0, 0);
}

int bind(int fd, const struct sockaddr *sa, socklen_t n)
{
	return (int)call(SYS_bind, fd, PTR(sa), n, 0, 0, 0);
}

int listen(int fd, int backlog)
{
	return (int)call(SYS_listen, fd, backlog, 0, 0, 0, 0);
}

int connect(int fd, const struct sockaddr *sa, socklen_t n)
{
	return (int)call(SYS_connect, fd, PTR(sa), n, 0, 0, 0);
}

int getsockname(int fd, struct sockaddr *restrict sa, socklen_t *restrict n)
{
	return (int)call(SYS_getsockname, fd, PTR(sa), PTR(n), 0, 0, 0);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t n)
{
	return (int)call(SYS_setsockopt, fd, level, option, PTR(value), (long)n, 0);
}

int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict n)
{
	return (int)call(SYS_getsockopt, fd, level, option, PTR(value), PTR(n), 0);
}

ssize_t send(int fd, const void *p, size_t n, int flags)
{
	return call(SYS_sendto, fd, PTR(p), (long)n, flags, 0, 0);
}

ssize_t recv(int fd, void *p, size_t n, int flags)
{
	return call(SYS_recvfrom, fd, PTR(p), (long)n, flags, 0, 0);
}

/* glibc's struct msghdr is the kernel's on x86-64. */
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return call(SYS_sendmsg, fd, PTR(msg), flags, 0, 0, 0);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	return call(SYS_recvmsg, fd, PTR(msg), flags, 0, 0, 0);
}

/* A macro or inline where the compiler optimises. */
struct cmsghdr *__cmsg_nxthdr(struct msghdr *msg, struct cmsghdr *c)
{
	const uintptr_t end = (uintptr_t)msg->msg_control + msg->msg_controllen;
	const uintptr_t next = (uintptr_t)c + CMSG_ALIGN(c->cmsg_len);

	if (c->cmsg_len < sizeof(*c) || next < (uintptr_t)c || next + sizeof(*c) > end)
		return NULL;
	c = (struct cmsghdr *)next;
	return c->cmsg_len < sizeof(*c) || c->cmsg_len > end - next ? NULL : c;
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	return (int)call(SYS_poll, PTR(fds), (long)n, timeout_ms, 0, 0, 0);
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t size)
{
	if (n > size / sizeof(*fds))
		sbx_bare_trap();
	return poll(fds, n, timeout_ms);
}
