/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/decide/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/forms/option_form.h"

static const char *const type_names[] = {
	[SBX_RULE_NETWORK] = "network",
	[SBX_RULE_TOOL] = "tool",
};

const char *sbx_rule_type_str(enum sbx_rule_type t)
{
	return (unsigned)t < SBX_N_RULE_TYPES ? type_names[t] : "unknown";
}

static void rule_fini(struct sbx_rule *r)
{
	free(r->pattern);
	sbx_net_entry_fini(&r->entry);
}

static int check(const struct sbx_rule *r, int64_t priority, struct sbx_err *err)
{
	if (priority < 0 || priority > SBX_RULE_PRIORITY_MAX) {
		sbx_err_set(err, "priority %lld: write a number from 0 to %d", (long long)priority,
			    SBX_RULE_PRIORITY_MAX);
		return SBX_PROFILE_E_INVALID;
	}
	if (r->action != SBX_ALLOW && r->action != SBX_DENY) {
		sbx_err_set(err, "a rule's action is allow or deny");
		return SBX_PROFILE_E_INVALID;
	}
	if (r->is_floor && (r->action != SBX_DENY || !r->of_host)) {
		sbx_err_set(err, "a floor denies, and holds for every workspace");
		return SBX_PROFILE_E_INVALID;
	}
	return 0;
}

int sbx_rules_add(struct sbx_rules *rules, int64_t id, enum sbx_rule_type type,
		  enum sbx_action action, int64_t priority, bool is_floor, bool of_host,
		  const char *pattern, struct sbx_err *err)
{
	struct sbx_rule rule = { .id = id, .type = type, .action = action,
				 .priority = (uint32_t)priority, .is_floor = is_floor,
				 .of_host = of_host };
	struct sbx_rule *v;
	int r = check(&rule, priority, err);

	if (r == 0 && type == SBX_RULE_TOOL && sbx_form_command(pattern)) {
		sbx_err_set(err, "'%s': %s", pattern, sbx_form_command(pattern));
		r = SBX_PROFILE_E_INVALID;
	}
	if (r == 0 && type == SBX_RULE_NETWORK)
		r = sbx_net_entry_parse(pattern, SBX_PATTERN_ANY, action == SBX_DENY, &rule.entry,
					err);
	if (r != 0)
		return r;
	rule.pattern = strdup(pattern);
	v = rule.pattern ? realloc(rules->v, (rules->n + 1) * sizeof(*v)) : NULL;
	if (!v) {
		rule_fini(&rule);
		return -ENOMEM;
	}
	rules->v = v;
	v[rules->n++] = rule;
	return 0;
}

int sbx_rules_add_draft(struct sbx_rules *rules, const struct sbx_rule_draft *d,
			struct sbx_err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < rules->n; i++) {
		if (d->replaces && rules->v[i].id == d->replaces)
			rule_fini(&rules->v[i]);
		else
			rules->v[n++] = rules->v[i];
	}
	rules->n = n;
	return sbx_rules_add(rules, SBX_RULE_DRAFT, d->type, d->action, d->priority, d->is_floor,
			     d->is_floor, d->pattern, err);
}

void sbx_rules_fini(struct sbx_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		rule_fini(&rules->v[i]);
	free(rules->v);
	*rules = (struct sbx_rules){ 0 };
}
