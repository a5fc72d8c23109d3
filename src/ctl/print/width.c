/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A static program has no locale but C, whose wcwidth(3) knows ASCII only. The two lists below are
 * of Unicode's East_Asian_Width (W and F) and of its combining marks (Mn, Me, Cf), in whole blocks:
 * a column that is counted too many or too few moves a table's edge and nothing else.
 */
#include "ctl/print/width.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

#define MARKS_PER_COLUMN 4 /* bytes kept beyond one character for each column, at the most */

struct range {
	uint32_t first, last;
};

static const struct range wide[] = {
	{ 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x2e80, 0x303e },	  { 0x3041, 0x33ff },
	{ 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },	  { 0xa960, 0xa97f },
	{ 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },	  { 0xff00, 0xff60 },
	{ 0xffe0, 0xffe6 },   { 0x16fe0, 0x18cff }, { 0x1b000, 0x1b2ff }, { 0x1f300, 0x1f64f },
	{ 0x1f680, 0x1f6ff }, { 0x1f900, 0x1faff }, { 0x20000, 0x3fffd },
};

static const struct range marks[] = {
	{ 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd },   { 0x0610, 0x061a },
	{ 0x064b, 0x065f }, { 0x06d6, 0x06dc }, { 0x0900, 0x0902 },   { 0x0e31, 0x0e31 },
	{ 0x0e34, 0x0e3a }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },   { 0x200b, 0x200f },
	{ 0x2060, 0x206f }, { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f },   { 0xfe20, 0xfe2f },
	{ 0xfeff, 0xfeff }, { 0x1160, 0x11ff }, { 0xe0000, 0xe01ef },
};

static bool is_in(const struct range *v, size_t n, uint32_t c)
{
	for (size_t i = 0; i < n; i++)
		if (c >= v[i].first && c <= v[i].last)
			return true;
	return false;
}

/* The character at @s, which has @n bytes. */
static uint32_t decode(const unsigned char *s, size_t n)
{
	static const unsigned char lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = n <= 4 ? s[0] & lead[n] : s[0];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

/* @ret_n: the bytes of the character. */
static size_t width_of(const char *s, size_t *ret_n)
{
	const unsigned char *u = (const unsigned char *)s;
	uint32_t c;

	*ret_n = u[0] < 0x80 ? 1 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < *ret_n; i++)
		if ((u[i] & 0xc0) != 0x80) {
			*ret_n = 1; /* not UTF-8 after all */
			return 1;
		}
	c = decode(u, *ret_n);
	if (c < 0x300)
		return 1;
	return is_in(marks, SBX_N_ELEMENTS(marks), c) ? 0 :
	       is_in(wide, SBX_N_ELEMENTS(wide), c)   ? 2 :
							1;
}

size_t sbx_width(const char *s)
{
	size_t width = 0, n;

	for (; *s; s += n)
		width += width_of(s, &n);
	return width;
}

size_t sbx_width_fit(const char *s, size_t width, size_t *ret_width)
{
	size_t at = 0, columns = 0, max = width * (4 + MARKS_PER_COLUMN), n;

	while (s[at]) {
		size_t w = width_of(s + at, &n);

		if (columns + w > width || at + n > max)
			break;
		columns += w;
		at += n;
	}
	*ret_width = columns;
	return at;
}
