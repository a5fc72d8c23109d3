/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/data/rule_row.h"

#include <stdlib.h>

#include "base/cleanup.h"

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
