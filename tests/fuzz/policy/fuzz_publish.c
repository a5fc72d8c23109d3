/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The values of --publish: an accepted one prints to a text with the same meaning. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/profile/profile.h"
#include "policy/profile/publish.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char where[SBX_PUBLISH_STR_MAX], text[SBX_PUBLISH_STR_MAX + 8],
		*copy = strndup((const char *)data, size);
	struct sbx_publish p = { 0 }, again = { 0 };
	struct sbx_err err = { 0 };
	int r = copy ? sbx_publish_parse(copy, &p, &err) : SBX_PROFILE_E_INVALID;

	if (r != 0) {
		CHECK(!copy || (r == SBX_PROFILE_E_INVALID && err.msg[0] && p.inside == 0));
	} else {
		CHECK(p.inside != 0 && (p.addr.family == 4 || p.addr.family == 6));
		snprintf(text, sizeof(text), "%s:%u", sbx_publish_format(&p, where, sizeof(where)),
			 p.inside);
		CHECK(sbx_publish_parse(text, &again, NULL) == 0);
		CHECK(sbx_addr_equal(&p.addr, &again.addr) && p.port == again.port &&
		      p.inside == again.inside);
		CHECK(sbx_publish_is_loopback(&p) == sbx_publish_is_loopback(&again));
	}
	free(copy);
	return 0;
}
