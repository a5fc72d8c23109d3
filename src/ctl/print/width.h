/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_PRINT_WIDTH_H
#define SBX_CTL_PRINT_WIDTH_H

#include <stddef.h>

/* Columns that text takes on a terminal. The text is valid UTF-8 without control characters, as
 * sbx_escape() leaves it. PURE. */

size_t sbx_width(const char *s);
/* The bytes of @s that fit @width columns. Marks that take no column are kept up to a bound, so
 * that a pile of them is cut too. *ret_width is what those bytes take. */
size_t sbx_width_fit(const char *s, size_t width, size_t *ret_width);

#endif
