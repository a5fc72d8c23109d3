/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the stub answers. PURE.
 *
 * An allowed name gets its synthetic address and nothing is asked upstream, so a query for a
 * refused name never leaves the host whatever it encodes. Only where the profile hands out real
 * answers (config->dns_real) is a query passed on; floors and deny entries hold there too, for the
 * name asked and for every name of the answer's CNAME chain.
 */

#include "broker/core.h"

#include <string.h>

/* RFC 9460: they hand out addresses that no lease knows, and keys to hide the server's name (ECH),
 * which is refused later. Without them clients ask for A and AAAA. */
enum { TYPE_SVCB = 64, TYPE_HTTPS = 65 };

static void refuse(struct sbx_dns_decision *d, enum sbx_dns_rcode rcode, enum sbx_reason reason)
{
	d->action = SBX_DNS_REFUSE;
	d->rcode = rcode;
	d->verdict = (struct sbx_verdict){ .reason = reason, .rule = UINT32_MAX };
}

static void answer_pin(const struct sbx_core *core, const struct sbx_dns_query *query,
		       struct sbx_dns_decision *d)
{
	uint32_t index;
	int r;

	d->action = SBX_DNS_ANSWER;
	d->rcode = SBX_DNS_NOERROR;
	if (query->qtype != SBX_DNS_TYPE_A && query->qtype != SBX_DNS_TYPE_AAAA)
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

/* Real answers: refuse only what a floor or a deny entry names. In mode offline every name comes
 * back as refused for air_gap; the resolvers that the profile names are its one exit. */
static bool may_forward(const struct sbx_core *core, const struct sbx_verdict *v)
{
	if (v->action == SBX_ALLOW)
		return true;
	return v->reason == SBX_REASON_AIR_GAP && core->config->mode == SBX_MODE_OFFLINE;
}

void sbx_core_decide_dns(const struct sbx_core *core, const struct sbx_dns_query *query,
			 struct sbx_dns_decision *ret_decision)
{
	struct sbx_dns_decision *d = ret_decision;

	*d = (struct sbx_dns_decision){ .rcode = SBX_DNS_REFUSED };
	if (query->qclass != SBX_DNS_CLASS_IN) {
		refuse(d, SBX_DNS_REFUSED, SBX_REASON_DEFAULT_DENY);
		return;
	}
	if (query->is_hostname && strcmp(query->name, core->config->selftest_name) == 0) {
		d->verdict = (struct sbx_verdict){ .action = SBX_ALLOW, .rule = UINT32_MAX };
		answer_pin(core, query, d);
		return;
	}
	if (core->config->air_gap) {
		refuse(d, SBX_DNS_REFUSED, SBX_REASON_AIR_GAP);
		return;
	}
	if (!query->is_hostname) { /* no entry can name it: only a mode that passes all on does */
		refuse(d, SBX_DNS_REFUSED, SBX_REASON_DEFAULT_DENY);
		if (core->config->dns_real && query->n_question)
			d->action = SBX_DNS_FORWARD;
		return;
	}
	d->verdict = sbx_policy_decide_name(core->policy, query->name, SBX_PROTO_DNS, 0);
	if (core->config->dns_real && may_forward(core, &d->verdict)) {
		bool hidden = query->qtype == TYPE_SVCB || query->qtype == TYPE_HTTPS;

		d->action = hidden ? SBX_DNS_ANSWER : SBX_DNS_FORWARD;
		d->rcode = SBX_DNS_NOERROR;
	} else if (d->verdict.action == SBX_ALLOW) {
		answer_pin(core, query, d);
	} else {
		d->action = SBX_DNS_REFUSE;
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
