/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides flows. PURE.
 *
 * Three judgements, each of which can only refuse more than the one before:
 *   1. sbx_core_decide_flow: may the sandbox go there? A synthetic address stands for its pinned
 *      name, judged by name and port. Any other address is judged as an address (an explicit cidr
 *      entry, or mode full), or by name if a real DNS answer gave it (a lease).
 *   2. sbx_core_judge_hello and _request: does the flow begin with the name that it was opened for?
 *      A flow to a pinned name must (must_match, must_parse). A flow to an address has no name to
 *      compare: it is refused if a floor or a deny entry refuses the server that it names. In mode
 *      full it is carried even if it is neither TLS nor HTTP. Hidden names (ECH) and ambiguous
 *      names are refused everywhere. So is a flow that begins as TLS or HTTP and then breaks its
 *      rules: a tolerant server may still read a name in it.
 *   3. sbx_core_candidates: may the addresses be dialled? Floors, deny cidrs and address classes
 *      (policy), the host's own addresses (ours).
 */

#include "broker/core/core.h"

#include <stdlib.h>
#include <string.h>

static struct sbx_verdict deny(enum sbx_reason reason)
{
	return (struct sbx_verdict){ .reason = reason, .rule = UINT32_MAX };
}

/* --- own addresses --- */

static int compare_addrs(const void *a, const void *b)
{
	const struct sbx_addr *x = a, *y = b;

	return x->family != y->family ? x->family - y->family : memcmp(x->b, y->b, sizeof(x->b));
}

void sbx_core_sort_addrs(struct sbx_addr *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), compare_addrs);
}

static bool is_listed(const struct sbx_core *core, const struct sbx_addr *addr)
{
	for (size_t i = 0; i < core->n_own_nets; i++)
		if (sbx_cidr_contains(&core->own_nets[i], addr))
			return true;
	return core->n_own && bsearch(addr, core->own, core->n_own, sizeof(*addr), compare_addrs);
}

bool sbx_core_is_own(const struct sbx_core *core, const struct sbx_addr *addr)
{
	struct sbx_addr v4[SBX_ADDR_EMBEDDED_MAX];
	size_t n = sbx_addr_embedded(addr, v4);

	if (core->own_unknown || is_listed(core, addr))
		return true;
	for (size_t i = 0; i < n; i++)
		if (is_listed(core, &v4[i]))
			return true;
	return false;
}

/* --- the destination --- */

/* A literal address that no entry allows is refused for a reason of its own. */
static struct sbx_verdict literal(struct sbx_verdict v)
{
	if (v.action == SBX_DENY &&
	    (v.reason == SBX_REASON_DEFAULT_DENY || v.reason == SBX_REASON_UNKNOWN))
		v.reason = SBX_REASON_LITERAL_ADDRESS;
	return v;
}

static enum sbx_check check_of_port(uint16_t port)
{
	return port == 443 ? SBX_CHECK_TLS : port == 80 ? SBX_CHECK_HTTP : SBX_CHECK_NONE;
}

static void decide_synthetic(const struct sbx_core *core, struct sbx_flow_target *t)
{
	t->name = sbx_pins_name(core->pins, &t->addr);
	if (!t->name) {
		t->verdict = deny(SBX_REASON_NO_PIN);
		return;
	}
	if (strcmp(t->name, core->config->selftest_name) == 0) {
		t->verdict = deny(SBX_REASON_PORT);
		if (t->proto == SBX_PROTO_TCP) {
			t->verdict =
				(struct sbx_verdict){ .action = SBX_ALLOW, .rule = UINT32_MAX };
			t->kind = SBX_FLOW_SELFTEST;
		}
		return;
	}
	t->verdict = sbx_policy_decide_name(core->policy, t->name, t->proto, t->port);
	if (t->verdict.action != SBX_ALLOW)
		return;
	t->kind = SBX_FLOW_NAME;
	t->terminate = t->verdict.terminate;
	t->check = t->verdict.check;
	t->must_match = true;
	t->must_parse = true;
}

