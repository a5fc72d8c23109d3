/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The packet filter's rules can neither be read nor changed. Usually seccomp refuses the socket. If
 * not, the kernel must answer EPERM to both, because the network namespace belongs to a user
 * namespace above the sandbox's.
 */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/init/init_probes.h"

#define ANSWER_MS 200 /* the kernel answers within send(); this bounds the wait if it does not */

/* Requests without attributes: one reads, one would add a table. */
struct request {
	struct nlmsghdr nl;
	struct nfgenmsg nf;
};

static struct request request(uint16_t type, uint16_t flags, uint32_t seq, uint16_t res_id)
{
	return (struct request){
		.nl = { .nlmsg_len = sizeof(struct request),
			.nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | flags,
			.nlmsg_seq = seq },
		.nf = { .nfgen_family = AF_INET,
			.version = NFNETLINK_V0,
			.res_id = (uint16_t)(res_id << 8) },
	};
}

/* Send, and read the first answer: 0 or the errno in it; -1: no error message, or no answer. */
static int ask(int fd, const struct request *requests, size_t n)
{
	union {
		struct nlmsghdr nl;
		char room[4096];
	} answer;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct nlmsgerr error;
	ssize_t got;

	if (send(fd, requests, n * sizeof(*requests), MSG_NOSIGNAL) < 0)
		return errno;
	if (poll(&p, 1, ANSWER_MS) != 1)
		return -1;
	got = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (got < (ssize_t)(NLMSG_HDRLEN + sizeof(error)) || answer.nl.nlmsg_type != NLMSG_ERROR)
		return -1;
	memcpy(&error, NLMSG_DATA(&answer.nl), sizeof(error));
	return -error.error;
}

void sbx_probe_ruleset(struct sbx_probe_run *r)
{
	const struct request read[] = {
		request(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE, NLM_F_DUMP, 1, 0),
	};
	const struct request change[] = {
		request(NFNL_MSG_BATCH_BEGIN, 0, 2, NFNL_SUBSYS_NFTABLES),
		/* Without a name the request is malformed, so it changes nothing if the kernel
		 * permits it. */
		request(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_ACK, 3,
			0),
		request(NFNL_MSG_BATCH_END, 0, 4, NFNL_SUBSYS_NFTABLES),
	};
	SBX_AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	int e;

	if (fd < 0) {
		if (errno == EPERM || errno == EACCES || errno == EPROTONOSUPPORT ||
		    errno == EAFNOSUPPORT)
			sbx_probe_pass(r, "netfilter cannot be asked (%s)", strerror(errno));
		else
			sbx_probe_fail(r, "opening netlink: %s", strerror(errno));
		return;
	}
	e = ask(fd, read, SBX_N_ELEMENTS(read));
	if (e != EPERM) {
		sbx_probe_fail(r, "reading it is not refused (%s)",
			       e > 0 ? strerror(e) : "it was answered");
		return;
	}
	e = ask(fd, change, SBX_N_ELEMENTS(change));
	if (e == EPERM)
		sbx_probe_pass(r, "refused");
	else
		sbx_probe_fail(r, "changing it is not refused (%s)",
			       e > 0 ? strerror(e) : "it was taken");
}
