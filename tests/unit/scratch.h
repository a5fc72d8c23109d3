/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_SCRATCH_H
#define SBX_TESTS_SCRATCH_H

/* Helpers for tests that write to a directory of their own. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static inline void scratch_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline int scratch_remove_one(const char *path, const struct stat *st, int type,
				     struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* The directory and all in it. */
static inline void scratch_remove(const char *dir)
{
	nftw(dir, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
