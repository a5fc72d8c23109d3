/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/access/rates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define WHOLE 1000 /* a bucket counts thousandths: per_s of them come in each millisecond */

struct bucket {
	uint64_t hash; /* of the key */
	uint64_t used_ms;
	uint64_t level;
	char key[SBX_RATE_KEY_MAX];
};

struct sbx_rates {
	size_t n, n_max;
	struct bucket v[];
};

int sbx_rates_new(size_t n_max, struct sbx_rates **ret_rates)
{
	struct sbx_rates *r = calloc(1, sizeof(*r) + n_max * sizeof(r->v[0]));

	if (!r)
		return -ENOMEM;
	r->n_max = n_max;
	*ret_rates = r;
	return 0;
}

struct sbx_rates *sbx_rates_free(struct sbx_rates *r)
{
	free(r);
	return NULL;
}

/* FNV-1a. It saves comparisons of keys, and no more depends on it. */
static uint64_t hash_of(const char *s)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(1099511628211);
	return h;
}

static struct bucket *find(struct sbx_rates *r, const char *key, const struct sbx_rate_limit *limit,
			   uint64_t now_ms)
{
	struct bucket *b, *oldest = r->v;
	uint64_t hash = hash_of(key);

	for (size_t i = 0; i < r->n; i++) {
		b = &r->v[i];
		if (b->hash == hash && strcmp(b->key, key) == 0)
			return b;
		if (b->used_ms < oldest->used_ms)
			oldest = b;
	}
	b = r->n < r->n_max ? &r->v[r->n++] : oldest;
	*b = (struct bucket){ .hash = hash,
			      .used_ms = now_ms,
			      .level = (uint64_t)limit->burst * WHOLE };
	sbx_text_cut(b->key, sizeof(b->key), "%s", key);
	return b;
}

uint32_t sbx_rates_take(struct sbx_rates *r, const char *key, const struct sbx_rate_limit *limit,
			uint64_t now_ms)
{
	uint64_t full = (uint64_t)limit->burst * WHOLE, passed;
	char cut[SBX_RATE_KEY_MAX];
	struct bucket *b;

	sbx_text_cut(cut, sizeof(cut), "%s", key);
	b = find(r, cut, limit, now_ms);
	passed = now_ms > b->used_ms ? now_ms - b->used_ms : 0;
	if (passed >= full / limit->per_s)
		b->level = full;
	else
		b->level = b->level + passed * limit->per_s;
	if (b->level > full)
		b->level = full;
	b->used_ms = now_ms;
	if (b->level < WHOLE)
		return (uint32_t)((WHOLE - b->level + limit->per_s - 1) / limit->per_s);
	b->level -= WHOLE;
	return 0;
}
