/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/rows/recent.h"

#include <stdlib.h>
#include <string.h>

json_t *sbx_recent_get(const struct sbx_recent *r, const char *key, uint64_t now_us)
{
	for (size_t i = 0; i < SBX_RECENT_MAX; i++)
		if (r->v[i].key && now_us < r->v[i].until_us && strcmp(r->v[i].key, key) == 0)
			return json_incref(r->v[i].answer);
	return NULL;
}

static void drop(struct sbx_recent_answer *a)
{
	free(a->key);
	json_decref(a->answer);
	*a = (struct sbx_recent_answer){ 0 };
}

void sbx_recent_put(struct sbx_recent *r, const char *key, json_t *answer, uint64_t took_us,
		    uint64_t now_us)
{
	struct sbx_recent_answer *a = &r->v[r->next];
	char *copy = took_us < SBX_RECENT_LONG_US ? NULL : strdup(key);

	if (!copy)
		return;
	drop(a);
	*a = (struct sbx_recent_answer){ copy, json_incref(answer), now_us + SBX_RECENT_KEPT_US };
	r->next = (r->next + 1) % SBX_RECENT_MAX;
}

void sbx_recent_fini(struct sbx_recent *r)
{
	for (size_t i = 0; i < SBX_RECENT_MAX; i++)
		drop(&r->v[i]);
}
