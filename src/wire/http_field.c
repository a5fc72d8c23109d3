/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bytes and field names of HTTP/1; see http_field.h. */

#include "wire/http_field.h"

#include <assert.h>

#include "base/cleanup.h"

#define T SBX_HTTP_TOKEN
#define V SBX_HTTP_VALUE
#define U SBX_HTTP_TARGET

/* Every other byte is in no class: the controls, DEL. */
const uint8_t sbx_http_classes[256] = {
	['\t'] = V,
	[' '] = V,
	['!'] = T | V | U,
	['"'] = V | U,
	['#'] = T | V,
	['$' ... '\''] = T | V | U,
	['(' ... ')'] = V | U,
	['*' ... '+'] = T | V | U,
	[','] = V | U,
	['-' ... '.'] = T | V | U,
	['/'] = V | U,
	['0' ... '9'] = T | V | U,
	[':' ... '@'] = V | U,
	['A' ... 'Z'] = T | V | U,
	['[' ... ']'] = V | U,
	['^' ... 'z'] = T | V | U,
	['{'] = V | U,
	['|'] = T | V | U,
	['}'] = V | U,
	['~'] = T | V | U,
	[0x80 ... 0xff] = V,
};

static const char *const field_names[SBX_N_HTTP_FIELDS] = {
	[SBX_HTTP_FIELD_HOST] = "host",
	[SBX_HTTP_FIELD_CONTENT_LENGTH] = "content-length",
	[SBX_HTTP_FIELD_TRANSFER_ENCODING] = "transfer-encoding",
	[SBX_HTTP_FIELD_CONNECTION] = "connection",
	[SBX_HTTP_FIELD_UPGRADE] = "upgrade",
	[SBX_HTTP_FIELD_HTTP2_SETTINGS] = "http2-settings",
};
static_assert(SBX_HTTP_FIELD_DISGUISED + 1 == SBX_N_HTTP_FIELDS,
	      "every field but these has a name");

bool sbx_http_all(struct sbx_span s, unsigned class)
{
	for (size_t i = 0; i < s.n; i++)
		if (!sbx_http_is(s.p[i], class))
			return false;
	return s.n > 0;
}

static uint8_t lower(uint8_t b)
{
	return b >= 'A' && b <= 'Z' ? b | 0x20 : b;
}

bool sbx_http_same_name(struct sbx_span a, struct sbx_span b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

bool sbx_http_equal(struct sbx_span s, const char *text)
{
	return sbx_http_same_name(s, sbx_span_str(text));
}

static uint8_t fold(uint8_t b)
{
	return b == '_' ? '-' : lower(b);
}

bool sbx_http_names_alike(struct sbx_span a, struct sbx_span b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (fold(a.p[i]) != fold(b.p[i]))
			return false;
	return true;
}

bool sbx_http_describes_bytes(struct sbx_span name)
{
	static const char *const names[] = { "content-length", "content-md5", "content-digest",
					     "digest" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		if (sbx_http_equal(name, names[i]))
			return true;
	return false;
}

static bool is_space(uint8_t b)
{
	return b == ' ' || b == '\t';
}

struct sbx_span sbx_http_trim(struct sbx_span s)
{
	while (s.n && is_space(s.p[s.n - 1]))
		s.n--;
	while (s.n && is_space(s.p[0])) {
		s.p++;
		s.n--;
	}
	return s;
}

bool sbx_http_list_next(struct sbx_span *list, struct sbx_span *ret_item)
{
	struct sbx_span item;

	if (!list->n)
		return false;
	sbx_span_cut(list, ',', &item);
	*ret_item = sbx_http_trim(item);
	return true;
}

bool sbx_http_field_split(struct sbx_span line, struct sbx_http_header *ret)
{
	struct sbx_span name;

	if (!sbx_span_cut(&line, ':', &name) || !sbx_http_all(name, SBX_HTTP_TOKEN))
		return false;
	*ret = (struct sbx_http_header){ .name = name, .value = sbx_http_trim(line) };
	return true;
}

enum sbx_http_field sbx_http_field_lookup(struct sbx_span name)
{
	for (enum sbx_http_field f = SBX_HTTP_FIELD_HOST; f < SBX_HTTP_FIELD_DISGUISED; f++)
		if (sbx_http_names_alike(name, sbx_span_str(field_names[f])))
			return sbx_http_equal(name, field_names[f]) ? f : SBX_HTTP_FIELD_DISGUISED;
	return SBX_HTTP_FIELD_OTHER;
}
