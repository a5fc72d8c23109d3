/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Packets with file descriptors over SOCK_SEQPACKET. The peer may be hostile (init runs as the
 * sandboxed user, the broker parses the sandbox's bytes), so a packet is accepted whole or refused
 * whole. A cut packet, a cut list of fds, or fds that the caller does not take close every fd that
 * came and report the channel as broken. Fds are CLOEXEC from the moment they exist here.
 */

#include "ipc/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/cleanup.h"

/* Control room: the credentials, and one fd more than a caller may take. The kernel passes as many
 * as fit and flags the rest with MSG_CTRUNC (unix(7)). */
union control {
	char room[CMSG_SPACE(sizeof(struct ucred)) +
		  CMSG_SPACE(sizeof(int) * (SBX_CHANNEL_MAX_FDS + 1))];
	struct cmsghdr align;
};

int sbx_channel_pair(int *ret_a, int *ret_b)
{
	int on = 1, sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return -errno;
	if (setsockopt(sv[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0) {
		int r = -errno;

		sbx_fd_close(sv[0]);
		sbx_fd_close(sv[1]);
		return r;
	}
	*ret_a = sv[0];
	*ret_b = sv[1];
	return 0;
}

static int from_errno(int e)
{
	switch (e) {
	case EPIPE:
	case ECONNRESET:
	case ENOTCONN:
		return SBX_CHANNEL_E_CLOSED;
	case EAGAIN:
		return SBX_CHANNEL_E_AGAIN;
	default:
		return -e;
	}
}

int sbx_channel_send(int fd, const void *p, size_t n, const int *fds, size_t n_fds)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;

	if (n == 0 || n_fds > SBX_CHANNEL_MAX_FDS)
		return -EINVAL;
	if (n_fds) {
		struct cmsghdr *cmsg;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n_fds);
	}
	for (;;) {
		if (sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno != EINTR)
			return from_errno(errno);
	}
}

/* The control data of a packet. The fds are ours until they are given to the caller. */
struct ancillary {
	int fds[SBX_CHANNEL_MAX_FDS + 2];
	size_t n_fds;
	pid_t pid;
	int overflow;
};

static void ancillary_fini(struct ancillary *a)
{
	while (a->n_fds)
		sbx_fd_close(a->fds[--a->n_fds]);
}

static void collect_fds(struct ancillary *a, const struct cmsghdr *cmsg)
{
	size_t n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(fd));
		if (a->n_fds < SBX_N_ELEMENTS(a->fds)) {
			a->fds[a->n_fds++] = fd;
		} else {
			sbx_fd_close(fd);
			a->overflow = 1;
		}
	}
}

static void collect(struct ancillary *a, struct msghdr *msg)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET)
			continue;
		if (cmsg->cmsg_type == SCM_RIGHTS) {
			collect_fds(a, cmsg);
		} else if (cmsg->cmsg_type == SCM_CREDENTIALS &&
			   cmsg->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
			struct ucred cred;

			memcpy(&cred, CMSG_DATA(cmsg), sizeof(cred));
			a->pid = cred.pid;
		}
	}
}

int sbx_channel_recv(int fd, void *p, size_t n_max, size_t *ret_n, int *fds, size_t fds_max,
		     size_t *ret_n_fds, pid_t *ret_pid)
{
	SBX_CLEANUP(ancillary_fini) struct ancillary a = { .n_fds = 0 };
	union control control;
	struct iovec iov = { .iov_base = p, .iov_len = n_max };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	bool reset = false, cut;
	ssize_t n;

	*ret_n = 0;
	if (ret_n_fds)
		*ret_n_fds = 0;
	if (ret_pid)
		*ret_pid = 0;
	if (n_max == 0 || fds_max > SBX_CHANNEL_MAX_FDS || (fds_max && !ret_n_fds))
		return -EINVAL;
	do {
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
		/* The kernel reports this error once, when the peer closed with unread data, before
		 * the peer's last packets. Read again for those: they have the reason of its end.
		 * */
		if (n < 0 && errno == ECONNRESET && !reset) {
			reset = true;
			errno = EINTR;
		}
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return from_errno(errno);
	collect(&a, &msg);
	/* The control room holds more fds than any caller takes. If fds were cut off all the same,
	 * they did not fit our own fd table. */
	cut = msg.msg_flags & MSG_CTRUNC;
	if (msg.msg_flags & MSG_TRUNC || a.overflow || a.n_fds > fds_max || (cut && fds_max == 0))
		return SBX_CHANNEL_E_BROKEN;
	/* The end of the stream. An empty packet looks the same, but is never sent. */
	if (n == 0)
		return SBX_CHANNEL_E_CLOSED;
	*ret_n = (size_t)n;
	if (ret_pid)
		*ret_pid = a.pid;
	if (cut)
		return SBX_CHANNEL_E_NO_FDS;
	if (ret_n_fds)
		*ret_n_fds = a.n_fds;
	for (; a.n_fds; a.n_fds--)
		fds[a.n_fds - 1] = a.fds[a.n_fds - 1];
	return 0;
}
