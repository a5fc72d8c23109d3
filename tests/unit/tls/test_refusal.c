/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The phrases and texts of refusals. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tls/conn/refusal.h"

static const struct sbx_http_entry entry = { .text = { (const uint8_t *)"api.example", 11 } };

static void assert_text(const struct sbx_conn *c, enum sbx_reason reason, int status,
			const char *cause, const char *expected)
{
	struct sbx_http_verdict v = sbx_refusal_verdict(c, reason, status, cause);
	char body[SBX_REFUSAL_MAX];

	assert_int_equal(v.reason, reason);
	assert_int_equal(v.status, status);
	assert_non_null(strstr(v.text, expected));
	assert_int_equal(sbx_refusal_body(&v, body), strlen(v.text) + strlen("sbx: \n"));
}

static void test_next_steps(void **state)
{
	const struct sbx_conn c = { .entry = &entry, .name = "api.example" };

	(void)state;
	assert_text(&c, SBX_REASON_OVERSIZED, 431, "x",
		    "a request to api.example was not carried: x; send fewer or shorter fields, "
		    "such as cookies (entry 'api.example')");
	assert_text(&c, SBX_REASON_OVERSIZED, 413, "x", "x; send fewer placeholders (entry");
	assert_text(&c, SBX_REASON_REQUEST_SIZE, 413, "x",
		    "x; to allow it, raise max_request_bytes (entry");
	assert_text(&c, SBX_REASON_HTTP_MALFORMED, 400, "x", "set passthrough: true (entry");
	assert_text(&c, SBX_REASON_HOST_ABSENT, 400, "x", "x; send one Host, with");
	assert_text(&c, SBX_REASON_UPSTREAM_FAILED, 502, "x", "from outside the sandbox (entry");
	assert_text(&c, SBX_REASON_RESOURCE, 503, "out of memory",
		    "out of memory; ask again later (entry");
}

/* The longest names leave room for it. */
static void test_next_step_of_long_names(void **state)
{
	struct sbx_conn c = { .entry = &entry };
	char cause[600];

	(void)state;
	memset(c.name, 'a', sizeof(c.name) - 1);
	memset(cause, 'b', sizeof(cause) - 1);
	cause[sizeof(cause) - 1] = '\0';
	assert_text(&c, SBX_REASON_HTTP_MALFORMED, 400, cause, "set passthrough: true (entry");
	assert_text(&c, SBX_REASON_HOST_MISMATCH, 421, cause, "network.allow (entry");
}

static void test_phrases(void **state)
{
	(void)state;
	assert_string_equal(sbx_refusal_phrase(400), "Bad Request");
	assert_string_equal(sbx_refusal_phrase(403), "Forbidden");
	assert_string_equal(sbx_refusal_phrase(413), "Content Too Large");
	assert_string_equal(sbx_refusal_phrase(502), "Bad Gateway");
	assert_string_equal(sbx_refusal_phrase(503), "Service Unavailable");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phrases),
		cmocka_unit_test(test_next_steps),
		cmocka_unit_test(test_next_step_of_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
