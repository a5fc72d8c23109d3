/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The canonical form of a request's path, and patterns of paths.
 *
 * A rule about paths is worth as much as the agreement of this file and the server about the path
 * that a request means. Servers differ: some decode before they split at slashes, some decode
 * twice, some drop the parameters of a segment, some merge slashes. So a path that two known kinds
 * of servers read in two ways is refused, and everything else has one spelling: unreserved
 * characters are decoded, all other encodings stay, in upper case. The check of dot segments
 * comes after the decoding, on the bytes that the patterns see.
 *
 * Parameters of a segment (";v=1") are common, so a path keeps them, and a pattern must match each
 * reading: as it stands; without what a ';' begins; without what a ';' or "%3B" begins. No reading
 * has an empty segment or a dot segment: the check of segments looks at what is before a parameter.
 *
 * Some proxies decode a path and split it then, so that it ends before an encoded '?' or '#'
 * (nginx: proxy_pass with $uri). A pattern must match that reading, too, up to its own such mark.
 *
 * A pattern is run as an automaton with one state a byte (no recursion, no going back), so a
 * hostile path costs at most its length times the pattern's.
 */

#include "http/path.h"

#include <assert.h>
#include <string.h>

#include "base/hex.h"
#include "http/encode.h"
#include "wire/http_field.h"

static const char hex_digits[] = "0123456789ABCDEF";
static const char encoded_slash[] = "it has an encoded slash (%2F)";

/* The byte that is encoded at @s.p[i], or -1. */
static int encoded_byte(struct sbx_span s, size_t i)
{
	int high, low;

	if (s.n - i < 3 || s.p[i] != '%')
		return -1;
	high = sbx_hex_value(s.p[i + 1]);
	low = sbx_hex_value(s.p[i + 2]);
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Why an encoded byte may not be in a path; NULL: it may. @before: the encoded byte that stands
 * directly before it, or 0. */
static const char *judge_encoded(int b, int before)
{
	if (b == '\\')
		return "it has an encoded backslash (%5C)";
	if (b < ' ' || b == 0x7f)
		return "it has an encoded control byte";
	/* Lenient decoders make a dot or a slash of these: no UTF-8 has them. */
	if (b == 0xc0 || b == 0xc1 || (before == 0xe0 && b >= 0x80 && b < 0xa0) ||
	    (before == 0xf0 && b >= 0x80 && b < 0x90))
		return "it has overlong UTF-8";
	return NULL;
}

static const char *judge_plain(uint8_t b)
{
	if (b == '\\')
		return "it has a backslash";
	if (b < ' ' || b == 0x7f)
		return "it has a control byte";
	if (!sbx_http_is(b, SBX_HTTP_TARGET))
		return "it has a byte that must be percent-encoded";
	return NULL;
}

/* Writes @path with the right things decoded, slashes too (*ret_slash: there is an encoded one).
 * Returns why not, or NULL. */
static const char *decode(struct sbx_span path, char *out, size_t *ret_n, bool *ret_slash)
{
	const char *why;
	size_t n = 0;
	int before = 0;

	for (size_t i = 0; i < path.n; i++) {
		int b = path.p[i];

		if (b != '%') {
			why = judge_plain(path.p[i]);
			before = 0;
			out[n++] = (char)b;
		} else {
			b = encoded_byte(path, i);
			if (b < 0)
				return "it has an incomplete percent encoding";
			why = judge_encoded(b, before);
			before = b;
			i += 2;
			*ret_slash |= b == '/';
			if (b == '/' || sbx_http_is_unreserved((uint8_t)b)) {
				out[n++] = (char)b;
			} else {
				out[n++] = '%';
				out[n++] = hex_digits[b >> 4];
				out[n++] = hex_digits[b & 15];
			}
		}
		if (why)
			return why;
	}
	*ret_n = n;
	return NULL;
}

/* Does a parameter begin at @i? Some servers drop it with the rest of its segment. @encoded: for
 * servers that decode before they do so. */
static bool begins_parameter(struct sbx_span s, size_t i, bool encoded)
{
	if (s.p[i] == ';')
		return true;
	return encoded && s.n - i >= 3 && !memcmp(s.p + i, "%3B", 3);
}

/* The bytes before an encoded '?' or '#'. */
static struct sbx_span before_mark(struct sbx_span s)
{
	for (size_t i = 0; i + 3 <= s.n; i++)
		if (!memcmp(s.p + i, "%3F", 3) || !memcmp(s.p + i, "%23", 3))
			return sbx_span(s.p, i);
	return s;
}

/* A segment without its slashes. @last: nothing comes behind it. */
static const char *judge_segment(const char *s, size_t n, bool last)
{
	size_t k = 0;

	while (k < n && !begins_parameter(sbx_span(s, n), k, true))
		k++;
	if (k == 0 && (n || !last))
		return n ? "it has an empty segment before a ';'" : "it has a doubled slash";
	k = before_mark(sbx_span(s, k)).n;
	if ((k == 1 && s[0] == '.') || (k == 2 && s[0] == '.' && s[1] == '.'))
		return "it has a dot segment (/./ or /../)";
	return NULL;
}

static const char *judge_segments(struct sbx_span path)
{
	const char *p = (const char *)path.p, *end = p + path.n;

	while (p < end) {
		const char *slash, *why;

		assert(*p == '/');
		p++;
		slash = p < end ? memchr(p, '/', (size_t)(end - p)) : NULL;
		why = judge_segment(p, (size_t)((slash ? slash : end) - p), !slash);
		if (why)
			return why;
		p = slash ? slash : end;
	}
	return NULL;
}

/* "%25" that hides another encoding, also when the hex digits behind it were encoded themselves. */
static const char *judge_twice(struct sbx_span path)
{
	for (size_t i = 0; i + 5 <= path.n; i++)
		if (!memcmp(path.p + i, "%25", 3) && sbx_hex_value(path.p[i + 3]) >= 0 &&
		    sbx_hex_value(path.p[i + 4]) >= 0)
			return "it is percent-encoded twice";
	return NULL;
}

static const char *canonical(struct sbx_span path, char *out, bool *ret_slash)
{
	const char *why;
	size_t n = 0;

	*ret_slash = false;
	out[0] = '\0';
	if (path.n > SBX_HTTP_PATH_MAX)
		return "it is too long";
	if (path.n == 1 && path.p[0] == '*') {
		memcpy(out, "*", 2);
		return NULL;
	}
	if (!path.n || path.p[0] != '/')
		return "it does not begin with a slash";
	why = decode(path, out, &n, ret_slash);
	out[why ? 0 : n] = '\0';
	if (!why)
		why = judge_segments(sbx_span(out, n));
	return why ? why : judge_twice(sbx_span(out, n));
}

int sbx_http_path_canonical(struct sbx_span target, char *out, struct sbx_span *ret_query,
			    const char **ret_why)
{
	const uint8_t *mark = target.n ? memchr(target.p, '?', target.n) : NULL;
	size_t n = mark ? (size_t)(mark - target.p) : target.n;
	bool slash;
	const char *why = canonical(sbx_span(target.p, n), out, &slash);

	*ret_query = mark ? sbx_span(mark + 1, target.n - n - 1) : sbx_span(target.p, 0);
	if (!why && !slash)
		return 0;
	*ret_why = why ? why : encoded_slash;
	return why ? SBX_HTTP_PATH_E_AMBIGUOUS : SBX_HTTP_PATH_E_SLASH;
}

/* The bytes of the star at @i: 1 or 2; 0: there is none. */
static size_t star(struct sbx_span pattern, size_t i)
{
	if (i >= pattern.n || pattern.p[i] != '*')
		return 0;
	return i + 1 < pattern.n && pattern.p[i + 1] == '*' ? 2 : 1;
}

/* A star may stand for nothing: its state leads to the one behind it. */
static void pass_stars(struct sbx_span pattern, bool *at)
{
	for (size_t i = 0; i < pattern.n; i++)
		if (at[i] && star(pattern, i))
			at[i + star(pattern, i)] = true;
}

static bool matches(struct sbx_span pattern, const char *path)
{
	bool states[2][SBX_HTTP_PATTERN_MAX + 1], *at = states[0], *next = states[1];
	bool covers_below;

	if (!pattern.n || pattern.n > SBX_HTTP_PATTERN_MAX)
		return false;
	covers_below = pattern.p[pattern.n - 1] == '/';
	memset(at, 0, pattern.n + 1);
	at[0] = true;
	pass_stars(pattern, at);
	for (; *path; path++) {
		bool *old = at;

		memset(next, 0, pattern.n + 1);
		for (size_t i = 0; i < pattern.n; i++) {
			size_t n_star = at[i] ? star(pattern, i) : 0;

			if (n_star)
				next[i] |= n_star == 2 || *path != '/';
			else if (at[i] && pattern.p[i] == (uint8_t)*path)
				next[i + 1] = true;
		}
		next[pattern.n] |= at[pattern.n] && covers_below;
		pass_stars(pattern, next);
		at = next;
		next = old;
	}
	return at[pattern.n];
}

/* Writes @s without the parameters of its segments to @out, which has room for @s, and terminates
 * it. */
static struct sbx_span drop_parameters(struct sbx_span s, bool encoded, char *out)
{
	bool dropping = false;
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '/')
			dropping = false;
		else if (begins_parameter(s, i, encoded))
			dropping = true;
		if (!dropping)
			out[n++] = (char)s.p[i];
	}
	out[n] = '\0';
	return sbx_span(out, n);
}

