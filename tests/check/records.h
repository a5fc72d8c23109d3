/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_CHECK_RECORDS_H
#define SBX_TESTS_CHECK_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/span.h"

/* The comparisons of HTTP write records to these programs: a byte that says the kind, a u32 length
 * in network byte order, and as many bytes. */

#define RECORD_MAX (1u << 20)

/* The next record of stdin, valid until the next call. false: there is no more. Ends the program
 * if one is cut or too long. */
static bool next_record(uint8_t *ret_kind, struct sbx_span *ret)
{
	static uint8_t bytes[RECORD_MAX];
	uint8_t head[5];
	size_t n = fread(head, 1, sizeof(head), stdin);

	if (!n)
		return false;
	if (n < sizeof(head))
		exit(1);
	n = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
	if (n > sizeof(bytes) || fread(bytes, 1, n, stdin) != n)
		exit(1);
	*ret_kind = head[0];
	*ret = sbx_span(bytes, n);
	return true;
}

#endif
