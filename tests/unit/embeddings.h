/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_UNIT_EMBEDDINGS_H
#define SBX_TESTS_UNIT_EMBEDDINGS_H

/* An IPv4 address in each IPv6 address that the kernel, a translator or a tunnel would turn back
 * into it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/addr.h"
#include "base/cleanup.h"

struct embedding {
	const char *name;
	const char *around; /* the bits around it, as an address */
	uint8_t at[4];	    /* which bytes it is */
	uint8_t flip;
};

static const struct embedding embeddings[] = {
	{ "mapped", "::ffff:0:0", { 12, 13, 14, 15 }, 0 },
	{ "compatible", "::", { 12, 13, 14, 15 }, 0 },
	{ "NAT64", "64:ff9b::", { 12, 13, 14, 15 }, 0 },
	/* RFC 6052 section 2.2; a network's number where the prefix is longer than 48 */
	{ "local NAT64, /48", "64:ff9b:1::", { 6, 7, 9, 10 }, 0 },
	{ "local NAT64, /56", "64:ff9b:1:ab00::", { 7, 9, 10, 11 }, 0 },
	{ "local NAT64, /64", "64:ff9b:1:abcd::", { 9, 10, 11, 12 }, 0 },
	{ "local NAT64, /96", "64:ff9b:1:abcd:c0:c0c0::", { 12, 13, 14, 15 }, 0 },
	{ "local NAT64, /96 of zeros", "64:ff9b:1::", { 12, 13, 14, 15 }, 0 },
	{ "6to4", "2002::1", { 2, 3, 4, 5 }, 0 },
	{ "Teredo's server", "2001:0::f7f7:f7f7", { 4, 5, 6, 7 }, 0 },
	{ "Teredo's client", "2001:0:808:808::", { 12, 13, 14, 15 }, 0xff },
};

static inline struct sbx_addr embed(const struct embedding *e, const char *v4)
{
	struct sbx_addr a, in;

	assert_int_equal(sbx_addr_parse(e->around, &a), 0);
	assert_int_equal(sbx_addr_parse(v4, &in), 0);
	for (size_t i = 0; i < 4; i++)
		a.b[e->at[i]] = in.b[i] ^ e->flip;
	return a;
}

#endif
