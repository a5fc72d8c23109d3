/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_ANSWERS_TEXT_DIFF_H
#define SBX_CTL_ANSWERS_TEXT_DIFF_H

#include <stddef.h>

/* Compare two texts line by line, by the longest common subsequence. Calls @fn for each line, in
 * order, with ' ' (in both), '-' (only in @a) or '+' (only in @b); the line has no newline and
 * is not NUL-terminated. Texts of more than SBX_DIFF_LINES_MAX lines are refused. 0, -E2BIG,
 * -ENOMEM. */
#define SBX_DIFF_LINES_MAX 4096
int sbx_text_diff(const char *a, const char *b,
		  void (*fn)(char sign, const char *line, size_t n, void *userdata),
		  void *userdata);

#endif