static bool matches_parameters(struct sbx_span pattern, const char *path)
{
	struct sbx_span s = sbx_span_str(path);
	char bare_pattern[SBX_HTTP_PATTERN_MAX + 1], bare_path[SBX_HTTP_PATH_MAX + 1];

	if (s.n > SBX_HTTP_PATH_MAX || !matches(pattern, path))
		return false;
	if (!strchr(path, ';') && !strstr(path, "%3B"))
		return true;
	for (int encoded = 0; encoded < 2; encoded++) {
		drop_parameters(s, encoded, bare_path);
		if (!matches(drop_parameters(pattern, encoded, bare_pattern), bare_path))
			return false;
	}
	return true;
}

bool sbx_http_path_matches(struct sbx_span pattern, const char *path)
{
	struct sbx_span s = sbx_span_str(path), begin = before_mark(s);
	char text[SBX_HTTP_PATH_MAX + 1];

	if (!matches_parameters(pattern, path))
		return false;
	if (begin.n == s.n)
		return true;
	memcpy(text, begin.p, begin.n);
	text[begin.n] = '\0';
	return matches_parameters(before_mark(pattern), text);
}

const char *sbx_http_pattern_check(struct sbx_span pattern)
{
	char out[SBX_HTTP_PATH_MAX + 1];
	const char *why;
	bool slash;

	if (!pattern.n || pattern.p[0] != '/')
		return "a pattern of paths begins with a slash";
	if (pattern.n > SBX_HTTP_PATTERN_MAX)
		return "the pattern is too long";
	if (memchr(pattern.p, '?', pattern.n))
		return "a pattern of paths has no query";
	why = canonical(pattern, out, &slash);
	if (why || slash)
		return why ? why : encoded_slash;
	if (strlen(out) != pattern.n || memcmp(out, pattern.p, pattern.n))
		return "it is not written as paths are compared: unreserved characters plain, "
		       "other "
		       "encodings in upper case";
	return NULL;
}
