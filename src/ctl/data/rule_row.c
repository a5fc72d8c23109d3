/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/data/rule_row.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/decide/rules.h"
#include "policy/forms/units.h"

json_t *sbx_rule_json(const struct sbx_store_rule *r)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", json_integer(r->id));
	json_object_set_new(o, "workspace", sbx_json_text(r->workspace));
	json_object_set_new(o, "type", sbx_json_text(r->type));
	json_object_set_new(o, "action", sbx_json_text(r->action));
	json_object_set_new(o, "priority", json_integer(r->priority));
	json_object_set_new(o, "pattern", sbx_json_text(r->pattern));
	json_object_set_new(o, "enabled", json_boolean(r->enabled));
	json_object_set_new(o, "floor", json_boolean(r->is_floor));
	json_object_set_new(o, "note", sbx_json_text(r->note));
	json_object_set_new(o, "created_by", sbx_json_text(r->created_by));
	json_object_set_new(o, "created_ms",
			    r->created_ms ? json_integer(r->created_ms) : json_null());
	json_object_set_new(o, "changed_by", sbx_json_text(r->changed_by));
	json_object_set_new(o, "changed_ms",
			    r->changed_ms ? json_integer(r->changed_ms) : json_null());
	return o;
}

/* --- checks --- */

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

/* --- YAML --- */

/* JSON's strings are YAML's, and ASCII only. */
static void put_yaml(FILE *out, const char *key, const char *value)
{
	json_t *text = sbx_json_text(value);
	SBX_AUTO_FREE char *s = json_dumps(text, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

	json_decref(text);
	fprintf(out, "%s: %s\n", key, s ? s : "null");
}

void sbx_rule_print_yaml(FILE *out, const struct sbx_store_rule *r)
{
	put_yaml(out, "- pattern", r->pattern);
	put_yaml(out, "  type", r->type);
	put_yaml(out, "  action", r->action);
	fprintf(out, "  priority: %lld\n", (long long)r->priority);
	if (r->workspace)
		put_yaml(out, "  workspace", r->workspace);
	if (!r->enabled)
		fputs("  enabled: false\n", out);
	if (r->note)
		put_yaml(out, "  note", r->note);
}
