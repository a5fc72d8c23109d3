/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The remote ends that the host's sockets are connected to, and the owner of one, by sock_diag(7),
 * as ss(8) asks. Needs no privilege; sees every user's sockets of this network namespace.
 *
 * For the remote ends the kernel is asked for IPv4 and IPv6, TCP and UDP, one dump each, without a
 * filter by cgroup (sockets of cgroups below would not match) or by address (there may be many).
 */
#include "sys/net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "sys/net/netlink.h"
#include "sys/net/nlmsg.h"

#define TCP_ESTABLISHED 1 /* net/tcp_states.h */
#define TCP_CLOSE_WAIT	8
#define TCP_TIME_WAIT 6
#define TCP_CLOSE     7
#define TCP_LISTEN    10
/* A connected UDP socket is ESTABLISHED (1), any other CLOSE. */
#define STATES (~(1u << TCP_TIME_WAIT | 1u << TCP_CLOSE | 1u << TCP_LISTEN))

struct remotes {
	enum sbx_proto proto;
	sbx_net_remote_fn fn;
	void *userdata;
};

static int on_socket(const struct nlmsghdr *nlh, void *userdata)
{
	const struct remotes *remotes = userdata;
	struct inet_diag_msg m;
	struct sbx_addr addr = { 0 };

	if (sbx_netlink_error(nlh) < 0)
		return sbx_netlink_error(nlh);
	if (nlh->nlmsg_type != SOCK_DIAG_BY_FAMILY || nlh->nlmsg_len < NLMSG_LENGTH(sizeof(m)))
		return 0;
	memcpy(&m, NLMSG_DATA(nlh), sizeof(m));
	if (m.id.idiag_dport == 0 || (m.idiag_family != AF_INET && m.idiag_family != AF_INET6))
		return 0;
	addr.family = m.idiag_family == AF_INET ? 4 : 6;
	memcpy(addr.b, m.id.idiag_dst, addr.family == 4 ? 4 : 16);
	addr = sbx_addr_unmap(&addr);
	remotes->fn(remotes->userdata, &addr, remotes->proto, ntohs(m.id.idiag_dport));
	return 0;
}

static int dump(int fd, uint8_t family, uint32_t seq, struct remotes *remotes)
{
	const struct nlmsghdr nlh = { .nlmsg_type = SOCK_DIAG_BY_FAMILY,
				      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
				      .nlmsg_seq = seq };
	const struct inet_diag_req_v2 request = {
		.sdiag_family = family,
		.sdiag_protocol = remotes->proto == SBX_PROTO_TCP ? IPPROTO_TCP : IPPROTO_UDP,
		.idiag_states = STATES,
	};
	_Alignas(struct nlmsghdr) uint8_t buf[128];
	struct sbx_writer w = sbx_writer(buf, sizeof(buf));
	int r;

	sbx_nlmsg_end(&w, sbx_nlmsg_begin(&w, &nlh, &request, sizeof(request)));
	r = w.failed ? -EMSGSIZE : sbx_netlink_send(fd, buf, w.pos);
	if (r == 0)
		r = sbx_netlink_read(fd, seq, on_socket, remotes);
	/* The dump was disturbed; that is no reason to ask again: an open socket keeps its place
	 * in the kernel's tables and is not missed. */
	return r == -EINTR ? 0 : r;
}

int sbx_net_open_remotes(int diag_fd, sbx_net_remote_fn fn, void *userdata)
{
	static const enum sbx_proto protos[] = { SBX_PROTO_TCP, SBX_PROTO_UDP };
	static const uint8_t families[] = { AF_INET, AF_INET6 };
	uint32_t seq = 1;

	for (size_t i = 0; i < SBX_N_ELEMENTS(protos); i++) {
		struct remotes remotes = { protos[i], fn, userdata };

		for (size_t k = 0; k < SBX_N_ELEMENTS(families); k++) {
			int r = dump(diag_fd, families[k], seq++, &remotes);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* --- the owner of one --- */

struct owner {
	uint16_t far_port; /* in network order */
	bool found;
	uid_t uid;
};

/* Of a socket without a process, as it is closed, the kernel says user 0: only those that are open
 * count. It may answer with a listener where there is no connection. */
static int on_owner(const struct nlmsghdr *nlh, void *userdata)
{
	struct owner *o = userdata;
	struct inet_diag_msg m;

	if (sbx_netlink_error(nlh) < 0)
		return sbx_netlink_error(nlh);
	if (nlh->nlmsg_type != SOCK_DIAG_BY_FAMILY || nlh->nlmsg_len < NLMSG_LENGTH(sizeof(m)))
		return 0;
	memcpy(&m, NLMSG_DATA(nlh), sizeof(m));
	if ((m.idiag_state != TCP_ESTABLISHED && m.idiag_state != TCP_CLOSE_WAIT) ||
	    m.id.idiag_dport != o->far_port || m.idiag_inode == 0)
		return 0;
	o->found = true;
	o->uid = m.idiag_uid;
	return 0;
}

int sbx_net_owner(int diag_fd, const struct sbx_net_end *end, const struct sbx_net_end *far,
		  uid_t *ret_uid)
{
	const struct nlmsghdr nlh = { .nlmsg_type = SOCK_DIAG_BY_FAMILY,
				      .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
				      .nlmsg_seq = 1 };
	struct inet_diag_req_v2 request = {
		.sdiag_family = end->addr.family == 4 ? AF_INET : AF_INET6,
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_states = STATES,
		.id = { .idiag_sport = htons(end->port),
			.idiag_dport = htons(far->port),
			.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	_Alignas(struct nlmsghdr) uint8_t buf[128];
	struct sbx_writer w = sbx_writer(buf, sizeof(buf));
	struct owner o = { .far_port = htons(far->port) };
	int r;

	if (end->addr.family != far->addr.family || !end->addr.family)
		return -EINVAL;
	memcpy(request.id.idiag_src, end->addr.b, sizeof(request.id.idiag_src));
	memcpy(request.id.idiag_dst, far->addr.b, sizeof(request.id.idiag_dst));
	sbx_nlmsg_end(&w, sbx_nlmsg_begin(&w, &nlh, &request, sizeof(request)));
	r = w.failed ? -EMSGSIZE : sbx_netlink_send(diag_fd, buf, w.pos);
	r = r ? r : sbx_netlink_read(diag_fd, nlh.nlmsg_seq, on_owner, &o);
	if (r == 0)
		*ret_uid = o.uid;
	return r ? r : o.found ? 0 : -ENOENT;
}
