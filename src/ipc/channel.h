/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_IPC_CHANNEL_H
#define SBX_IPC_CHANNEL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A channel is one end of an AF_UNIX SOCK_SEQPACKET pair: a packet is a message (ipc/messages.h),
 * and file descriptors come with it as SCM_RIGHTS. Nothing here decides.
 */

#define SBX_CHANNEL_MAX_FDS 64

enum {
	SBX_CHANNEL_E_CLOSED = 1, /* the peer is gone (end of file, EPIPE, ECONNRESET) */
	SBX_CHANNEL_E_AGAIN,      /* non-blocking: nothing to read, or no room to write */
	SBX_CHANNEL_E_BROKEN,     /* truncated packet, or more fds than the caller takes: a protocol
	                             violation; the fds that came are closed */
	/* the packet is whole, but not all of its fds came: our own fd table is full, which is not
	 * the sender's fault; the fds that came are closed */
	SBX_CHANNEL_E_NO_FDS,
};

/* A connected pair, both ends CLOEXEC and blocking, with SO_PASSCRED on ret_a. 0 or -errno. */
int sbx_channel_pair(int *ret_a, int *ret_b);

/* Send one packet of n bytes (at least 1: an empty one looks like the end) with n_fds borrowed fds.
 * 0, SBX_CHANNEL_E_CLOSED, SBX_CHANNEL_E_AGAIN, or -errno. No SIGPIPE; an interrupting signal is
 * waited out. */
int sbx_channel_send(int fd, const void *p, size_t n, const int *fds, size_t n_fds);

/* Receive one packet into @p (capacity n_max). The caller owns the fds (CLOEXEC). *ret_pid gets the
 * sender's pid in the caller's pid namespace if SO_PASSCRED is on, else 0; ret_pid may be NULL.
 * With fds_max 0 any fd is a violation, and ret_n_fds may be NULL. 0, SBX_CHANNEL_E_*, or -errno.
 * Unless 0, no fd is returned and the counts are 0; but with SBX_CHANNEL_E_NO_FDS *ret_n and
 * *ret_pid are set as with 0. */
int sbx_channel_recv(int fd, void *p, size_t n_max, size_t *ret_n, int *fds, size_t fds_max,
		     size_t *ret_n_fds, pid_t *ret_pid);

#endif
