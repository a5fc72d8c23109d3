/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/decide/live.h"

#include <string.h>

#include "base/text.h"
#include "policy/profile/net_entry.h"

static bool is_there(const struct sbx_net_list *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(list->v[i].text, text) == 0)
			return true;
	}
	return false;
}

static int add_one(struct sbx_net_list *list, const char *pattern, struct sbx_err *err)
{
	struct sbx_net_entry e;
	int r;

	if (list->n >= SBX_LIVE_ENTRIES_MAX) {
		sbx_err_set(err, "more than %d entries: use wildcards, networks or rules",
			    SBX_LIVE_ENTRIES_MAX);
		return SBX_PROFILE_E_INVALID;
	}
	r = sbx_net_entry_parse(pattern, SBX_PATTERN_ANY, list->deny, &e, err);
	if (r != 0)
		return r;
	if (!is_there(list, e.text))
		r = sbx_net_list_append(list, &e);
	sbx_net_entry_fini(&e);
	return r;
}

int sbx_live_add(struct sbx_live *live, enum sbx_action action, const char *field,
		 const char *const *patterns, size_t n, char ret_field[SBX_LIVE_FIELD_MAX],
		 struct sbx_err *err)
{
	struct sbx_net_list *list = action == SBX_ALLOW ? &live->allow : &live->deny;

	list->deny = action != SBX_ALLOW;
	for (size_t i = 0; i < n; i++) {
		int r = add_one(list, patterns[i], err);

		if (r != 0) {
			sbx_text_cut(ret_field, SBX_LIVE_FIELD_MAX, "%s[%zu]", field, i);
			return r;
		}
	}
	return 0;
}

int sbx_live_set(bool air_gapped, const char *const *allow, size_t n_allow,
		 const char *const *deny, size_t n_deny, struct sbx_live *ret_live,
		 char ret_field[SBX_LIVE_FIELD_MAX], struct sbx_err *err)
{
	struct sbx_live live = { .air_gapped = air_gapped };
	int r = sbx_live_add(&live, SBX_ALLOW, "allow_out", allow, n_allow, ret_field, err);

	if (r == 0)
		r = sbx_live_add(&live, SBX_DENY, "deny_out", deny, n_deny, ret_field, err);
	if (r != 0) {
		sbx_live_fini(&live);
		return r;
	}
	*ret_live = live;
	return 0;
}

void sbx_live_fini(struct sbx_live *live)
{
	sbx_net_list_fini(&live->allow);
	sbx_net_list_fini(&live->deny);
	live->air_gapped = false;
}
