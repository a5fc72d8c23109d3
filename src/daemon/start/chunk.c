/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/start/chunk.h"

#include <stdlib.h>

#include "base/base64.h"
#include "base/cleanup.h"

int sbx_chunk_set(json_t *o, const char *key, const char *key_base64, struct sbx_span bytes)
{
	json_t *text = json_stringn(bytes.n ? (const char *)bytes.p : "", bytes.n);
	SBX_AUTO_FREE char *encoded = NULL;
	size_t n;

	if (text)
		return json_object_set_new(o, key, text);
	n = sbx_base64_encode(bytes, NULL);
	encoded = malloc(n);
	if (!encoded)
		return -1;
	sbx_base64_encode(bytes, (uint8_t *)encoded);
	return json_object_set_new(o, key_base64, json_stringn(encoded, n));
}