/* By the name of a lease, if t->name is set. */
static void decide_address(const struct sbx_core *core, struct sbx_flow_target *t)
{
	t->verdict = t->name ? sbx_policy_decide_name(core->policy, t->name, t->proto, t->port)
			     : literal(sbx_policy_decide_addr(core->policy, &t->addr, t->proto,
							      t->port));
	/* A lease's name: sbx-tls is reached through pinned names only. */
	if (t->verdict.terminate)
		t->verdict = deny(SBX_REASON_NOT_TERMINATED);
	if (t->verdict.action != SBX_ALLOW)
		return;
	t->kind = SBX_FLOW_ADDRESS;
	t->check = t->verdict.check;
	t->must_parse = t->check != SBX_CHECK_NONE && sbx_verdict_by_entry(&t->verdict);
	/* The address may serve a name that a floor denies, or one whose flows are terminated. A
	 * rule or a live list lifts neither. */
	if (t->check == SBX_CHECK_NONE && (t->verdict.reason != SBX_REASON_LIST_ALLOW ||
					   sbx_policy_terminates_any(core->policy)))
		t->check = check_of_port(t->port);
}

static void decide_target(const struct sbx_core *core, struct sbx_flow_target *t)
{
	if (sbx_pins_is_synthetic(&t->addr))
		decide_synthetic(core, t);
	else
		decide_address(core, t);
	if (t->proto != SBX_PROTO_TCP)
		t->check = SBX_CHECK_NONE;
}

void sbx_core_decide_flow(const struct sbx_core *core, enum sbx_proto proto,
			  const struct sbx_addr *addr, uint16_t port, uint64_t now_ms,
			  struct sbx_flow_target *ret_target)
{
	struct sbx_flow_target *t = ret_target;

	*t = (struct sbx_flow_target){
		.proto = proto,
		.addr = sbx_addr_unmap(addr),
		.port = port,
		.verdict = deny(SBX_REASON_UNKNOWN),
	};
	if (core->leases && !sbx_pins_is_synthetic(&t->addr))
		t->name = sbx_leases_name(core->leases, &t->addr, now_ms);
	decide_target(core, t);
}

/* --- the first bytes --- */

/* Judges a server's name in a flow to an address: refused by a floor or a deny entry, and if flows
 * to that name are terminated. */
static struct sbx_verdict judge_loose_name(const struct sbx_core *core,
					   const struct sbx_flow_target *target, const char *name)
{
	struct sbx_verdict v =
		sbx_policy_decide_server(core->policy, name, target->proto, target->port);

	if (v.action == SBX_DENY &&
	    (v.reason == SBX_REASON_FLOOR || v.reason == SBX_REASON_LIST_DENY ||
	     v.reason == SBX_REASON_RULE_DENY || v.reason == SBX_REASON_LIVE_DENY))
		return v;
	if (sbx_verdict_by_entry(&v) && !v.terminate)
		return target->verdict;
	/* On a port without an entry too: the address may serve the name there. */
	if (sbx_policy_terminates(core->policy, name))
		return deny(SBX_REASON_NOT_TERMINATED);
	return target->verdict;
}

struct sbx_verdict sbx_core_judge_hello(const struct sbx_core *core,
					const struct sbx_flow_target *target, int r,
					const struct sbx_tls_hello *hello)
{
	if (r != 0) {
		bool unnamed = hello->reason == SBX_REASON_SNI_ABSENT ||
			       hello->reason == SBX_REASON_SNI_MISMATCH; /* an address */

		if (unnamed && !target->must_match)
			return target->verdict;
		if (hello->reason == SBX_REASON_TLS_MALFORMED && !hello->is_tls &&
		    !target->must_parse)
			return target->verdict;
		return deny(hello->reason);
	}
	if (!target->must_match)
		return judge_loose_name(core, target, hello->sni);
	if (!target->name || strcmp(hello->sni, target->name) != 0)
		return deny(SBX_REASON_SNI_MISMATCH);
	return target->verdict;
}

