/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Probes of names: a denied name does not resolve; an allowed one resolves to a synthetic address.
 *
 * The queries are made here over UDP, to the sandbox's resolver: libc's resolver cannot be in a
 * static program, and would also answer from files. A and AAAA are asked side by side, one lane
 * each.
 */
#include "launcher/init/init_dns.h"
#include "launcher/init/init_probes.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

int sbx_lane_ask(struct sbx_lane *lane, const struct sbx_probe *probe)
{
	SBX_AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_storage sa;
	socklen_t n_sa =
		sbx_addr_to_sockaddr(probe->addr.family ? &probe->addr : &sbx_self4, 53, &sa);
	uint8_t query[SBX_DNS_MAX];
	int n;

	if (fd < 0)
		return -errno;
	if (getrandom(&lane->id, sizeof(lane->id), 0) != sizeof(lane->id))
		return -EIO;
	n = sbx_dns_query(probe->name, lane->family, lane->id, query, sizeof(query));
	if (n < 0)
		return n;
	if (connect(fd, (struct sockaddr *)&sa, n_sa) < 0 ||
	    send(fd, query, (size_t)n, MSG_NOSIGNAL) < 0)
		return -errno;
	sbx_lane_take_fd(lane, sbx_fd_steal(&fd), POLLIN);
	return 0;
}

int sbx_lane_answer(struct sbx_lane *lane, const char *name, struct sbx_dns_answer *ret_answer)
{
	uint8_t packet[SBX_DNS_MAX];
	ssize_t n = recv(lane->fd, packet, sizeof(packet), MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	return sbx_dns_answer(sbx_span(packet, (size_t)n), name, lane->family, lane->id,
			      ret_answer);
}

static const char *describe(const struct sbx_dns_answer *a, char *buf, size_t n_buf)
{
	static const char *const rcodes[] = { "NOERROR",  "FORMERR", "SERVFAIL",
					      "NXDOMAIN", "NOTIMP",  "REFUSED" };
	const char *rcode = a->rcode < SBX_N_ELEMENTS(rcodes) ? rcodes[a->rcode] : "an error";
	char addr[SBX_ADDR_STR_MAX] = "no address";

	if (a->n_addrs)
		sbx_addr_format(&a->v[0], addr, sizeof(addr));
	sbx_text_cut(buf, n_buf, "%s%s with %s", rcode, a->blocked ? " (Blocked)" : "", addr);
	return buf;
}

/* --- dns_refused --- */

/* A filter without a resolver refuses every name. */
static void refused_error(struct sbx_probe_run *r, struct sbx_lane *lane, int e)
{
	if (sbx_errno_is_refusal(e))
		sbx_lane_pass(r, lane, "no resolver can be asked");
	else
		sbx_probe_fail(r, "asking for it: %s",
			       e == EBADMSG ? "a malformed answer" : strerror(e));
}

static void start_lanes(struct sbx_probe_run *r,
			void (*on_error)(struct sbx_probe_run *, struct sbx_lane *, int))
{
	int e[SBX_PROBE_LANES];

	for (size_t i = 0; i < SBX_PROBE_LANES; i++) {
		sbx_lane_open(&r->lanes[i], i == 0 ? 4 : 6);
		e[i] = sbx_lane_ask(&r->lanes[i], r->probe);
	}
	for (size_t i = 0; i < SBX_PROBE_LANES; i++)
		if (e[i] < 0)
			on_error(r, &r->lanes[i], -e[i]);
}

void sbx_probe_dns_refused(struct sbx_probe_run *r)
{
	start_lanes(r, refused_error);
}

void sbx_probe_dns_refused_ready(struct sbx_probe_run *r, struct sbx_lane *lane)
{
	struct sbx_dns_answer a;
	char text[96];
	int e = sbx_lane_answer(lane, r->probe->name, &a);

	if (e == -EAGAIN)
		return;
	if (e < 0) {
		refused_error(r, lane, -e);
		return;
	}
	/* Without Blocked the answer may come from another resolver, and then the name has left the
	 * sandbox. */
	if (a.rcode == ns_r_nxdomain && a.blocked && a.n_addrs == 0)
		sbx_lane_pass(r, lane, "blocked");
	else
		sbx_probe_fail(r, "expected NXDOMAIN with the error Blocked, got %s",
			       describe(&a, text, sizeof(text)));
}

/* --- dns_allowed --- */

static void allowed_error(struct sbx_probe_run *r, struct sbx_lane *lane, int e)
{
	(void)lane;
	sbx_probe_fail(r, "asking for it: %s", e == EBADMSG ? "a malformed answer" : strerror(e));
}

void sbx_probe_dns_allowed(struct sbx_probe_run *r)
{
	start_lanes(r, allowed_error);
}

static bool all_synthetic(const struct sbx_dns_answer *a, uint8_t family)
{
	const struct sbx_cidr *range = family == 6 ? &sbx_synthetic6 : &sbx_synthetic4;

	for (size_t i = 0; i < a->n_addrs && i < SBX_DNS_ADDRS_MAX; i++)
		if (!sbx_cidr_contains(range, &a->v[i]))
			return false;
	return a->n_addrs > 0 && a->n_addrs <= SBX_DNS_ADDRS_MAX;
}

void sbx_probe_dns_allowed_ready(struct sbx_probe_run *r, struct sbx_lane *lane)
{
	struct sbx_dns_answer a;
	char text[96];
	int e = sbx_lane_answer(lane, r->probe->name, &a);
	bool v4_only;

	if (e == -EAGAIN)
		return;
	if (e < 0) {
		allowed_error(r, lane, -e);
		return;
	}
	/* Without IPv6 the stub gives no AAAA. */
	v4_only = lane->family == 6 && !r->have_ipv6 && a.n_addrs == 0;
	if (a.rcode == ns_r_noerror && (v4_only || all_synthetic(&a, lane->family)))
		sbx_lane_pass(r, lane, "a synthetic address");
	else if (a.rcode == ns_r_noerror && r->probe->addr.family &&
		 (lane->family == 6 || a.n_addrs > 0))
		sbx_lane_pass(r, lane, "an address"); /* a real resolver gives real addresses */
	else
		sbx_probe_fail(r, "expected a synthetic address (%s), got %s",
			       lane->family == 6 ? "AAAA" : "A", describe(&a, text, sizeof(text)));
}
