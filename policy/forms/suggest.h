/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_FORMS_SUGGEST_H
#define SBX_POLICY_FORMS_SUGGEST_H

#include <stddef.h>

/* The word that was probably meant: the nearest of the candidates, within a third of its length. */
struct sbx_suggest {
	const char *wrong; /* borrowed: what was written */
	const char *best;  /* borrowed: the nearest so far; NULL none */
	size_t distance;
};

struct sbx_suggest sbx_suggest(const char *wrong);
void sbx_suggest_offer(struct sbx_suggest *s, const char *candidate);
/* " (did you mean 'allow'?)" or "". Returns @buf. */
const char *sbx_suggest_text(const struct sbx_suggest *s, char *buf, size_t n_buf);

#endif
