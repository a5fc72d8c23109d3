/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads netlink answers. Only datagrams from the kernel (port 0) count. Lengths are checked as if
 * the sender were hostile; that costs nothing. The callback also gets messages with other sequence
 * numbers (left over from an earlier failure): callers that care check nlmsg_seq.
 */
#include "sys/net/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "sys/net/nlmsg.h"

/* The kernel fits a dump's datagrams to the reader's buffer; the first one is at most 8 KiB (or
 * a page, if smaller). A larger buffer would cost each reader a page fault per 4 KiB for
 * nothing: a ruleset read back is some 6 KiB. */
#define READ_BYTES 8192

int sbx_netlink_send(int fd, const void *p, size_t n)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	ssize_t r;

	do {
		r = sendto(fd, p, n, MSG_NOSIGNAL, (struct sockaddr *)&kernel, sizeof(kernel));
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int sbx_netlink_error(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = NLMSG_DATA(nlh);

	if (nlh->nlmsg_type != NLMSG_ERROR)
		return 0;
	if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
		return -EBADMSG;
	return e->error > 0 ? -EBADMSG : e->error;
}

/* NLMSG_DONE carries the errno that stopped the dump. */
static int done_error(const struct nlmsghdr *nlh)
{
	const int *error = NLMSG_DATA(nlh);

	return nlh->nlmsg_len >= NLMSG_LENGTH(sizeof(*error)) && *error < 0 ? *error : 0;
}

struct reading {
	uint32_t last_seq;
	sbx_netlink_cb cb;
	void *userdata;
	bool disturbed; /* NLM_F_DUMP_INTR was seen */
	int error;	/* the callback's first error */
};

/* Handle one message. True when it ends the answer; rd->error is then the outcome. */
static bool handle(struct reading *rd, const struct nlmsghdr *nlh)
{
	bool last = nlh->nlmsg_seq == rd->last_seq;

	if (last && nlh->nlmsg_flags & NLM_F_DUMP_INTR)
		rd->disturbed = true;
	if (nlh->nlmsg_type == NLMSG_NOOP)
		return false;
	if (nlh->nlmsg_type == NLMSG_DONE) {
		if (last && rd->error == 0)
			rd->error = done_error(nlh);
		if (last && rd->error == 0 && rd->disturbed)
			rd->error = -EINTR;
		return last;
	}
	if (rd->error == 0) {
		int r = rd->cb(nlh, rd->userdata);

		if (r < 0)
			rd->error = r;
	}
	return last && nlh->nlmsg_type == NLMSG_ERROR;
}

/* Handle the messages of a datagram. 1 when one ends the answer, with the outcome in @rd->error;
 * else 0 or -EBADMSG. @datagram and each message are aligned for struct nlmsghdr. */
static int handle_datagram(struct reading *rd, struct sbx_span datagram)
{
	struct nlmsghdr header;
	struct sbx_span body;
	bool bad = false;

	for (;;) {
		const struct nlmsghdr *nlh = (const void *)datagram.p;

		if (!sbx_nlmsg_next(&datagram, &header, &body, &bad))
			return bad ? -EBADMSG : 0;
		if (handle(rd, nlh))
			return 1;
	}
}

int sbx_netlink_read(int fd, uint32_t last_seq, sbx_netlink_cb cb, void *userdata)
{
	struct reading rd = { .last_seq = last_seq, .cb = cb, .userdata = userdata };
	_Alignas(struct nlmsghdr) char buf[READ_BYTES];

	for (;;) {
		struct sockaddr_nl from = { 0 };
		socklen_t n_from = sizeof(from);
		ssize_t n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC,
				     (struct sockaddr *)&from, &n_from);
		int r;

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return rd.error ? rd.error : -errno;
		}
		if ((size_t)n > sizeof(buf))
			return -EMSGSIZE;
		if (n_from != sizeof(from) || from.nl_pid != 0)
			continue;
		r = handle_datagram(&rd, sbx_span(buf, (size_t)n));
		if (r != 0)
			return r < 0 ? r : rd.error;
	}
}
