/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sizes, times, CPU shares and counts: text to number and back. One table of suffixes per kind, the
 * largest first, serves both ways.
 */

#include "policy/forms/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

struct suffix {
	const char *text;
	uint64_t factor;
};

static const struct suffix size_suffixes[] = {
	{ "T", UINT64_C(1) << 40 },
	{ "G", UINT64_C(1) << 30 },
	{ "M", UINT64_C(1) << 20 },
	{ "K", UINT64_C(1) << 10 },
	{ "", 1 },
	{ NULL, 0 },
};

static const struct suffix time_suffixes[] = {
	{ "d", 24 * 60 * 60 * 1000 },
	{ "h", 60 * 60 * 1000 },
	{ "m", 60 * 1000 },
	{ "s", 1000 },
	{ "ms", 1 },
	{ NULL, 0 },
};

/* Digits at @s; *ret_end is behind them. */
static int digits(const char *s, const char **ret_end, uint64_t *ret_v)
{
	uint64_t v = 0;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	for (; isdigit((unsigned char)*s); s++) {
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s - '0', &v))
			return -ERANGE;
	}
	*ret_end = s;
	*ret_v = v;
	return 0;
}

static int parse(const char *s, const struct suffix *suffixes, uint64_t *ret_v)
{
	const char *end;
	uint64_t v;
	int r = digits(s, &end, &v);

	if (r < 0)
		return r;
	for (; suffixes->text; suffixes++) {
		if (strcasecmp(end, suffixes->text) != 0)
			continue;
		if (__builtin_mul_overflow(v, suffixes->factor, &v))
			return -ERANGE;
		*ret_v = v;
		return 0;
	}
	return -EINVAL;
}

static const char *format(uint64_t v, const struct suffix *suffixes, char *buf, size_t n_buf)
{
	while (suffixes->factor > 1 && (v == 0 || v % suffixes->factor != 0))
		suffixes++;
	sbx_text_fit(buf, n_buf, "%" PRIu64 "%s", v / suffixes->factor, suffixes->text);
	return buf;
}

int sbx_size_parse(const char *s, uint64_t *ret_v)
{
	return parse(s, size_suffixes, ret_v);
}

const char *sbx_size_format(uint64_t v, char *buf, size_t n_buf)
{
	return format(v, size_suffixes, buf, n_buf);
}

int sbx_time_parse(const char *s, uint64_t *ret_v)
{
	return parse(s, time_suffixes, ret_v);
}

const char *sbx_time_format(uint64_t v, char *buf, size_t n_buf)
{
	return format(v, time_suffixes, buf, n_buf);
}

int sbx_cpus_parse(const char *s, uint64_t *ret_v)
{
	const char *end;
	uint64_t v;
	int r = digits(s, &end, &v);

	if (r < 0)
		return r;
	if (__builtin_mul_overflow(v, 1000, &v))
		return -ERANGE;
	if (*end == '.') {
		uint64_t unit = 100;

		if (!isdigit((unsigned char)*++end))
			return -EINVAL;
		for (; isdigit((unsigned char)*end); end++, unit /= 10) {
			if (unit == 0)
				return -EINVAL;
			if (__builtin_add_overflow(v, unit * (uint64_t)(*end - '0'), &v))
				return -ERANGE;
		}
	}
	if (*end)
		return -EINVAL;
	*ret_v = v;
	return 0;
}

const char *sbx_cpus_format(uint64_t v, char *buf, size_t n_buf)
{
	char fraction[8];
	size_t n = (size_t)snprintf(fraction, sizeof(fraction), ".%03u", (unsigned)(v % 1000));

	while (n > 1 && fraction[n - 1] == '0')
		fraction[--n] = '\0';
	sbx_text_fit(buf, n_buf, "%" PRIu64 "%s", v / 1000, n > 1 ? fraction : "");
	return buf;
}

int sbx_count_parse(const char *s, uint64_t *ret_v)
{
	const char *end;
	uint64_t v;
	int r = digits(s, &end, &v);

	if (r < 0)
		return r;
	if (*end)
		return -EINVAL;
	*ret_v = v;
	return 0;
}

const char *sbx_count_format(uint64_t v, char *buf, size_t n_buf)
{
	snprintf(buf, n_buf, "%" PRIu64, v);
	return buf;
}

#define ID_FIRST 1000u	     /* below are system users: Debian policy 9.2.2 */
#define ID_LAST	 0xfffffffdu /* (uid_t)-1 is "no change", -2 has been nobody */
#define ID_NOBODY 65534u
#define ID_NONE16 65535u

int sbx_id_range_parse(const char *s, struct sbx_id_range *ret_range)
{
	const char *end;
	uint64_t first, last;
	int r = digits(s, &end, &first);

	if (r < 0 || *end != '-')
		return r < 0 ? r : -EINVAL;
	r = digits(end + 1, &end, &last);
	if (r < 0 || *end)
		return r < 0 ? r : -EINVAL;
	if (first < ID_FIRST || last > ID_LAST || first > last ||
	    last - first >= SBX_ID_RANGE_MAX || (first <= ID_NONE16 && last >= ID_NOBODY))
		return -ERANGE;
	ret_range->first = (uint32_t)first;
	ret_range->last = (uint32_t)last;
	return 0;
}