/* May a request that the judge refused be carried as opaque bytes? */
static bool may_be_opaque(const struct sbx_flow_target *target, const struct sbx_http_judge *judge)
{
	return !target->must_parse &&
	       (judge->reason == SBX_REASON_HTTP_UPGRADE ||
		(judge->reason == SBX_REASON_HTTP_MALFORMED && !judge->is_http));
}

struct sbx_verdict sbx_core_judge_request(const struct sbx_core *core,
					  const struct sbx_flow_target *target, int r,
					  const struct sbx_http_judge *judge,
					  const struct sbx_http_event *event, bool *ret_opaque)
{
	struct sbx_verdict v = target->verdict;

	*ret_opaque = false;
	if (r != 0) {
		if (!may_be_opaque(target, judge))
			return deny(judge->reason);
		*ret_opaque = true;
		return target->verdict;
	}
	if (!target->must_match) {
		if (event->host[0] && !event->host_addr.family)
			v = judge_loose_name(core, target, event->host);
		*ret_opaque = v.action == SBX_ALLOW && event->upgrade;
		return v;
	}
	if (!target->name || strcmp(event->host, target->name) != 0)
		return deny(SBX_REASON_HOST_MISMATCH);
	if (event->host_port && event->host_port != target->port)
		return deny(SBX_REASON_HOST_MISMATCH);
	return target->verdict;
}

/* --- addresses to dial --- */

static struct sbx_verdict judge_address(const struct sbx_core *core,
					const struct sbx_flow_target *target,
					const struct sbx_addr *addr)
{
	struct sbx_verdict v = sbx_policy_decide_resolved(core->policy, addr, target->proto,
							  target->port, target->verdict.private_ok);

	if (v.action == SBX_ALLOW && sbx_core_is_own(core, addr))
		return deny(SBX_REASON_ADDRESS_CLASS);
	return v;
}

bool sbx_core_may_pin(const struct sbx_core *core, const char *name, const struct sbx_addr *addr,
		      enum sbx_proto proto, uint16_t port)
{
	struct sbx_flow_target target = {
		.proto = proto,
		.port = port,
		.verdict = sbx_policy_decide_name(core->policy, name, proto, port),
	};

	return target.verdict.action == SBX_ALLOW &&
	       judge_address(core, &target, addr).action == SBX_ALLOW;
}

static bool have(const struct sbx_candidates *c, const struct sbx_addr *addr)
{
	for (size_t i = 0; i < c->n; i++)
		if (sbx_addr_equal(&c->v[i], addr))
			return true;
	return false;
}

/* Alternates the families; keeps the order within each. */
static void interleave(struct sbx_candidates *c, uint8_t first_family)
{
	struct sbx_addr in[SBX_CANDIDATES_MAX];
	size_t at[2] = { 0, 0 }, n = 0;

	memcpy(in, c->v, sizeof(in));
	for (size_t turn = 0; n < c->n; turn ^= 1) {
		size_t *i = &at[turn];

		while (*i < c->n && (in[*i].family == first_family) != (turn == 0))
			++*i;
		if (*i < c->n)
			c->v[n++] = in[(*i)++];
	}
}

void sbx_core_candidates(const struct sbx_core *core, const struct sbx_flow_target *target,
			 const struct sbx_addr *addrs, size_t n, uint8_t first_family,
			 struct sbx_candidates *ret_candidates)
{
	struct sbx_candidates *c = ret_candidates;

	c->n = 0;
	c->refused = deny(SBX_REASON_UNKNOWN);
	c->refused_addr = (struct sbx_addr){ 0 };
	for (size_t i = 0;
	     i < n && i < core->config->limits.n_addresses && c->n < SBX_CANDIDATES_MAX; i++) {
		struct sbx_addr a = sbx_addr_unmap(&addrs[i]);
		struct sbx_verdict v = judge_address(core, target, &a);

		if (v.action == SBX_ALLOW && (a.family == 4 || a.family == 6)) {
			if (!have(c, &a))
				c->v[c->n++] = a;
		} else {
			c->refused = v;
			c->refused_addr = a;
		}
	}
	interleave(c, first_family);
}

