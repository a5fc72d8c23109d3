/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ends the flows of a sandbox of attach cgroup that its policy no longer allows.
 *
 * The rules already refuse their packets. But a program that only waits sends none, and what the
 * peer sends arrives until the program's kernel answers. So the sockets are listed and destroyed:
 * the program gets ECONNABORTED, and the peer a reset when it sends next (the one that the kernel
 * sends at once is refused by the rules).
 *
 * A socket belongs to the cgroup that it was made in for as long as it lives; the kernel filters by
 * that. First all are listed, then they are ended one by one, each named by its cookie, so that no
 * other socket with the same addresses is hit. This is repeated until nothing more is found: there
 * may be more than one list has room for, and a UDP socket may hide behind another with the same
 * addresses.
 */
#include "sys/net/sock_cut.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "sys/net/netlink.h"
#include "sys/net/nlmsg.h"

#define LISTED_MAX    16384 /* sockets of one list */
#define ROUNDS_MAX    64
#define TCP_TIME_WAIT 6 /* net/tcp_states.h */
#define TCP_CLOSE     7
#define TCP_LISTEN    10
#define STATES	      (~(1u << TCP_TIME_WAIT | 1u << TCP_CLOSE | 1u << TCP_LISTEN))

struct listed {
	uint8_t family, protocol;
	struct inet_diag_sockid id;
};

struct listing {
	sbx_sock_stays_fn stays;
	void *userdata;
	uint8_t protocol; /* asked for now */
	struct listed *v; /* LISTED_MAX of room */
	size_t n;	  /* those past the room are only counted */
};

static size_t put_op(uint8_t *to, uint8_t code, size_t yes, size_t no)
{
	const struct inet_diag_bc_op op = { code, (uint8_t)yes, (uint16_t)no };

	memcpy(to, &op, sizeof(op));
	return sizeof(op);
}

/* A program for inet_diag_bc_run(): it accepts if it ends exactly behind its last operation, and
 * rejects if it jumps 4 bytes further. For each cgroup: a condition, and a jump to the end. The
 * kernel wants every operation on the way of the "yes". */
size_t sbx_sock_cut_filter(const uint64_t *cgroups, size_t n,
			   uint8_t ret_filter[SBX_SOCK_CUT_FILTER_MAX])
{
	const size_t n_op = sizeof(struct inet_diag_bc_op), n_cond = n_op + sizeof(uint64_t);
	size_t at = 0, n_all = n * (n_cond + n_op) - n_op; /* no jump after the last */

	for (size_t i = 0; i < n; i++) {
		size_t left = n_all - at;

		at += put_op(ret_filter + at, INET_DIAG_BC_CGROUP_COND, n_cond, n_cond + n_op);
		memcpy(ret_filter + at, &cgroups[i], sizeof(cgroups[i]));
		at += sizeof(cgroups[i]);
		if (i + 1 < n)
			at += put_op(ret_filter + at, INET_DIAG_BC_JMP, n_op, left - n_cond);
	}
	return at;
}

static struct sbx_addr addr_of(uint8_t family, const uint32_t *words)
{
	struct sbx_addr addr = { .family = family == AF_INET ? 4 : 6 };

	memcpy(addr.b, words, addr.family == 4 ? 4 : 16);
	return sbx_addr_unmap(&addr);
}

static int on_socket(const struct nlmsghdr *nlh, void *userdata)
{
	struct listing *l = userdata;
	struct sbx_sock_flow f = { .proto = l->protocol == IPPROTO_TCP ? SBX_PROTO_TCP :
								 SBX_PROTO_UDP };
	struct inet_diag_msg m;

	if (sbx_netlink_error(nlh) < 0)
		return sbx_netlink_error(nlh);
	if (nlh->nlmsg_type != SOCK_DIAG_BY_FAMILY || nlh->nlmsg_len < NLMSG_LENGTH(sizeof(m)))
		return 0;
	memcpy(&m, NLMSG_DATA(nlh), sizeof(m));
	if (m.id.idiag_dport == 0 || (m.idiag_family != AF_INET && m.idiag_family != AF_INET6))
		return 0;
	f.remote = addr_of(m.idiag_family, m.id.idiag_dst);
	f.local = addr_of(m.idiag_family, m.id.idiag_src);
	f.remote_port = ntohs(m.id.idiag_dport);
	f.local_port = ntohs(m.id.idiag_sport);
	f.cookie = (uint64_t)m.id.idiag_cookie[1] << 32 | m.id.idiag_cookie[0];
	if (l->stays(l->userdata, &f))
		return 0;
	if (l->n < LISTED_MAX)
		l->v[l->n] = (struct listed){ m.idiag_family, l->protocol, m.id };
	l->n++;
	return 0;
}

