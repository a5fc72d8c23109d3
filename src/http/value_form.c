/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ways in which programs write a value; see value_form.h. */

#include "http/value_form.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/base64.h"
#include "http/encode.h"

static size_t write_text(enum sbx_value_form form, struct sbx_span value, uint8_t *out)
{
	switch (form) {
	case SBX_VALUE_JSON:
		return sbx_http_json_escape(value, SBX_HTTP_JSON, out);
	case SBX_VALUE_JSON_SLASH:
		return sbx_http_json_escape(value, SBX_HTTP_JSON_SLASH, out);
	case SBX_VALUE_JSON_GO:
		return sbx_http_json_escape(value, SBX_HTTP_JSON_GO, out);
	case SBX_VALUE_JSON_GSON:
		return sbx_http_json_escape(value, SBX_HTTP_JSON_GSON, out);
	case SBX_VALUE_JSON_NET:
		return sbx_http_json_escape(value, SBX_HTTP_JSON_NET, out);
	case SBX_VALUE_PERCENT_LOWER:
		return sbx_http_percent_write(value, SBX_HTTP_PERCENT_LOWER, out);
	case SBX_VALUE_PERCENT_PATH:
		return sbx_http_percent_write(value, SBX_HTTP_PERCENT_PATH, out);
	default:
		return sbx_http_percent_encode(value, out);
	}
}

/* The digits that are all the value's. */
static int write_base64(enum sbx_value_form form, struct sbx_span value,
			struct sbx_http_block **memory, struct sbx_span *ret)
{
	bool url = form >= SBX_VALUE_BASE64URL;
	size_t n_before = form - (url ? SBX_VALUE_BASE64URL : SBX_VALUE_BASE64);
	size_t n = n_before + value.n, first = (n_before * 8 + 5) / 6;
	uint8_t *plain = sbx_http_memory_take(memory, n);
	uint8_t *p = plain ? sbx_http_memory_take(memory, (n + 2) / 3 * 4) : NULL;

	if (!p)
		return -ENOMEM;
	assert(n >= value.n); /* plain has n bytes */
	memcpy(plain + n_before, value.p, value.n);
	sbx_base64_encode(sbx_span(plain, n), p);
	*ret = sbx_span(p + first, n * 8 / 6 - first);
	for (size_t i = 0; url && i < first + ret->n; i++)
		p[i] = p[i] == '+' ? '-' : p[i] == '/' ? '_' : p[i];
	return 0;
}

int sbx_value_form_write(enum sbx_value_form form, struct sbx_span value,
			 struct sbx_http_block **memory, struct sbx_span *ret)
{
	size_t n;
	uint8_t *p;

	*ret = value;
	if (form == SBX_VALUE_RAW)
		return 0;
	if (sbx_value_form_is_base64(form))
		return write_base64(form, value, memory, ret);
	n = write_text(form, value, NULL);
	p = sbx_http_memory_take(memory, n);
	if (!p)
		return -ENOMEM;
	write_text(form, value, p);
	*ret = sbx_span(p, n);
	return 0;
}
