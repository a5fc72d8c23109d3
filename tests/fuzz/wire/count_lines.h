/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_FUZZ_WIRE_COUNT_LINES_H
#define SBX_TESTS_FUZZ_WIRE_COUNT_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* The lines of the head after the first that begin with @name in any case. */
static inline size_t count_lines(const uint8_t *p, size_t n, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i + 1 + strlen(name) <= n; i++)
		if (p[i] == '\n' && !strncasecmp((const char *)p + i + 1, name, strlen(name)))
			count++;
	return count;
}

#endif
