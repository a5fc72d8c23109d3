/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Host names: an accepted name is in the one normal form, and is no text that a resolver or the
 * socket API takes for an address. */

#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostname.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[SBX_HOSTNAME_MAX + 1], again[SBX_HOSTNAME_MAX + 1];
	struct in6_addr in6;
	struct in_addr in;
	size_t n;
	int r = sbx_hostname_normalise((const char *)data, size, name);

	if (r) {
		CHECK(r >= SBX_HOSTNAME_E_EMPTY && r <= SBX_HOSTNAME_E_ADDRESS && !name[0]);
		return 0;
	}
	n = strlen(name);
	CHECK(n > 0 && n <= SBX_HOSTNAME_MAX && (n == size || n + 1 == size));
	CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n);
	CHECK(name[0] != '.' && name[n - 1] != '.' && !strstr(name, ".."));
	CHECK(sbx_hostname_normalise(name, n, again) == 0 && strcmp(name, again) == 0);
	CHECK(!inet_aton(name, &in) && inet_pton(AF_INET6, name, &in6) != 1);
	CHECK(sbx_hostname_in_domain(name, name));
	return 0;
}
