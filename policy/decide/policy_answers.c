/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers for people: entries of a policy, all that matches, and changes of a verdict. */

#include <string.h>

#include "policy/decide/policy_internal.h"

static const char *const layer_names[] = {
	[SBX_LAYER_FLOOR] = "floor", [SBX_LAYER_RULE] = "rule",
	[SBX_LAYER_LIVE] = "live",   [SBX_LAYER_PROFILE] = "profile",
	[SBX_LAYER_ADMIT] = "admit", [SBX_LAYER_DEFAULT] = "default",
};

const char *sbx_layer_str(enum sbx_layer l)
{
	return (unsigned)l < SBX_N_LAYERS ? layer_names[l] : "unknown";
}

bool sbx_verdict_by_entry(const struct sbx_verdict *v)
{
	return v->action == SBX_ALLOW &&
	       (v->reason == SBX_REASON_RULE_ALLOW || v->reason == SBX_REASON_LIVE_ALLOW ||
		v->reason == SBX_REASON_LIST_ALLOW);
}

bool sbx_policy_entry(const struct sbx_policy *p, uint32_t rule,
		      struct sbx_policy_entry *ret_entry)
{
	const char *text = sbx_policy_rule_text(p, rule);
	const struct sbx_blob_rule *r = &p->rules[rule];

	if (rule >= p->h->sections[SBX_BLOB_RULES].n)
		return false;
	*ret_entry = (struct sbx_policy_entry){
		.layer = strncmp(text, "floor ", 6) == 0   ? SBX_LAYER_FLOOR
			 : strncmp(text, "admit ", 6) == 0 ? SBX_LAYER_ADMIT
							   : SBX_LAYER_PROFILE,
		.action = r->action == SBX_ALLOW ? SBX_ALLOW : SBX_DENY,
		.text = text,
		.is_cidr = r->family != 0,
	};
	return true;
}

size_t sbx_policy_matches_name(const struct sbx_policy *p, const char *name, enum sbx_proto proto,
			       uint16_t port, uint32_t *v, size_t n_max)
{
	struct sbx_verdict verdict = sbx_policy_decide_name(p, name, proto, port);

	if (verdict.rule == UINT32_MAX)
		return 0;
	if (n_max)
		v[0] = verdict.rule;
	return 1;
}

size_t sbx_policy_matches_addr(const struct sbx_policy *p, const struct sbx_addr *addr,
			       enum sbx_proto proto, uint16_t port, uint32_t *v, size_t n_max)
{
	struct sbx_verdict verdict = sbx_policy_decide_addr(p, addr, proto, port);

	if (verdict.rule == UINT32_MAX)
		return 0;
	if (n_max)
		v[0] = verdict.rule;
	return 1;
}

size_t sbx_policy_changes(const struct sbx_policy *p, const struct sbx_policy_asked *asked,
			  const struct sbx_verdict *v,
			  struct sbx_policy_change ret_changes[SBX_CHANGES_MAX])
{
	(void)p;
	(void)asked;
	(void)v;
	(void)ret_changes;
	return 0;
}
