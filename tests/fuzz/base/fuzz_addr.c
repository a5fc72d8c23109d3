/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Addresses. The first byte chooses: text as a CIDR entry (what parses prints and re-parses to the
 * same), or 16 bytes as an address, whose class must hold for every form that carries the same IPv4
 * address.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "tests/fuzz/fuzz.h"

static void fuzz_text(const uint8_t *data, size_t size)
{
	char text[128], printed[SBX_ADDR_STR_MAX + 8], addr[SBX_ADDR_STR_MAX];
	struct sbx_cidr c, again;

	if (size >= sizeof(text))
		return;
	memcpy(text, data, size);
	text[size] = '\0';
	if (sbx_cidr_parse(text, &c))
		return;
	CHECK(c.addr.family == 4 ? c.prefix <= 32 : c.prefix <= 128);
	CHECK(sbx_cidr_contains(&c, &c.addr));
	snprintf(printed, sizeof(printed), "%s/%u", sbx_addr_format(&c.addr, addr, sizeof(addr)),
		 c.prefix);
	CHECK(sbx_cidr_parse(printed, &again) == 0);
	CHECK(sbx_addr_equal(&c.addr, &again.addr) && c.prefix == again.prefix);
}

static void fuzz_class(const uint8_t *data, size_t size)
{
	static const uint8_t prefixes[][12] = {
		{ [10] = 0xff, 0xff },	 /* mapped */
		{ 0 },			 /* compatible */
		{ 0, 0x64, 0xff, 0x9b }, /* NAT64 */
		{ 0, 0x64, 0xff, 0x9b, 0, 1 },
	};
	struct sbx_addr a6 = { .family = 6 }, a4 = { .family = 4 }, u, in[SBX_ADDR_EMBEDDED_MAX];
	size_t n;

	if (size < 16)
		return;
	memcpy(a6.b, data, 16);
	CHECK((unsigned)sbx_addr_class(&a6) < SBX_ADDR_N_CLASSES);
	u = sbx_addr_unmap(&a6);
	CHECK(sbx_addr_class(&u) == sbx_addr_class(&a6));
	n = sbx_addr_embedded(&a6, in);
	CHECK(n <= SBX_ADDR_EMBEDDED_MAX);
	for (size_t i = 0; i < n; i++)
		CHECK(in[i].family == 4 && (sbx_addr_class(&in[i]) == SBX_ADDR_PUBLIC ||
					    sbx_addr_class(&a6) != SBX_ADDR_PUBLIC));
	memcpy(a4.b, data, 4);
	if (sbx_addr_class(&a4) == SBX_ADDR_PUBLIC)
		return;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		memcpy(a6.b, prefixes[i], 12);
		memcpy(a6.b + 12, a4.b, 4);
		CHECK(sbx_addr_class(&a6) != SBX_ADDR_PUBLIC);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] & 1)
		fuzz_class(data + 1, size - 1);
	else
		fuzz_text(data + 1, size - 1);
	return 0;
}
