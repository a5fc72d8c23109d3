/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/rules/tool_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int is_pattern(const struct sbx_rule *r)
{
	return r->pattern[strcspn(r->pattern, "*?[\\")] != '\0';
}

static int by_order(const void *a, const void *b)
{
	const struct sbx_rule *x = *(const struct sbx_rule *const *)a;
	const struct sbx_rule *y = *(const struct sbx_rule *const *)b;

	if (x->is_floor != y->is_floor)
		return y->is_floor - x->is_floor;
	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	if (is_pattern(x) != is_pattern(y))
		return is_pattern(x) - is_pattern(y);
	if (x->action != y->action)
		return x->action == SBX_DENY ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

int sbx_tool_rules_init(struct sbx_tool_rules *ret_tools, const struct sbx_rules *rules)
{
	struct sbx_tool_rules t = { 0 };

	for (size_t i = 0; i < rules->n; i++)
		t.n += rules->v[i].type == SBX_RULE_TOOL;
	if (t.n == 0) {
		*ret_tools = t;
		return 0;
	}
	t.v = calloc(t.n, sizeof(const void *));
	t.allow.v = calloc(t.n, sizeof(*t.allow.v));
	t.deny.v = calloc(t.n, sizeof(*t.deny.v));
	if (!t.v || !t.allow.v || !t.deny.v) {
		sbx_tool_rules_fini(&t);
		return -ENOMEM;
	}
	t.n = 0;
	for (size_t i = 0; i < rules->n; i++)
		if (rules->v[i].type == SBX_RULE_TOOL)
			t.v[t.n++] = &rules->v[i];
	qsort(t.v, t.n, sizeof(const void *), by_order);
	for (size_t i = 0; i < t.n; i++) {
		struct sbx_str_list *list = t.v[i]->action == SBX_ALLOW ? &t.allow : &t.deny;

		list->v[list->n++] = t.v[i]->pattern;
	}
	*ret_tools = t;
	return 0;
}

void sbx_tool_rules_fini(struct sbx_tool_rules *tools)
{
	free(tools->v);
	free(tools->allow.v);
	free(tools->deny.v);
	*tools = (struct sbx_tool_rules){ 0 };
}
