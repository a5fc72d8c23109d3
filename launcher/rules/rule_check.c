/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/rules/rule_check.h"

#include <string.h>

#include "policy/decide/rules.h"
#include "policy/forms/units.h"
#include "policy/lists/shipped.h"
#include "policy/profile/net_entry.h"

const char *sbx_rule_check_type(const char *s)
{
	return strcmp(s, "network") == 0 || strcmp(s, "tool") == 0 ? NULL :
								     "it must be network or tool";
}

const char *sbx_rule_check_action(const char *s)
{
	return strcmp(s, "allow") == 0 || strcmp(s, "deny") == 0 ? NULL :
								   "it must be allow or deny";
}

const char *sbx_rule_check_priority(const char *s)
{
	uint64_t n;

	return sbx_count_parse(s, &n) == 0 && n <= SBX_RULE_PRIORITY_MAX ?
		       NULL :
		       "it must be a number from 0 to 1000000; the lowest is the first";
}

int sbx_rule_check(const struct sbx_store_rule *r, struct sbx_err *err)
{
	struct sbx_rules rules = { 0 };
	int e;

	if (!r->type || sbx_rule_check_type(r->type)) {
		sbx_err_set(err, "type: it must be network or tool");
		return SBX_PROFILE_E_INVALID;
	}
	if (!r->action || sbx_rule_check_action(r->action)) {
		sbx_err_set(err, "action: it must be allow or deny");
		return SBX_PROFILE_E_INVALID;
	}
	if (!r->pattern || !r->pattern[0] || strlen(r->pattern) > SBX_STORE_PATTERN_MAX) {
		sbx_err_set(err, "pattern: it must have 1 to %d bytes", SBX_STORE_PATTERN_MAX);
		return SBX_PROFILE_E_INVALID;
	}
	if (r->note && strlen(r->note) > SBX_STORE_NOTE_MAX) {
		sbx_err_set(err, "note: it must have at most %d bytes", SBX_STORE_NOTE_MAX);
		return SBX_PROFILE_E_INVALID;
	}
	e = sbx_rules_add(&rules, r->id,
			  strcmp(r->type, "tool") == 0 ? SBX_RULE_TOOL : SBX_RULE_NETWORK,
			  strcmp(r->action, "allow") == 0 ? SBX_ALLOW : SBX_DENY, r->priority,
			  r->is_floor, !r->workspace, r->pattern, err);
	sbx_rules_fini(&rules);
	return e;
}

bool sbx_rule_is_shipped(const struct sbx_store_rule *r)
{
	if (!r->is_floor || !r->pattern || !r->type || strcmp(r->type, "network") != 0)
		return false;
	for (size_t i = 0; sbx_shipped_floors[i]; i++)
		if (strcmp(r->pattern, sbx_shipped_floors[i]) == 0)
			return true;
	return false;
}

const char *sbx_rule_floor_over(const char *allow)
{
	struct sbx_net_entry entry = { 0 };
	struct sbx_err err = { 0 };
	const char *found = NULL;

	if (sbx_net_entry_parse(allow, SBX_PATTERN_ANY, false, &entry, &err) != 0)
		return NULL;
	for (size_t i = 0; sbx_shipped_floors[i] && !found; i++) {
		struct sbx_net_entry floor = { 0 };

		if (sbx_net_entry_parse(sbx_shipped_floors[i], SBX_PATTERN_ANY, true, &floor,
					&err) != 0)
			continue;
		if (sbx_net_entry_covers(&floor, &entry))
			found = sbx_shipped_floors[i];
		sbx_net_entry_fini(&floor);
	}
	sbx_net_entry_fini(&entry);
	return found;
}
