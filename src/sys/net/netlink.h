/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NET_NETLINK_H
#define SBX_SYS_NET_NETLINK_H

#include <stddef.h>
#include <stdint.h>

struct nlmsghdr;

/*
 * Sending to the kernel over a netlink socket and reading what it answers; private to src/sys. The
 * kernel handles a request within the send, so its answer is in the queue when the send returns
 * and reading never waits.
 */

/* Send @n bytes of messages in one datagram to the kernel. 0 or -errno. */
int sbx_netlink_send(int fd, const void *p, size_t n);

/* Called for each message but NLMSG_NOOP and NLMSG_DONE, acknowledgements and errors too. After
 * a value below 0 it is not called again: the rest of the answer is read and dropped. */
typedef int (*sbx_netlink_cb)(const struct nlmsghdr *nlh, void *userdata);

/* Read until the acknowledgement of, error about or end of the dump with @last_seq. 0; -EAGAIN
 * when the queue is empty before that; -EINTR when a dump was disturbed by a change (ask again);
 * -EBADMSG for a datagram that is no messages; what @cb returned; or -errno. */
int sbx_netlink_read(int fd, uint32_t last_seq, sbx_netlink_cb cb, void *userdata);

/* The negative errno that an NLMSG_ERROR carries; 0 for an acknowledgement and any other
 * message. */
int sbx_netlink_error(const struct nlmsghdr *nlh);

#endif
