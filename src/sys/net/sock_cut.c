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
 * that. First all are listed, then they are ended, each named by its cookie, so that no other
 * socket with the same addresses is hit. This is repeated until nothing more is found: there may be
 * more than one list has room for, and a UDP socket may hide behind another with the same
 * addresses.
 *
 * BATCH requests to end a socket go in one datagram. The kernel answers those that failed, and the
 * last: the answers of a whole batch fit the socket's receive buffer.
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
#define BATCH	      64
#define DESTROY_BYTES (NLMSG_LENGTH(sizeof(struct inet_diag_req_v2)))
/* Not in these states (net/tcp_states.h). The kernel walks a table of its own for listeners, and
 * one for sockets that are only bound. */
#define TCP_TIME_WAIT	   6
#define TCP_CLOSE	   7
#define TCP_LISTEN	   10
#define TCP_BOUND_INACTIVE 13
#define STATES                                                                                     \
	(~(1u << TCP_TIME_WAIT | 1u << TCP_CLOSE | 1u << TCP_LISTEN | 1u << TCP_BOUND_INACTIVE))

struct listed {
	uint8_t family, protocol;
	struct inet_diag_sockid id;
};

struct listing {
	sbx_sock_stays_fn stays;
	void *userdata;
	uint8_t protocol; /* asked for now, by a message of this type */
	uint16_t type;
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
	if (nlh->nlmsg_type != l->type || nlh->nlmsg_len < NLMSG_LENGTH(sizeof(m)))
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

static int dump(int fd, struct listing *l, uint16_t type, struct sbx_span request,
		struct sbx_span filter)
{
	const struct nlmsghdr nlh = { .nlmsg_type = type,
				      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
				      .nlmsg_seq = 1 };
	_Alignas(struct nlmsghdr) uint8_t buf[256 + SBX_SOCK_CUT_FILTER_MAX];
	struct sbx_writer w = sbx_writer(buf, sizeof(buf));
	size_t begin = sbx_nlmsg_begin(&w, &nlh, request.p, request.n);
	int r;

	l->type = type;
	sbx_nlattr_put(&w, INET_DIAG_REQ_BYTECODE, filter.p, filter.n);
	sbx_nlmsg_end(&w, begin);
	r = w.failed ? -EMSGSIZE : sbx_netlink_send(fd, buf, w.pos);
	return r < 0 ? r : sbx_netlink_read(fd, nlh.nlmsg_seq, on_socket, l);
}

/* Of both families. A dump of one family walks the host's whole table as well, and that walk is the
 * slowest part of a change that cuts little. This older request is for both in one walk. */
static int dump_tcp(int fd, struct listing *l, struct sbx_span filter)
{
	const struct inet_diag_req request = { .idiag_family = AF_INET, .idiag_states = STATES };

	l->protocol = IPPROTO_TCP;
	return dump(fd, l, TCPDIAG_GETSOCK, sbx_span(&request, sizeof(request)), filter);
}

static int dump_udp(int fd, struct listing *l, uint8_t family, struct sbx_span filter)
{
	const struct inet_diag_req_v2 request = { .sdiag_family = family,
						  .sdiag_protocol = IPPROTO_UDP,
						  .idiag_states = STATES };

	l->protocol = IPPROTO_UDP;
	return dump(fd, l, SOCK_DIAG_BY_FAMILY, sbx_span(&request, sizeof(request)), filter);
}

/* A dump that was disturbed needs no repetition: an open socket keeps its place in the kernel's
 * tables and is not missed. */
static int list(int fd, struct sbx_span filter, struct listing *l)
{
	static const uint8_t families[] = { AF_INET, AF_INET6 };
	int r;

	l->n = 0;
	r = dump_tcp(fd, l, filter);
	for (size_t i = 0; (r == 0 || r == -EINTR) && i < SBX_N_ELEMENTS(families); i++) {
		r = dump_udp(fd, l, families[i], filter);
		/* A kernel without IPv6 or UDP's part has no such sockets, or cannot tell. */
		if (r == -ENOENT)
			r = 0;
	}
	/* An older kernel does not know the condition. */
	return r == -EINVAL ? -EOPNOTSUPP : r == -EINTR ? 0 : r;
}

/* --- ending --- */

struct ending {
	const struct listed *v; /* a batch; the sequence number of v[i] is i + 1 */
	size_t n;
	size_t n_failed;
	size_t n_gone; /* of those that failed: they ended by themselves */
};

static int on_answer(const struct nlmsghdr *nlh, void *userdata)
{
	struct ending *e = userdata;
	int error = sbx_netlink_error(nlh);

	if (error == 0 || nlh->nlmsg_seq == 0 || nlh->nlmsg_seq > e->n)
		return 0;
	if (error == -EPERM || error == -EACCES || error == -EBADMSG)
		return error;
	e->n_failed++;
	/* Of UDP it may be another socket with the same addresses that was found. */
	e->n_gone += error == -ENOENT && e->v[nlh->nlmsg_seq - 1].protocol == IPPROTO_TCP;
	return 0;
}

static int end_batch(int fd, struct ending *e)
{
	_Alignas(struct nlmsghdr) uint8_t buf[BATCH * DESTROY_BYTES];
	struct sbx_writer w = sbx_writer(buf, sizeof(buf));
	uint32_t last = (uint32_t)e->n;
	int r;

	for (uint32_t seq = 1; seq <= last; seq++) {
		const struct listed *s = &e->v[seq - 1];
		const struct inet_diag_req_v2 request = { .sdiag_family = s->family,
							  .sdiag_protocol = s->protocol,
							  .idiag_states = STATES,
							  .id = s->id };
		const struct nlmsghdr nlh = {
			.nlmsg_type = SOCK_DESTROY,
			.nlmsg_flags = NLM_F_REQUEST | (seq == last ? NLM_F_ACK : 0),
			.nlmsg_seq = seq,
		};

		sbx_nlmsg_end(&w, sbx_nlmsg_begin(&w, &nlh, &request, sizeof(request)));
	}
	r = w.failed ? -EMSGSIZE : sbx_netlink_send(fd, buf, w.pos);
	return r < 0 ? r : sbx_netlink_read(fd, last, on_answer, e);
}

/* Ends @n sockets. 0, or -errno: not all were asked for. */
static int end_all(int fd, const struct listed *v, size_t n, size_t *ret_ended, size_t *ret_gone)
{
	*ret_ended = *ret_gone = 0;
	for (size_t i = 0; i < n; i += BATCH) {
		struct ending e = { .v = v + i, .n = n - i < BATCH ? n - i : BATCH };
		int r = end_batch(fd, &e);

		if (r < 0)
			return r;
		*ret_ended += e.n - e.n_failed;
		*ret_gone += e.n_gone;
	}
	return 0;
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
		size_t n_listed, n_ended = 0, n_gone = 0;
		int r = list(diag_fd, sbx_span(filter, n_filter), &l);

		if (r < 0)
			return r;
		n_listed = l.n < LISTED_MAX ? l.n : LISTED_MAX;
		if (destroy)
			r = end_all(diag_fd, v, n_listed, &n_ended, &n_gone);
		if (r < 0)
			return r;
		ret_cut->n_ended += n_ended;
		ret_cut->n_left = l.n - n_ended - n_gone;
		if (l.n == 0 || n_ended == 0)
			break;
	}
	return 0;
}
