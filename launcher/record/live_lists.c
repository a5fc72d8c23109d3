/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/record/live_lists.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

/* Takes @array. NULL: out of memory, also while it was filled. */
static char *dump(json_t *array_take, size_t n)
{
	char *text = json_array_size(array_take) == n ? json_dumps(array_take, JSON_COMPACT) : NULL;

	json_decref(array_take);
	return text;
}

static char *entries(const struct sbx_net_list *list)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < list->n; i++)
		json_array_append_new(array, json_string(list->v[i].text));
	return array ? dump(array, list->n) : NULL;
}

static char *rules(const struct sbx_live_rules *list)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < list->n; i++)
		json_array_append_new(array, json_string(list->v[i].text));
	return array ? dump(array, list->n) : NULL;
}

int sbx_live_lists_init(struct sbx_live_lists *ret_lists, const struct sbx_live *live)
{
	struct sbx_live_lists l = {
		.allow = entries(&live->allow),
		.deny = entries(&live->deny),
		.rules = rules(&live->rules),
	};

	*ret_lists = l;
	if (l.allow && l.deny && l.rules)
		return 0;
	sbx_live_lists_fini(ret_lists);
	return -ENOMEM;
}

void sbx_live_lists_fini(struct sbx_live_lists *lists)
{
	free(lists->allow);
	free(lists->deny);
	free(lists->rules);
	*lists = (struct sbx_live_lists){ 0 };
}
