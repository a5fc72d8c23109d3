/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NET_NETLINK_H
#define SBX_SYS_NET_NETLINK_H

#include <stddef.h>
#include <stdint.h>

struct nlmsghdr;

/*
 * Sends messages to the kernel over a netlink socket and reads the answer; private to src/sys. The
 * kernel handles a request within the send, so the answer is in the queue when the send returns,
 * and reading never waits.
 */

/* Send @n bytes of messages in one datagram to the kernel. 0 or -errno. */
int sbx_netlink_send(int fd, const void *p, size_t n);

/* Called for each message, acknowledgements and errors too, but not for NLMSG_NOOP and
 * NLMSG_DONE. A value below 0 is the last call: the rest of the answer is read and dropped. */
typedef int (*sbx_netlink_cb)(const struct nlmsghdr *nlh, void *userdata);

/* Read until the acknowledgement of @last_seq, an error about it, or the end of its dump. 0;
 * -EAGAIN: the queue is empty before that; -EINTR: a change disturbed the dump (ask again);
 * -EBADMSG: a datagram is malformed; the value of @cb; or -errno. */
int sbx_netlink_read(int fd, uint32_t last_seq, sbx_netlink_cb cb, void *userdata);

/* The negative errno that an NLMSG_ERROR carries; 0 for an acknowledgement and any other
 * message. */
int sbx_netlink_error(const struct nlmsghdr *nlh);

#endif
