/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides the stub's answers. PURE.
 *
 * An allowed name gets its synthetic address, and no query goes upstream: the broker resolves the
 * name when a flow to it begins. A refused name is never resolved, so that no data leaves the host
 * in it. It gets NXDOMAIN (with RFC 8914 Blocked); REFUSED would make clients wait and ask again.
 *
 * With resolved pins (attach cgroup) an allowed name is resolved at once, by our own questions for
 * A and AAAA, and the answer has those addresses that may pass.
 *
 * Queries are passed on only if the profile asks for real answers (config->dns_real). Floors and
 * deny entries hold there too: for the name in the query and, if it asks for addresses, for every
 * name of the answer's CNAME chain.
 */

#include "broker/core/core.h"

#include <string.h>

/* RFC 9460. These records carry addresses that would have no lease, and keys to hide the server's
 * name (ECH): a flow that hides it is refused. Without the records clients ask for A and AAAA. */
enum { TYPE_SVCB = 64, TYPE_HTTPS = 65 };

static void refuse(struct sbx_dns_decision *d, enum sbx_dns_rcode rcode, enum sbx_reason reason)
{
	d->action = SBX_DNS_REFUSE;
	d->rcode = rcode;
	d->verdict = (struct sbx_verdict){ .reason = reason, .rule = UINT32_MAX };
}

static bool asks_for_addresses(const struct sbx_dns_query *query)
{
	return query->qtype == SBX_DNS_TYPE_A || query->qtype == SBX_DNS_TYPE_AAAA;
}

/* Resolved pins: no flow comes to the broker, so the self-test's name leads to the stub. */
static void answer_selftest(const struct sbx_core *core, const struct sbx_dns_query *query,
			    struct sbx_dns_decision *d)
{
	const struct sbx_addr *stub = &core->config->stub_addr;

	d->action = SBX_DNS_ANSWER;
	d->rcode = SBX_DNS_NOERROR;
	if (query->qtype != (stub->family == 4 ? SBX_DNS_TYPE_A : SBX_DNS_TYPE_AAAA))
		return;
	d->n_addrs = 1;
	d->addrs[0] = *stub;
}

/* The kernel judges by address and port: a name without ports of its own has no pins. */
static void pin_resolved(const struct sbx_core *core, const struct sbx_dns_query *query,
			 struct sbx_dns_decision *d)
{
	struct sbx_policy_port port;

	d->action = asks_for_addresses(query) ? SBX_DNS_PIN : SBX_DNS_ANSWER;
	d->rcode = SBX_DNS_NOERROR;
	if (d->action == SBX_DNS_PIN &&
	    !sbx_policy_name_ports(core->policy, query->name, &port, 1)) {
		d->action = SBX_DNS_REFUSE;
		d->rcode = SBX_DNS_NXDOMAIN;
		d->verdict.action = SBX_DENY;
		d->verdict.reason = SBX_REASON_PORT;
	}
}

static void answer_pin(const struct sbx_core *core, const struct sbx_dns_query *query,
		       struct sbx_dns_decision *d)
{
	uint32_t index;
	int r;

	d->action = SBX_DNS_ANSWER;
	d->rcode = SBX_DNS_NOERROR;
	if (!asks_for_addresses(query))
		return;
	r = sbx_pins_add(core->pins, query->name, &index);
	if (r != 0) {
		refuse(d, SBX_DNS_SERVFAIL,
		       r < 0 ? SBX_REASON_RESOURCE : SBX_REASON_PINS_EXHAUSTED);
		return;
	}
	d->n_addrs = 1;
	d->addrs[0] =
		query->qtype == SBX_DNS_TYPE_A ? sbx_pins_addr4(index) : sbx_pins_addr6(index);
}

/* Real answers: only floors and deny entries refuse. In mode offline, and under an air gap, policy
 * refuses names for air_gap, but the query may go to resolvers that the profile lists: they are the
 * sandbox's one exit then. */
static bool may_forward(const struct sbx_core *core, const struct sbx_verdict *v)
{
	if (!core->config->dns_real)
		return false;
	/* Resolved pins in mode full: an address that only a name allows needs a pin. */
	if (v->action == SBX_ALLOW)
		return !core->config->resolved_pins || sbx_policy_is_open(core->policy);
	return v->reason == SBX_REASON_AIR_GAP && core->config->resolvers_listed;
}

/* No entry can name it. */
static void decide_odd_name(const struct sbx_core *core, const struct sbx_dns_query *query,
			    struct sbx_dns_decision *d)
{
	bool gap = sbx_policy_air_gapped(core->policy);

	refuse(d, SBX_DNS_NXDOMAIN, gap ? SBX_REASON_AIR_GAP : SBX_REASON_DEFAULT_DENY);
	if (core->config->dns_real && query->n_question && (!gap || core->config->resolvers_listed))
		d->action = SBX_DNS_FORWARD;
}

void sbx_core_decide_dns(const struct sbx_core *core, const struct sbx_dns_query *query,
			 struct sbx_dns_decision *ret_decision)
{
	struct sbx_dns_decision *d = ret_decision;

