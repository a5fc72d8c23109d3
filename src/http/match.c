/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looks for many strings at once.
 *
 * Nearly all bytes that pass have nothing in them, so the speed is that of the filter: one bit for
 * each pair of bytes with which a string begins, in a table that fits the first cache. A single
 * string has memmem(3), which is faster still. Only where the filter hits are the strings compared.
 *
 * The strings are the operator's and few; a party that knows them and sends their beginnings again
 * and again slows its own stream, by the length of a string for each byte at worst.
 */

#include "http/match.h"

#include <assert.h>
#include <string.h>

void sbx_match_init(struct sbx_match *m, struct sbx_span *v, size_t n_max)
{
	m->n = m->n_longest = 0;
	m->v = v;
	m->n_max = n_max;
	memset(m->first, 0, sizeof(m->first));
	memset(m->pairs, 0, sizeof(m->pairs));
}

static unsigned pair_of(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

size_t sbx_match_add(struct sbx_match *m, struct sbx_span needle)
{
	unsigned pair = pair_of(needle.p);

	assert(needle.n >= SBX_MATCH_NEEDLE_MIN && m->n < m->n_max);
	m->first[needle.p[0]] = 1;
	m->pairs[pair >> 3] |= (uint8_t)(1u << (pair & 7));
	if (needle.n > m->n_longest)
		m->n_longest = needle.n;
	m->v[m->n] = needle;
	return m->n++;
}

/* The strings that begin at @pos, where the filter hit. */
static enum sbx_match_result try_at(const struct sbx_match *m, struct sbx_span s, size_t pos,
				    bool end, size_t *ret_needle)
{
	size_t left = s.n - pos, n_best = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct sbx_span v = m->v[i];

		if (memcmp(s.p + pos, v.p, v.n < left ? v.n : left) != 0)
			continue;
		/* It is longer than all that are complete here. */
		if (v.n > left) {
			if (!end)
				return SBX_MATCH_PARTIAL;
		} else if (v.n > n_best) {
			n_best = v.n;
			*ret_needle = i;
		}
	}
	return n_best ? SBX_MATCH_FOUND : SBX_MATCH_NONE;
}

/* The first place from @pos to before @until where the filter hits. */
static size_t filter(const struct sbx_match *m, struct sbx_span s, size_t pos, size_t until)
{
	const uint8_t *p = s.p;

	while (pos < until && pos + 1 < s.n) {
		unsigned pair = pair_of(p + pos);

		if (m->pairs[pair >> 3] & (1u << (pair & 7)))
			return pos;
		pos++;
	}
	if (pos < until && pos + 1 == s.n && m->first[p[pos]])
		return pos;
	return until;
}

/* The first place where the only string may begin: where it is, or where its beginning may be cut
 * off by the end of @s. */
static size_t seek_single(const struct sbx_match *m, struct sbx_span s, size_t from, size_t until)
{
	struct sbx_span v = m->v[0];
	size_t last = until < s.n && s.n - until >= v.n ? until - 1 + v.n : s.n;
	const uint8_t *at = memmem(s.p + from, last - from, v.p, v.n);
	size_t tail;

	if (at)
		return (size_t)(at - s.p);
	tail = s.n >= v.n ? s.n - v.n + 1 : 0;
	return tail > from ? tail : from;
}

enum sbx_match_result sbx_match_next(const struct sbx_match *m, struct sbx_span s, size_t from,
				     size_t until, bool end, size_t *ret_pos, size_t *ret_needle)
{
	size_t pos = from;

	if (until > s.n)
		until = s.n;
	if (m->n == 1 && pos < until)
		pos = seek_single(m, s, from, until);
	for (; m->n && (pos = filter(m, s, pos, until)) < until; pos++) {
		enum sbx_match_result r = try_at(m, s, pos, end, ret_needle);

		if (r != SBX_MATCH_NONE) {
			*ret_pos = pos;
			return r;
		}
	}
	return SBX_MATCH_NONE;
}