static int ask(int fd, uint16_t type, uint16_t flags, const struct inet_diag_req_v2 *request,
	       struct sbx_span filter, sbx_netlink_cb cb, void *userdata)
{
	const struct nlmsghdr nlh = { .nlmsg_type = type,
				      .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
				      .nlmsg_seq = 1 };
	_Alignas(struct nlmsghdr) uint8_t buf[256 + SBX_SOCK_CUT_FILTER_MAX];
	struct sbx_writer w = sbx_writer(buf, sizeof(buf));
	size_t begin = sbx_nlmsg_begin(&w, &nlh, request, sizeof(*request));
	int r;

	if (filter.n)
		sbx_nlattr_put(&w, INET_DIAG_REQ_BYTECODE, filter.p, filter.n);
	sbx_nlmsg_end(&w, begin);
	r = w.failed ? -EMSGSIZE : sbx_netlink_send(fd, buf, w.pos);
	return r < 0 ? r : sbx_netlink_read(fd, nlh.nlmsg_seq, cb, userdata);
}

/* A dump that was disturbed needs no repetition: an open socket keeps its place in the kernel's
 * tables and is not missed. */
static int list(int fd, struct sbx_span filter, struct listing *l)
{
	static const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP };
	static const uint8_t families[] = { AF_INET, AF_INET6 };

	l->n = 0;
	for (size_t i = 0; i < SBX_N_ELEMENTS(protocols) * SBX_N_ELEMENTS(families); i++) {
		struct inet_diag_req_v2 request = { .sdiag_family = families[i % 2],
						    .sdiag_protocol = protocols[i / 2],
						    .idiag_states = STATES };
		int r;

		l->protocol = request.sdiag_protocol;
		r = ask(fd, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &request, filter, on_socket, l);
		/* An older kernel does not know the condition; one without IPv6 or UDP's part has
		 * no such sockets, or cannot tell of them. */
		if (r == -EINVAL)
			return -EOPNOTSUPP;
		if (r < 0 && r != -EINTR && !(r == -ENOENT && i > 0))
			return r;
	}
	return 0;
}

static int on_answer(const struct nlmsghdr *nlh, void *userdata)
{
	(void)userdata;
	return sbx_netlink_error(nlh);
}

static int end_one(int fd, const struct listed *s)
{
	const struct inet_diag_req_v2 request = { .sdiag_family = s->family,
						  .sdiag_protocol = s->protocol,
						  .idiag_states = STATES,
						  .id = s->id };

	return ask(fd, SOCK_DESTROY, NLM_F_ACK, &request, sbx_span(NULL, 0), on_answer, NULL);
}

int sbx_sock_cut(int diag_fd, const uint64_t *cgroups, size_t n, bool destroy,
		 sbx_sock_stays_fn stays, void *userdata, struct sbx_sock_cut *ret_cut)
{
	SBX_AUTO_FREE struct listed *v = NULL;
	struct listing l = { .stays = stays, .userdata = userdata };
	uint8_t filter[SBX_SOCK_CUT_FILTER_MAX];
	size_t n_filter;

	*ret_cut = (struct sbx_sock_cut){ 0 };
	if (n == 0 || n > SBX_SOCK_CUT_CGROUPS_MAX)
		return n ? -E2BIG : 0;
	n_filter = sbx_sock_cut_filter(cgroups, n, filter);
	l.v = v = calloc(LISTED_MAX, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		size_t n_listed, n_ended = 0;
		int r = list(diag_fd, sbx_span(filter, n_filter), &l);

		if (r < 0)
			return r;
		n_listed = l.n < LISTED_MAX ? l.n : LISTED_MAX;
		for (size_t i = 0; destroy && i < n_listed; i++) {
			r = end_one(diag_fd, &v[i]);
			if (r == -EPERM || r == -EACCES)
				return r;
			n_ended += r == 0;
		}
		ret_cut->n_ended += n_ended;
		ret_cut->n_left = l.n - n_ended;
		if (l.n == 0 || n_ended == 0)
			break;
	}
	return 0;
}
