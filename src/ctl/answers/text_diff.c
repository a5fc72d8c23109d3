/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/answers/text_diff.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct line {
	const char *s;
	size_t n;
};

static int split(const char *text, struct line **ret_v, size_t *ret_n)
{
	size_t n = 0;
	struct line *v;

	for (const char *p = text; *p; p++)
		n += *p == '\n' || !p[1];
	if (n > SBX_DIFF_LINES_MAX)
		return -E2BIG;
	v = calloc(n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		v[i] = (struct line){ text, strcspn(text, "\n") };
		text += v[i].n + 1;
	}
	*ret_v = v;
	*ret_n = n;
	return 0;
}

static bool same(const struct line *a, const struct line *b)
{
	return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

int sbx_text_diff(const char *a, const char *b,
		  void (*fn)(char sign, const char *line, size_t n, void *userdata), void *userdata)
{
	SBX_AUTO_FREE struct line *va = NULL, *vb = NULL;
	SBX_AUTO_FREE uint16_t *lcs = NULL; /* of the lines from i and from j on */
	size_t n_a = 0, n_b = 0, i, j;
	int r = split(a, &va, &n_a);

	if (r == 0)
		r = split(b, &vb, &n_b);
	if (r != 0)
		return r;
	lcs = calloc((n_a + 1) * (n_b + 1), sizeof(*lcs));
	if (!lcs)
		return -ENOMEM;
#define LCS(x, y) lcs[(x) * (n_b + 1) + (y)]
	for (i = n_a; i-- > 0;)
		for (j = n_b; j-- > 0;)
			LCS(i, j) = same(&va[i], &vb[j])	  ? LCS(i + 1, j + 1) + 1 :
				    LCS(i + 1, j) > LCS(i, j + 1) ? LCS(i + 1, j) :
								    LCS(i, j + 1);
	for (i = j = 0; i < n_a || j < n_b;) {
		if (i < n_a && j < n_b && same(&va[i], &vb[j])) {
			fn(' ', va[i].s, va[i].n, userdata);
			i++;
			j++;
		} else if (i < n_a && (j == n_b || LCS(i + 1, j) >= LCS(i, j + 1))) {
			fn('-', va[i].s, va[i].n, userdata);
			i++;
		} else {
			fn('+', vb[j].s, vb[j].n, userdata);
			j++;
		}
	}
#undef LCS
	return 0;
}
