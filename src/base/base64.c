/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/base64.h"

size_t sbx_base64_encode(struct sbx_span s, uint8_t *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t n = 0;

	for (size_t i = 0; out && i < s.n; i += 3) {
		size_t left = s.n - i;
		uint32_t v = (uint32_t)s.p[i] << 16;

		v |= left > 1 ? (uint32_t)s.p[i + 1] << 8 : 0;
		v |= left > 2 ? s.p[i + 2] : 0;
		out[n++] = (uint8_t)digits[v >> 18];
		out[n++] = (uint8_t)digits[v >> 12 & 63];
		out[n++] = left > 1 ? (uint8_t)digits[v >> 6 & 63] : '=';
		out[n++] = left > 2 ? (uint8_t)digits[v & 63] : '=';
	}
	return (s.n + 2) / 3 * 4;
}
