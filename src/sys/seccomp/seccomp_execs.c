/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/seccomp/seccomp_execs.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/seccomp/seccomp_arch.h"

#define PAGE 4096u /* the smallest: a longer one is read in more pieces */

int sbx_seccomp_watch_execs(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SBX_AUDIT_ARCH, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	const struct sock_fprog program = { SBX_N_ELEMENTS(code), code };
	int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			      SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);

	return fd < 0 ? -errno : fd;
}

/* The string at @address of @pid, in pieces that end where pages end: what lies behind may not be
 * mapped. */
static void read_string(pid_t pid, uint64_t address, char *buf, size_t n_buf)
{
	size_t n = 0;

	while (n < n_buf) {
		size_t left = PAGE - (address + n) % PAGE,
		       n_piece = left < n_buf - n ? left : n_buf - n;
		struct iovec ours = { buf + n, n_piece },
			     theirs = { (void *)(uintptr_t)(address + n), n_piece };

		if (process_vm_readv(pid, &ours, 1, &theirs, 1, 0) != (ssize_t)n_piece)
			break;
		if (memchr(buf + n, '\0', n_piece))
			return;
		n += n_piece;
	}
	buf[0] = '\0';
}

int sbx_seccomp_exec_next(int listener, struct sbx_exec_seen *ret_seen)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	struct seccomp_notif n = { 0 };

	/* RECV would wait. */
	if (poll(&p, 1, 0) <= 0 || !(p.revents & POLLIN))
		return -EAGAIN;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
		return -errno;
	*ret_seen = (struct sbx_exec_seen){ .id = n.id, .pid = (pid_t)n.pid };
	read_string(ret_seen->pid, n.data.args[n.data.nr == SYS_execveat], ret_seen->path,
		    sizeof(ret_seen->path));
	/* Another process may have got the pid meanwhile. */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id) < 0)
		return -errno;
	return 0;
}

int sbx_seccomp_exec_continue(int listener, const struct sbx_exec_seen *seen)
{
	struct seccomp_notif_resp r = { .id = seen->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r) < 0 ? -errno : 0;
}
