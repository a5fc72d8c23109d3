/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From rows to rules. Another program may have written the rows, so every word of them is read
 * again. One row that is not understood refuses all: left out, it might be the one that denies.
 */
#include "launcher/rules/rules_load.h"

#include <errno.h>
#include <string.h>

#include "launcher/rules/database.h"
#include "launcher/rules/rule_check.h"
#include "store/store_rules.h"

struct loading {
	struct sbx_rules rules;
	size_t n_floors;
	struct sbx_err *err;
};

static int type_of(const char *word)
{
	for (int i = 0; word && i < SBX_N_RULE_TYPES; i++)
		if (strcmp(word, sbx_rule_type_str((enum sbx_rule_type)i)) == 0)
			return i;
	return -1;
}

static int action_of(const char *word)
{
	return !word			  ? -1 :
	       strcmp(word, "allow") == 0 ? SBX_ALLOW :
	       strcmp(word, "deny") == 0  ? SBX_DENY :
					    -1;
}

/* Says of which row @why is the problem. */
static int refuse(const struct loading *l, const struct sbx_store_rule *row, const char *why)
{
	char pattern[128];

	if (row->pattern)
		sbx_escape(row->pattern, strlen(row->pattern), pattern, sizeof(pattern));
	sbx_err_set(l->err,
		    "rule %lld of %s%s%s%s%s%s: %s (sbxctl rules rm %lld removes it, sbxctl rules "
		    "set %lld changes it)",
		    (long long)row->id, row->workspace ? "workspace '" : "the host",
		    row->workspace ? row->workspace : "", row->workspace ? "'" : "",
		    row->pattern ? ", '" : "", row->pattern ? pattern : "", row->pattern ? "'" : "",
		    why, (long long)row->id, (long long)row->id);
	return SBX_PROFILE_E_INVALID;
}

static bool is_clean(const char *s)
{
	size_t n = strlen(s), unit = 0;

	for (size_t i = 0; i < n; i += unit) {
		unit = sbx_text_unit(s + i, n - i);
		if (!unit)
			return false;
	}
	return true;
}

static int add_row(const struct sbx_store_rule *row, void *userdata)
{
	struct loading *l = userdata;
	int type = type_of(row->type), action = action_of(row->action), r;
	struct sbx_err why = { 0 };

	if (type < 0)
		return refuse(l, row, "its rule_type is neither network nor tool");
	if (action < 0)
		return refuse(l, row, "its action is neither allow nor deny");
	if (!row->pattern || !row->pattern[0])
		return refuse(l, row, "it has no pattern");
	if (!is_clean(row->pattern))
		return refuse(l, row, "its pattern is not printable text");
	if (sbx_rule_is_shipped(row))
		return 0;
	if ((row->is_floor ? l->n_floors : l->rules.n - l->n_floors) >= SBX_RULES_MAX)
		return refuse(l, row, "there are more rules than a sandbox can have");
	r = sbx_rules_add(&l->rules, row->id, (enum sbx_rule_type)type, (enum sbx_action)action,
			  row->priority, row->is_floor, row->workspace == NULL, row->pattern, &why);
	if (r == 0)
		l->n_floors += row->is_floor;
	return r > 0 ? refuse(l, row, why.msg) : r;
}

int sbx_rules_load(struct sbx_store *store, const char *workspace, struct sbx_rules *ret_rules,
		   struct sbx_err *err)
{
	struct sbx_err why = { 0 };
	struct loading l = { .err = &why };
	char action[6];
	int r = sbx_store_rules_in_force(store, workspace, add_row, &l, action, &why);

	if (r == 0 && action[0]) {
		l.rules.default_set = true;
		l.rules.default_action = action_of(action) == SBX_ALLOW ? SBX_ALLOW : SBX_DENY;
	}
	if (r == 0) {
		*ret_rules = l.rules;
		return 0;
	}
	sbx_rules_fini(&l.rules);
	if (r == SBX_PROFILE_E_INVALID)
		sbx_err_set(err, "%s", why.msg);
	else
		sbx_err_set(err, "the rules of sandboxes cannot be read: %s",
			    why.msg[0] ? why.msg : strerror(-r));
	return r;
}

int sbx_rules_read(const struct sbx_facts *f, const char *workspace, struct sbx_rules *ret_rules,
		   struct sbx_err *err)
{
	struct sbx_store *store = NULL;
	struct sbx_err why = { 0 };
	int r = sbx_database_exists(f, &why);

	if (r == 0) {
		*ret_rules = (struct sbx_rules){ 0 };
		return 0;
	}
	if (r > 0)
		r = sbx_database_open(f, &why, &store);
	if (r != 0) {
		sbx_err_set(err, "the rules of sandboxes cannot be read: %s",
			    why.msg[0] ? why.msg : strerror(r < 0 ? -r : EINVAL));
		return r < 0 ? r : -EUCLEAN;
	}
	r = sbx_rules_load(store, workspace, ret_rules, err);
	sbx_store_close(store);
	return r;
}
