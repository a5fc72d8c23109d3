/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/print/form.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "policy/forms/units.h"

const char *sbx_form_age(int64_t ms, char *buf)
{
	int64_t s = ms < 0 ? 0 : ms / 1000;

	if (s < 60)
		sbx_text_cut(buf, SBX_FORM_MAX, "%" PRId64 "s", s);
	else if (s < 3600)
		sbx_text_cut(buf, SBX_FORM_MAX, "%" PRId64 "m", s / 60);
	else if (s < 86400)
		sbx_text_cut(buf, SBX_FORM_MAX, "%" PRId64 "h", s / 3600);
	else
		sbx_text_cut(buf, SBX_FORM_MAX, "%" PRId64 "d", s / 86400);
	return buf;
}

const char *sbx_form_bytes(uint64_t n, char *buf)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t unit = 0;
	uint64_t tenths;

	if (n < 1024) {
		sbx_text_cut(buf, SBX_FORM_MAX, "%" PRIu64 " B", n);
		return buf;
	}
	while (n >= UINT64_C(1024) * 1024) {
		n /= 1024;
		unit++;
	}
	tenths = n * 10 / 1024;
	sbx_text_cut(buf, SBX_FORM_MAX, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
		     units[unit]);
	return buf;
}

const char *sbx_form_time(int64_t ms, char *buf)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;

	if (!gmtime_r(&s, &tm) || strftime(buf, SBX_FORM_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		sbx_text_cut(buf, SBX_FORM_MAX, "%" PRId64, ms);
	return buf;
}

/* The three digits after the point of a time as sbxctl prints it. Returns what follows them; @s
 * itself if it does not begin with such a fraction. */
static const char *milliseconds(const char *s, int *ret_ms)
{
	if (s[0] != '.' || strspn(s + 1, "0123456789") != 3)
		return s;
	*ret_ms = (s[1] - '0') * 100 + (s[2] - '0') * 10 + (s[3] - '0');
	return s + 4;
}

int sbx_form_instant(const char *s, int64_t now_ms, int64_t *ret_ms)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d" };
	uint64_t ago;
	int ms = 0;

	if (sbx_time_parse(s, &ago) == 0 && ago < INT64_MAX) {
		*ret_ms = now_ms - (int64_t)ago;
		return 0;
	}
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(s, forms[i], &tm);

		if (!end)
			continue;
		end = i == 0 ? milliseconds(end, &ms) : end;
		if (!*end || (i < 2 && strcmp(end, "Z") == 0)) {
			*ret_ms = (int64_t)timegm(&tm) * 1000 + ms;
			return 0;
		}
	}
	return -EINVAL;
}

const char *sbx_form_instant_check(const char *s)
{
	int64_t ms;

	return sbx_form_instant(s, 0, &ms) == 0 ?
		       NULL :
		       "it must be an age (10m, 2h, 3d) or a time in UTC "
		       "(2026-11-25T20:17:41)";
}

const char *sbx_form_count_check(const char *s)
{
	uint64_t n;

	return sbx_count_parse(s, &n) == 0 && n > 0 && n <= 1000000 ?
		       NULL :
		       "it must be a number from 1 to 1000000";
}
