/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_HEX_H
#define SBX_BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

/* Hexadecimal digits. PURE. */

/* Writes the @n bytes of @p as 2 * @n lower-case digits and a NUL. */
void sbx_hex_lower(const uint8_t *p, size_t n, char *out);

/* The value of the digit @c, in either case; -1: it is none. */
int sbx_hex_value(uint8_t c);

#endif
