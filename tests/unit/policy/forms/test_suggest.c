/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/forms/suggest.h"

static const char *nearest(const char *wrong)
{
	static const char *const words[] = { "allow",	"deny", "mode",
					     "default", "dns",	"upstream_proxy" };
	struct sbx_suggest s = sbx_suggest(wrong);

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		sbx_suggest_offer(&s, words[i]);
	return s.best ? s.best : "";
}

static void test_nearest(void **state)
{
	(void)state;
	assert_string_equal(nearest("alow"), "allow");
	assert_string_equal(nearest("lalow"), "allow");
	assert_string_equal(nearest("dney"), "deny");
	assert_string_equal(nearest("defualt"), "default");
	assert_string_equal(nearest("upstream-proxy"), "upstream_proxy");
	assert_string_equal(nearest("dsn"), "dns");
	assert_string_equal(nearest("filesystem"), "");
	assert_string_equal(nearest(""), "");
	assert_string_equal(nearest("a_word_that_is_longer_than_thirty_two_bytes"), "");
}

static void test_text(void **state)
{
	struct sbx_suggest s = sbx_suggest("alow");
	char buf[64];

	(void)state;
	assert_string_equal(sbx_suggest_text(&s, buf, sizeof(buf)), "");
	sbx_suggest_offer(&s, "allow");
	assert_string_equal(sbx_suggest_text(&s, buf, sizeof(buf)), " (did you mean 'allow'?)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