struct sbx_verdict sbx_core_judge_logged(const struct sbx_core *core, enum sbx_proto proto,
					 const struct sbx_addr *addr, uint16_t port,
					 const char **ret_name)
{
	struct sbx_verdict v;

	*ret_name = sbx_pins_is_synthetic(addr) ? sbx_pins_name(core->pins, addr) : NULL;
	if (proto != SBX_PROTO_TCP && proto != SBX_PROTO_UDP)
		return deny(sbx_policy_air_gapped(core->policy) ? SBX_REASON_AIR_GAP
								: SBX_REASON_FIREWALL);
	v = *ret_name ? sbx_policy_decide_name(core->policy, *ret_name, proto, port)
		      : literal(sbx_policy_decide_addr(core->policy, addr, proto, port));
	/* The filter refused it, even if an entry allows it. */
	return v.action == SBX_DENY ? v : deny(SBX_REASON_FIREWALL);
}

/* --- a policy that was changed --- */

/* Were the requests of @had judged by a live rule, and @t asks for another one or for none? */
static bool other_requests(const struct sbx_flow_target *t, const struct sbx_flow_target *had)
{
	if (had->terminate != SBX_TERMINATE_LIVE)
		return false; /* is_stricter() compares the numbers */
	return t->terminate != SBX_TERMINATE_LIVE ||
	       strcmp(t->verdict.requests, had->verdict.requests) != 0;
}

/* Does @t ask for more than what @had was opened by? What was not checked then cannot be checked
 * any more. */
static bool is_stricter(const struct sbx_flow_target *t, const struct sbx_flow_target *had)
{
	return (t->terminate && t->terminate != had->terminate) || other_requests(t, had) ||
	       (t->check != SBX_CHECK_NONE && t->check != had->check) ||
	       (t->must_match && !had->must_match) || (t->must_parse && !had->must_parse);
}

/* Of the address that was dialled: the server's, or the proxy's. */
static struct sbx_verdict judge_reached(const struct sbx_core *core,
					const struct sbx_flow_target *t,
					const struct sbx_core_opened *o)
{
	struct sbx_verdict v = t->verdict;

	if (t->kind == SBX_FLOW_ADDRESS)
		v = judge_address(core, t, &t->addr);
	if (v.action != SBX_ALLOW || !o->reached)
		return v;
	if (!o->proxy_port)
		return judge_address(core, t, o->reached);
	return sbx_policy_admits_proxy(core->policy, o->reached, o->proxy_port,
				       sbx_core_is_own(core, o->reached)) ?
		       v :
		       deny(SBX_REASON_PROXY_ADDRESS);
}

struct sbx_verdict sbx_core_judge_again(const struct sbx_core *core,
					const struct sbx_core_opened *o,
					struct sbx_flow_target *target)
{
	struct sbx_flow_target t = {
		.proto = target->proto,
		.addr = target->addr,
		.port = target->port,
		.name = target->name,
	};
	struct sbx_verdict v;

	decide_target(core, &t);
	if (t.verdict.action != SBX_ALLOW || t.kind != target->kind)
		return t.verdict.action == SBX_ALLOW ? deny(SBX_REASON_POLICY_CHANGED) : t.verdict;
	if (is_stricter(&t, target)) {
		t.verdict.action = SBX_DENY;
		t.verdict.reason = SBX_REASON_POLICY_CHANGED;
		return t.verdict;
	}
	v = judge_reached(core, &t, o);
	for (size_t i = 0; v.action == SBX_ALLOW && i < o->n_named; i++)
		v = judge_loose_name(core, &t, o->named[i]);
	if (v.action != SBX_ALLOW)
		return v;
	target->verdict = t.verdict;
	target->verdict.check = target->check;
	target->verdict.terminate = target->terminate;
	return target->verdict;
}
