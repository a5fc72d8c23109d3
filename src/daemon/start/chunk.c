/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/start/chunk.h"

#include <stdlib.h>

#include "base/cleanup.h"

static char *base64(struct sbx_span in, size_t *ret_n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *out = malloc((in.n + 2) / 3 * 4 + 1);
	size_t n = 0;

	for (size_t i = 0; out && i < in.n; i += 3) {
		size_t left = in.n - i;
		uint32_t v = (uint32_t)in.p[i] << 16 |
			     (left > 1 ? (uint32_t)in.p[i + 1] << 8 : 0) |
			     (left > 2 ? in.p[i + 2] : 0);

		out[n++] = digits[v >> 18];
		out[n++] = digits[v >> 12 & 63];
		out[n++] = left > 1 ? digits[v >> 6 & 63] : '=';
		out[n++] = left > 2 ? digits[v & 63] : '=';
	}
	*ret_n = n;
	return out;
}

int sbx_chunk_set(json_t *o, const char *key, const char *key_base64, struct sbx_span bytes)
{
	json_t *text = json_stringn(bytes.n ? (const char *)bytes.p : "", bytes.n);
	SBX_AUTO_FREE char *encoded = NULL;
	size_t n;

	if (text)
		return json_object_set_new(o, key, text);
	encoded = base64(bytes, &n);
	return encoded ? json_object_set_new(o, key_base64, json_stringn(encoded, n)) : -1;
}
