/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Probes of the kernel's interfaces. Without the protection, each call would work or fail in
 * another way, so an error counts only if it is the protection's own.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/init/init_probes.h"
#include "sys/process/proc.h"

/* --- raw_socket --- */

void sbx_probe_raw_socket(struct sbx_probe_run *r)
{
	static const struct {
		int family, type, protocol;
		const char *name;
	} sockets[] = {
		{ AF_INET, SOCK_RAW, IPPROTO_ICMP, "AF_INET SOCK_RAW" },
		{ AF_INET, SOCK_RAW, IPPROTO_RAW, "AF_INET SOCK_RAW IPPROTO_RAW" },
		{ AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, "AF_INET6 SOCK_RAW" },
		{ AF_PACKET, SOCK_RAW, 0, "AF_PACKET SOCK_RAW" },
		{ AF_PACKET, SOCK_DGRAM, 0, "AF_PACKET SOCK_DGRAM" },
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(sockets); i++) {
		SBX_AUTO_CLOSE int fd = socket(sockets[i].family, sockets[i].type | SOCK_CLOEXEC,
					       sockets[i].protocol);

		if (fd >= 0) {
			sbx_probe_fail(r, "%s could be opened", sockets[i].name);
			return;
		}
		if (errno != EPERM && errno != EACCES && errno != EAFNOSUPPORT &&
		    errno != EPROTONOSUPPORT) {
			sbx_probe_fail(r, "%s: %s", sockets[i].name, strerror(errno));
			return;
		}
	}
	sbx_probe_pass(r, "refused");
}

/* --- userns --- */

/* clone() and clone3() as bare calls, like fork. If a child is made after all, it is killed at
 * once. */
static bool made_child(struct sbx_probe_run *r, long pid, const char *how)
{
	if (pid == 0)
		_exit(0);
	if (pid > 0) {
		kill((pid_t)pid, SIGKILL);
		waitpid((pid_t)pid, NULL, 0);
		sbx_probe_fail(r, "%s made a user namespace", how);
		return true;
	}
	return false;
}

static bool is_namespace_refusal(struct sbx_probe_run *r, const char *how)
{
	/* Refused by the filter (EPERM; clone3 ENOSYS) or by --disable-userns (ENOSPC, EUSERS). */
	if (errno == EPERM || errno == ENOSYS || errno == ENOSPC || errno == EUSERS)
		return true;
	sbx_probe_fail(r, "%s: %s", how, strerror(errno));
	return false;
}

void sbx_probe_userns(struct sbx_probe_run *r)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	long pid;

#if defined(__s390__)
	pid = syscall(SYS_clone, 0, CLONE_NEWUSER | SIGCHLD, 0, 0, 0);
#else
	pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
#endif
	if (made_child(r, pid, "clone") || !is_namespace_refusal(r, "clone"))
		return;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (made_child(r, pid, "clone3") || !is_namespace_refusal(r, "clone3"))
		return;
	if (syscall(SYS_unshare, CLONE_NEWUSER) == 0)
		sbx_probe_fail(r, "unshare made a user namespace");
	else if (is_namespace_refusal(r, "unshare"))
		sbx_probe_pass(r, "refused");
}

/* --- caps, no_new_privs --- */

void sbx_probe_caps(struct sbx_probe_run *r)
{
	struct sbx_caps c;
	int e = sbx_caps_read(&c);

	if (e < 0) {
		sbx_probe_fail(r, "cannot read them: %s", strerror(-e));
		return;
	}
	if (c.effective | c.permitted | c.inheritable | c.bounding | c.ambient)
		sbx_probe_fail(r,
			       "effective %#llx, permitted %#llx, inheritable %#llx, bounding "
			       "%#llx, ambient %#llx",
			       (unsigned long long)c.effective, (unsigned long long)c.permitted,
			       (unsigned long long)c.inheritable, (unsigned long long)c.bounding,
			       (unsigned long long)c.ambient);
	else
		sbx_probe_pass(r, "none");
}

void sbx_probe_no_new_privs(struct sbx_probe_run *r)
{
	int on = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);

	if (on == 1)
		sbx_probe_pass(r, "set");
	else
		sbx_probe_fail(r, "no_new_privs is %d", on);
}

/* --- seccomp --- */

void sbx_probe_seccomp(struct sbx_probe_run *r)
{
	/* With these arguments the kernel itself fails, by the error behind each row. So a missing
	 * filter does no harm. */
	/* clang-format off */
	const struct {
		const char *name;
		long nr, a, b, c;
		int error;
	} calls[] = {
		{ "keyctl", SYS_keyctl, 9999, 0, 0, EPERM }, /* EOPNOTSUPP */
		{ "ioctl TIOCSTI", SYS_ioctl, -1, TIOCSTI, 0, EPERM }, /* EBADF */
		{ "ioctl TIOCSTI + 2^32", SYS_ioctl, -1, 1l << 32 | TIOCSTI, 0, EPERM },
		{ "ioctl TIOCLINUX + 2^32", SYS_ioctl, -1, 1l << 32 | TIOCLINUX, 0, EPERM },
		{ "io_uring_register", SYS_io_uring_register, -1, 9999, 0, EPERM }, /* EINVAL */
		{ "setns", SYS_setns, -1, 0, 0, EPERM }, /* EBADF */
		{ "socket AF_ALG", SYS_socket, AF_ALG, SOCK_DGRAM, 0, EAFNOSUPPORT },
		{ "clone3", SYS_clone3, 0, 0, 0, ENOSYS }, /* EINVAL */
	};
	/* clang-format on */
	int mode = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);

	if (mode != SECCOMP_MODE_FILTER) {
		sbx_probe_fail(r, "seccomp mode is %d", mode);
		return;
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(calls); i++) {
		long got = syscall(calls[i].nr, calls[i].a, calls[i].b, calls[i].c, 0, 0);

		if (got == -1 && errno == calls[i].error)
			continue;
		sbx_probe_fail(r, "%s is not held back (%s)", calls[i].name,
			       got == -1 ? strerror(errno) : "it worked");
		return;
	}
	sbx_probe_pass(r, "on");
}
