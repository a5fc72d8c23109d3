/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_GOLDEN_H
#define SBX_TESTS_GOLDEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define GOLDEN_MAX (1u << 20)

/* @text is what tests/golden/@name has; SBX_UPDATE_GOLDEN (make update-golden) writes it there
 * first. */
static inline void golden_compare(const char *name, const char *text)
{
	SBX_AUTO_FREE char *want = calloc(1, GOLDEN_MAX);
	const char *srcdir = getenv("SBX_SRCDIR");
	char path[4096];
	size_t at = 0;
	FILE *f;

	assert_non_null(want);
	assert_non_null(text);
	snprintf(path, sizeof(path), "%s/tests/golden/%s", srcdir ? srcdir : ".", name);
	if (getenv("SBX_UPDATE_GOLDEN")) {
		f = fopen(path, "we");
		assert_non_null(f);
		assert_true(fputs(text, f) >= 0);
		assert_int_equal(fclose(f), 0);
	}
	f = fopen(path, "re");
	if (!f)
		fail_msg("%s is missing: make update-golden writes it", path);
	assert_in_range(fread(want, 1, GOLDEN_MAX, f), 0, GOLDEN_MAX - 1);
	fclose(f);
	while (want[at] && want[at] == text[at])
		at++;
	if (want[at] != text[at])
		fail_msg("%s differs at byte %zu: wanted ...%.60s... got ...%.60s...", path, at,
			 want + at, text + at);
}

#endif
