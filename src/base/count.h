/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_COUNT_H
#define SBX_BASE_COUNT_H

#include <stdint.h>

/* The sum of two counts; UINT64_MAX where it would be more. */
static inline uint64_t sbx_count_add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif
