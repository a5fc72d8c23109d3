/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of variables, and those that a secret cannot have. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/forms/variable_form.h"

static void test_variable(void **state)
{
	static const char *const fine[] = { "_A1", "a", "A_9" };
	static const char *const bad[] = { "1A", "A-B", "A=B", "", "A B", "\xc3\xa4" };
	char name[257];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(fine); i++)
		assert_null(sbx_form_variable(fine[i]));
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_non_null(strstr(sbx_form_variable(bad[i]), "does not begin with a digit"));
	memset(name, 'A', sizeof(name));
	name[255] = '\0';
	assert_null(sbx_form_variable(name));
	name[255] = 'A';
	name[256] = '\0';
	assert_non_null(strstr(sbx_form_variable(name), "255"));
}

static void test_secret_name(void **state)
{
	static const char *const fine[] = { "TOKEN", "PATH2", "LD", "MY_PATH", "SBX", "HOMES",
					    "TLD_X" };
	static const char *const needed[] = { "PATH",	  "HOME",      "USER",	"SHELL",
					      "LD_PRELOAD", "LD_", "SBX_X", "SSL_CERT_FILE",
					      "SSL_CERT_DIR", "DENO_CERT" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(fine); i++)
		assert_null(sbx_form_secret_name(fine[i]));
	for (size_t i = 0; i < SBX_N_ELEMENTS(needed); i++) {
		const char *why = sbx_form_secret_name(needed[i]);

		if (!why || !strstr(why, "choose another name"))
			fail_msg("%s: %s", needed[i], why ? why : "fine");
	}
	assert_non_null(strstr(sbx_form_secret_name("1"), "digit"));
}

static void test_trust(void **state)
{
	(void)state;
	assert_true(sbx_is_trust_variable("SSL_CERT_DIR=x", 12));
	assert_true(sbx_is_trust_variable("PIP_CERT", 8));
	assert_false(sbx_is_trust_variable("PIP_CERT", 7));
	assert_false(sbx_is_trust_variable("PIP_CERTS", 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variable),
		cmocka_unit_test(test_secret_name),
		cmocka_unit_test(test_trust),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
