/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ways in which a string is written in parts of a request; see encode.h. The decoders are
 * lenient, because they look for strings in what clients send: all that a server might decode is
 * to be seen. The encoders write the one form that every server reads.
 */

#include "http/encode.h"

#include <string.h>

#include "base/hex.h"

static const char capital_digits[] = "0123456789ABCDEF", small_digits[] = "0123456789abcdef";

bool sbx_http_is_unreserved(uint8_t b)
{
	return (b >= '0' && b <= '9') || (b >= 'A' && b <= 'Z') || (b >= 'a' && b <= 'z') ||
	       b == '-' || b == '.' || b == '_' || b == '~';
}

static size_t put(uint8_t *out, size_t n, uint8_t b)
{
	if (out)
		out[n] = b;
	return n + 1;
}

static size_t put_hex(uint8_t *out, size_t n, uint8_t b, const char *digits)
{
	n = put(out, n, (uint8_t)digits[b >> 4]);
	return put(out, n, (uint8_t)digits[b & 15]);
}

size_t sbx_http_percent_write(struct sbx_span s, enum sbx_http_percent how, uint8_t *out)
{
	const char *digits = how == SBX_HTTP_PERCENT_LOWER ? small_digits : capital_digits;
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (sbx_http_is_unreserved(s.p[i]) ||
		    (how == SBX_HTTP_PERCENT_PATH && s.p[i] == '/')) {
			n = put(out, n, s.p[i]);
		} else {
			n = put(out, n, '%');
			n = put_hex(out, n, s.p[i], digits);
		}
	}
	return n;
}

size_t sbx_http_percent_decode(struct sbx_span s, bool plus, uint8_t *out, uint32_t *from)
{
	size_t n = 0, i = 0;

	while (i < s.n) {
		uint8_t b = s.p[i];

		if (from)
			from[n] = (uint32_t)i;
		if (b == '%' && s.n - i >= 3 && sbx_hex_value(s.p[i + 1]) >= 0 &&
		    sbx_hex_value(s.p[i + 2]) >= 0) {
			b = (uint8_t)(sbx_hex_value(s.p[i + 1]) << 4 | sbx_hex_value(s.p[i + 2]));
			i += 2;
		} else if (b == '+' && plus) {
			b = ' ';
		}
		out[n++] = b;
		i++;
	}
	if (from)
		from[n] = (uint32_t)s.n;
	return n;
}

static int base64_value(uint8_t b)
{
	if (b >= 'A' && b <= 'Z')
		return b - 'A';
	if (b >= 'a' && b <= 'z')
		return b - 'a' + 26;
	if (b >= '0' && b <= '9')
		return b - '0' + 52;
	if (b == '+' || b == '-')
		return 62;
	return b == '/' || b == '_' ? 63 : -1;
}

bool sbx_http_base64_decode(struct sbx_span s, uint8_t *out, size_t *ret_n)
{
	uint32_t bits = 0;
	size_t n = 0, n_bits = 0;

	while (s.n && s.p[s.n - 1] == '=')
		s.n--;
	for (size_t i = 0; i < s.n; i++) {
		int v = base64_value(s.p[i]);

		if (v < 0)
			return false;
		bits = bits << 6 | (uint32_t)v;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			out[n++] = (uint8_t)(bits >> n_bits);
		}
	}
	*ret_n = n;
	return s.n % 4 != 1;
}

/* The letter behind the backslash, or 0. */
static uint8_t short_escape(uint8_t b, enum sbx_http_json how)
{
	switch (b) {
	case '"':
		return how == SBX_HTTP_JSON_NET ? 0 : b;
	case '\\':
		return b;
	case '/':
		return how == SBX_HTTP_JSON_SLASH ? b : 0;
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return 0;
	}
}

/* Is the byte, which has no short escape, written as \u00XX? */
static bool has_long_escape(uint8_t b, enum sbx_http_json how)
{
	static const char *const more[] = {
		[SBX_HTTP_JSON] = "",
		[SBX_HTTP_JSON_SLASH] = "",
		[SBX_HTTP_JSON_GO] = "<>&",
		[SBX_HTTP_JSON_GSON] = "<>&='",
		[SBX_HTTP_JSON_NET] = "<>&+'\"`",
	};

	return b < ' ' || strchr(more[how], b);
}

size_t sbx_http_json_escape(struct sbx_span s, enum sbx_http_json how, uint8_t *out)
{
	bool small = how == SBX_HTTP_JSON_GO || how == SBX_HTTP_JSON_GSON;
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		uint8_t letter = short_escape(s.p[i], how);

		if (letter) {
			n = put(out, n, '\\');
			n = put(out, n, letter);
		} else if (has_long_escape(s.p[i], how)) {
			n = put(out, n, '\\');
			n = put(out, n, 'u');
			n = put(out, n, '0');
			n = put(out, n, '0');
			n = put_hex(out, n, s.p[i], small ? small_digits : capital_digits);
		} else {
			n = put(out, n, s.p[i]);
		}
	}
	return n;
}