	*d = (struct sbx_dns_decision){ .rcode = SBX_DNS_NXDOMAIN };
	if (query->qclass != SBX_DNS_CLASS_IN) {
		refuse(d, SBX_DNS_REFUSED, SBX_REASON_DEFAULT_DENY);
		return;
	}
	if (query->is_hostname && strcmp(query->name, core->config->selftest_name) == 0) {
		d->verdict = (struct sbx_verdict){ .action = SBX_ALLOW, .rule = UINT32_MAX };
		if (core->config->resolved_pins)
			answer_selftest(core, query, d);
		else
			answer_pin(core, query, d);
		return;
	}
	if (!query->is_hostname) {
		decide_odd_name(core, query, d);
		return;
	}
	d->verdict = sbx_policy_decide_name(core->policy, query->name, SBX_PROTO_DNS, 0);
	if (may_forward(core, &d->verdict)) {
		bool hidden = query->qtype == TYPE_SVCB || query->qtype == TYPE_HTTPS;

		d->action = hidden ? SBX_DNS_ANSWER : SBX_DNS_FORWARD;
		d->rcode = SBX_DNS_NOERROR;
	} else if (d->verdict.action == SBX_ALLOW && core->config->resolved_pins) {
		pin_resolved(core, query, d);
	} else if (d->verdict.action == SBX_ALLOW) {
		answer_pin(core, query, d);
	} else {
		d->action = SBX_DNS_REFUSE;
	}
}

/* --- resolved pins --- */

/* Every address was refused: gives the reason that a flow would get. */
static void refuse_addresses(const struct sbx_core *core, const struct sbx_dns_query *query,
			     const struct sbx_resolve_result *result, struct sbx_dns_decision *d)
{
	struct sbx_policy_port first = { .proto = SBX_PROTO_TCP };
	struct sbx_flow_target target;
	struct sbx_candidates c;

	sbx_policy_name_ports(core->policy, query->name, &first, 1);
	target = (struct sbx_flow_target){
		.proto = first.proto,
		.port = first.port,
		.verdict =
			sbx_policy_decide_name(core->policy, query->name, first.proto, first.port),
	};
	sbx_core_candidates(core, &target, result->v, result->n, 6, &c);
	if (c.n) { /* an address is good, and still has no pin: there was no room */
		refuse(d, SBX_DNS_SERVFAIL, SBX_REASON_PINS_EXHAUSTED);
		return;
	}
	d->rcode = SBX_DNS_NXDOMAIN;
	d->verdict = c.refused;
	d->n_addrs = 1;
	d->addrs[0] = c.refused_addr;
}

void sbx_core_decide_pinned(const struct sbx_core *core, const struct sbx_dns_query *query,
			    const struct sbx_resolve_result *result, const struct sbx_addr *pinned,
			    size_t n_pinned, struct sbx_dns_decision *ret_decision)
{
	bool v4 = query->qtype == SBX_DNS_TYPE_A;
	enum sbx_resolve_status status = v4 ? result->status4 : result->status6;
	struct sbx_dns_decision *d = ret_decision;
	size_t n_of_family = 0;
	struct sbx_verdict v;

	*d = (struct sbx_dns_decision){ .action = SBX_DNS_REFUSE, .rcode = SBX_DNS_SERVFAIL };
	v = sbx_policy_decide_name(core->policy, query->name, SBX_PROTO_DNS, 0);
	if (v.action != SBX_ALLOW) { /* the policy was changed since the query came */
		d->rcode = SBX_DNS_NXDOMAIN;
		d->verdict = v;
		return;
	}
	for (size_t i = 0; i < n_pinned; i++)
		n_of_family += pinned[i].family == (v4 ? 4 : 6);
	if (n_pinned == 0 && result->n > 0) {
		refuse_addresses(core, query, result, d);
	} else if (n_pinned == 0 && (result->status4 == SBX_RESOLVE_NXDOMAIN ||
				     result->status6 == SBX_RESOLVE_NXDOMAIN)) {
		refuse(d, SBX_DNS_NXDOMAIN, SBX_REASON_RESOLVE_FAILED);
	} else if (n_of_family > 0 || status != SBX_RESOLVE_FAILED) {
		d->action = SBX_DNS_ANSWER;
		d->rcode = SBX_DNS_NOERROR;
	} else if (n_pinned > 0) { /* SERVFAIL: clients would cache an empty answer */
		d->action = SBX_DNS_ANSWER;
	} else {
		refuse(d, SBX_DNS_SERVFAIL, SBX_REASON_RESOLVE_FAILED);
	}
}

struct sbx_verdict sbx_core_judge_cnames(const struct sbx_core *core,
					 const struct sbx_dns_answer *answer)
{
	struct sbx_verdict v = { .action = SBX_ALLOW, .rule = UINT32_MAX };

	for (size_t i = 0; i < answer->n_cnames; i++) {
		if (!answer->cnames[i][0])
			continue;
		v = sbx_policy_decide_name(core->policy, answer->cnames[i], SBX_PROTO_DNS, 0);
		if (!may_forward(core, &v))
			return v;
	}
	v.action = SBX_ALLOW;
	return v;
}
