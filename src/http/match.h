/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_MATCH_H
#define SBX_HTTP_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* Internal: looks for many strings at once in bytes that may go on. PURE. */

#define SBX_MATCH_NEEDLE_MIN 2 /* bytes of a string that is looked for */

struct sbx_match {
	size_t n, n_max, n_longest;
	struct sbx_span *v;	  /* borrowed, and so are the strings */
	uint8_t first[256];	  /* 1: some string begins with the byte */
	uint8_t pairs[65536 / 8]; /* bit: some string begins with the two bytes */
};

/* @v has room for @n_max strings, and outlives @m. */
void sbx_match_init(struct sbx_match *m, struct sbx_span *v, size_t n_max);
/* Adds a string that outlives @m, of SBX_MATCH_NEEDLE_MIN bytes or more. Returns its number; they
 * count from 0. */
size_t sbx_match_add(struct sbx_match *m, struct sbx_span needle);

enum sbx_match_result {
	SBX_MATCH_NONE = 0,
	SBX_MATCH_FOUND,
	SBX_MATCH_PARTIAL, /* @s ends within what may become a string */
};

/*
 * Looks for the first string that begins in @s from @from to before @until; of strings that begin
 * at one place, the longest. @end: nothing follows @s. *ret_pos (FOUND, PARTIAL) is where it
 * begins, *ret_needle (FOUND) its number. The same places are found however the bytes are cut, when
 * the caller offers the bytes from a PARTIAL on again.
 */
enum sbx_match_result sbx_match_next(const struct sbx_match *m, struct sbx_span s, size_t from,
				     size_t until, bool end, size_t *ret_pos, size_t *ret_needle);

#endif
