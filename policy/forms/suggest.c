/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Suggestions for misspelt words by edit distance, a swap of two neighbours counting as one edit
 * (optimal string alignment). Words over 32 bytes get none: no key is that long.
 */

#include "policy/forms/suggest.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define WORD_MAX_LEN 32

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

static size_t edit_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t d[WORD_MAX_LEN + 1][WORD_MAX_LEN + 1];

	for (size_t i = 0; i <= n_a; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= n_b; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		for (size_t j = 1; j <= n_b; j++) {
			size_t cost = a[i - 1] != b[j - 1];

			d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	}
	return d[n_a][n_b];
}

struct sbx_suggest sbx_suggest(const char *wrong)
{
	return (struct sbx_suggest){ .wrong = wrong };
}

void sbx_suggest_offer(struct sbx_suggest *s, const char *candidate)
{
	size_t n_wrong = strlen(s->wrong), n = strlen(candidate), limit = (n + 2) / 3, distance;

	if (n_wrong == 0 || n_wrong > WORD_MAX_LEN || n > WORD_MAX_LEN)
		return;
	distance = edit_distance(s->wrong, n_wrong, candidate, n);
	if (distance <= limit && (!s->best || distance < s->distance)) {
		s->best = candidate;
		s->distance = distance;
	}
}

const char *sbx_suggest_text(const struct sbx_suggest *s, char *buf, size_t n_buf)
{
	if (s->best)
		sbx_text_cut(buf, n_buf, " (did you mean '%s'?)", s->best);
	else
		sbx_text_cut(buf, n_buf, "%s", "");
	return buf;
}
