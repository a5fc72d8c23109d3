/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names: what is denied does not resolve, what is allowed does, to a synthetic address.
 *
 * The queries are made by hand over UDP, to the address that is the sandbox's resolver; libc's
 * resolver cannot be in a static program, and would answer from files as well. A and AAAA are asked
 * side by side, one lane each.
 */
#include "launcher/init/probe_dns.h"

#include <arpa/nameser.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hostname.h"
#include "base/text.h"

#define HEADER_SIZE    12
#define FLAG_RESPONSE  0x8000
#define FLAG_TRUNCATED 0x0200
#define OPCODE_MASK    0x7800
#define OPT_SIZE       11 /* of our queries: without options */
#define OPTION_EDE     15 /* RFC 8914 section 2 */
#define EDE_BLOCKED    15 /* RFC 8914 section 4.16 */

static uint16_t type_of(uint8_t family)
{
	return family == 6 ? ns_t_aaaa : ns_t_a;
}

static int write_name(struct sbx_writer *w, const char *name)
{
	if (strlen(name) > SBX_HOSTNAME_MAX)
		return -EINVAL;
	while (*name) {
		size_t n = strcspn(name, ".");

		if (n == 0 || n > SBX_LABEL_MAX)
			return -EINVAL;
		sbx_write_u8(w, (uint8_t)n);
		sbx_write_bytes(w, name, n);
		name += n + (name[n] == '.');
	}
	sbx_write_u8(w, 0);
	return 0;
}

int sbx_dns_query(const char *name, uint8_t family, uint16_t id, uint8_t *p, size_t n)
{
	struct sbx_writer w = sbx_writer(p, n);

	sbx_write_u16(&w, id);
	sbx_write_u16(&w, 0x0100); /* recursion desired */
	sbx_write_u16(&w, 1);
	sbx_write_u32(&w, 0);
	sbx_write_u16(&w, 1);
	if (name[0] == '\0' || write_name(&w, name) < 0)
		return -EINVAL;
	sbx_write_u16(&w, type_of(family));
	sbx_write_u16(&w, ns_c_in);
	sbx_write_u8(
		&w,
		0); /* OPT (RFC 6891 section 6.1.2): extended errors are told only to who asks so */
	sbx_write_u16(&w, ns_t_opt);
	sbx_write_u16(&w, SBX_DNS_MAX);
	sbx_write_u32(&w, 0);
	sbx_write_u16(&w, 0);
	return w.failed ? -EINVAL : (int)w.pos;
}

/* Step over a name: labels to the root, or to a compression pointer (RFC 1035 section 4.1.4). */
static void skip_name(struct sbx_reader *r)
{
	for (int i = 0; i <= 128 && !r->failed; i++) {
		uint8_t n = sbx_read_u8(r);

		if ((n & 0xc0) == 0xc0) {
			sbx_read_u8(r);
			return;
		}
		if (n > SBX_LABEL_MAX)
			r->failed = 1;
		if (n == 0)
			return;
		sbx_read_bytes(r, n);
	}
	r->failed = 1;
}

static void read_options(struct sbx_span data, struct sbx_dns_answer *a)
{
	struct sbx_reader r = sbx_reader(data);

	while (!r.failed && r.pos < r.n) {
		uint16_t code = sbx_read_u16(&r);
		struct sbx_span option = sbx_read_bytes(&r, sbx_read_u16(&r));
		struct sbx_reader error = sbx_reader(option);

		if (!r.failed && code == OPTION_EDE && sbx_read_u16(&error) == EDE_BLOCKED &&
		    !error.failed)
			a->blocked = true;
	}
}

static void read_record(struct sbx_reader *r, uint8_t family, struct sbx_dns_answer *a)
{
	const size_t size = family == 6 ? 16 : 4;
	uint16_t type, class;
	struct sbx_span data;

	skip_name(r);
	type = sbx_read_u16(r);
	class = sbx_read_u16(r);
	sbx_read_u32(r); /* TTL */
	data = sbx_read_bytes(r, sbx_read_u16(r));
	if (!r->failed && type == ns_t_opt)
		read_options(data, a);
	if (r->failed || type != type_of(family) || class != ns_c_in)
		return;
	if (data.n != size) {
		r->failed = 1;
		return;
	}
	if (a->n_addrs < SBX_DNS_ADDRS_MAX) {
		a->v[a->n_addrs] = (struct sbx_addr){ .family = family };
		memcpy(a->v[a->n_addrs].b, data.p, size);
	}
	a->n_addrs++;
}

/* Is this the question that was asked? Names are equal in any case of their letters (RFC 1035
 * section 2.3.3); length bytes are below 'A', so folding all of it folds the letters only. */
static bool same_question(struct sbx_span got, const uint8_t *asked)
{
	for (size_t i = 0; i < got.n; i++)
		if (tolower(got.p[i]) != tolower(asked[i]))
			return false;
	return true;
}

int sbx_dns_answer(struct sbx_span packet, const char *name, uint8_t family, uint16_t id,
		   struct sbx_dns_answer *ret_answer)
{
	struct sbx_reader r = sbx_reader(packet);
	struct sbx_dns_answer a = { 0 };
	uint8_t query[HEADER_SIZE + SBX_HOSTNAME_MAX + 2 + 4 + OPT_SIZE];
	struct sbx_span question;
	uint16_t flags, n_answers;
	uint32_t n_others;
	struct sbx_dns_answer others = { 0 };
	int n;

	n = sbx_dns_query(name, family, id, query, sizeof(query));
	if (n < 0)
		return -EBADMSG;
	if (sbx_read_u16(&r) != id)
		return -EBADMSG;
	flags = sbx_read_u16(&r);
	if (!(flags & FLAG_RESPONSE) || (flags & (OPCODE_MASK | FLAG_TRUNCATED)) ||
	    sbx_read_u16(&r) != 1)
		return -EBADMSG;
	n_answers = sbx_read_u16(&r);
	n_others = sbx_read_u16(&r);
	n_others += sbx_read_u16(&r);
	question = sbx_read_bytes(&r, (size_t)n - HEADER_SIZE - OPT_SIZE);
	if (r.failed || !same_question(question, query + HEADER_SIZE))
		return -EBADMSG;
	a.rcode = flags & 0x0f;
	for (uint16_t i = 0; i < n_answers && !r.failed; i++)
		read_record(&r, family, &a);
	for (uint32_t i = 0; i < n_others && !r.failed; i++)
		read_record(&r, family, &others); /* their addresses answer nothing */
	if (r.failed)
		return -EBADMSG;
	a.blocked = others.blocked;
	*ret_answer = a;
	return 0;
}

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

/* A filter that lets nothing through to a resolver refuses every name. */
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
	/* Without Blocked it may be another resolver's word, which the name has reached then. */
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
	/* Without IPv6 the stub has no AAAA to give. */
	v4_only = lane->family == 6 && !r->have_ipv6 && a.n_addrs == 0;
	if (a.rcode == ns_r_noerror && (v4_only || all_synthetic(&a, lane->family)))
		sbx_lane_pass(r, lane, "a synthetic address");
	else if (a.rcode == ns_r_noerror && r->probe->addr.family &&
		 (lane->family == 6 || a.n_addrs > 0))
		sbx_lane_pass(r, lane, "an address"); /* of this resolver: real ones */
	else
		sbx_probe_fail(r, "expected a synthetic address (%s), got %s",
			       lane->family == 6 ? "AAAA" : "A", describe(&a, text, sizeof(text)));
}
