/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The self-test's reading of DNS answers: any bytes, as an answer to either question. */
#include <stddef.h>
#include <stdint.h>

#include "launcher/init/init_dns.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct sbx_dns_answer a = { 0 };

		if (sbx_dns_answer(sbx_span(data, size), "example.org", family, 0x1234, &a) < 0)
			continue;
		CHECK(a.rcode <= 15 && a.n_addrs <= size / 12);
		for (size_t i = 0; i < a.n_addrs && i < SBX_DNS_ADDRS_MAX; i++)
			CHECK(a.v[i].family == family);
	}
	return 0;
}
