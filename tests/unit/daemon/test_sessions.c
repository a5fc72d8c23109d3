/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/access/sessions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/secret_text.h"

static const struct sbx_principal one = {
	.role = SBX_ROLE_OPERATOR, .name = "uid 7", .own_only = true, .uid = 7, .is_own = true
};

static int setup(void **state)
{
	return sbx_sessions_new((struct sbx_sessions **)state);
}

static int teardown(void **state)
{
	sbx_sessions_free(*state);
	return 0;
}

static void begin(struct sbx_sessions *s, uint64_t now, char *cookie)
{
	char code[SBX_SESSION_SECRET_MAX];

	assert_int_equal(sbx_session_link(s, &one, now, code), 0);
	assert_int_equal(sbx_session_begin(s, code, 7, now, cookie), 0);
}

static void test_link_is_used_once(void **state)
{
	char code[SBX_SESSION_SECRET_MAX], cookie[SBX_SESSION_SECRET_MAX];
	struct sbx_principal p;

	assert_int_equal(sbx_session_link(*state, &one, 5, code), 0);
	assert_int_equal(strlen(code), 64);
	assert_int_equal(sbx_session_find(*state, code, 7, 5, &p), SBX_SESSION_E_UNKNOWN);
	assert_int_equal(sbx_session_begin(*state, code, 7, 5, cookie), 0);
	assert_string_not_equal(code, cookie);
	assert_int_equal(sbx_session_begin(*state, code, 7, 5, cookie), SBX_SESSION_E_UNKNOWN);
}

/* A server at another port gets the cookie. */
static void test_session_is_its_browsers(void **state)
{
	char code[SBX_SESSION_SECRET_MAX], cookie[SBX_SESSION_SECRET_MAX];
	struct sbx_principal p;

	begin(*state, 5, cookie);
	assert_int_equal(sbx_session_find(*state, cookie, 8, 5, &p), SBX_SESSION_E_OTHER);
	assert_int_equal(sbx_session_find(*state, cookie, SBX_UID_UNKNOWN, 5, &p),
			 SBX_SESSION_E_OTHER);
	assert_int_equal(sbx_session_find(*state, cookie, 7, 5, &p), 0);
	assert_int_equal(sbx_session_link(*state, &one, 5, code), 0);
	assert_int_equal(sbx_session_begin(*state, code, SBX_UID_UNKNOWN, 5, cookie), 0);
	assert_int_equal(sbx_session_find(*state, cookie, 8, 5, &p), 0);
}

static void test_link_holds_a_minute(void **state)
{
	char code[SBX_SESSION_SECRET_MAX], cookie[SBX_SESSION_SECRET_MAX];

	assert_int_equal(sbx_session_link(*state, &one, 1000, code), 0);
	assert_int_equal(sbx_session_begin(*state, code, 7, 1000 + SBX_LINK_S * 1000, cookie),
			 SBX_SESSION_E_UNKNOWN);
	assert_int_equal(sbx_session_begin(*state, code, 7, 999 + SBX_LINK_S * 1000, cookie), 0);
}

static void test_session_has_the_principal(void **state)
{
	char cookie[SBX_SESSION_SECRET_MAX], hash[SBX_SECRET_HASH_MAX];
	struct sbx_principal p;

	begin(*state, 0, cookie);
	assert_int_equal(sbx_session_find(*state, cookie, 7, 1, &p), 0);
	assert_string_equal(p.name, "uid 7");
	assert_true(p.by_cookie && p.own_only && !p.is_own);
	assert_int_equal(p.uid, 7);
	sbx_secret_hash(cookie, hash);
	assert_string_equal(p.session, hash);
	assert_int_equal(sbx_session_find(*state, hash, 7, 1, &p), SBX_SESSION_E_UNKNOWN);
	assert_true(sbx_session_holds(*state, hash, SBX_SESSION_S * UINT64_C(1000) - 1));
	assert_false(sbx_session_holds(*state, hash, SBX_SESSION_S * UINT64_C(1000)));
	sbx_session_end(*state, hash);
	assert_int_equal(sbx_session_find(*state, cookie, 7, 1, &p), SBX_SESSION_E_UNKNOWN);
}

static void test_the_idle_longest_goes(void **state)
{
	static char cookies[SBX_SESSIONS_MAX + 1][SBX_SESSION_SECRET_MAX];
	struct sbx_principal p;

	for (int i = 0; i < SBX_SESSIONS_MAX; i++)
		begin(*state, (uint64_t)i, cookies[i]);
	assert_int_equal(sbx_session_find(*state, cookies[0], 7, 1000, &p), 0);
	begin(*state, 1001, cookies[SBX_SESSIONS_MAX]);
	assert_int_equal(sbx_session_find(*state, cookies[0], 7, 1002, &p), 0);
	assert_int_equal(sbx_session_find(*state, cookies[1], 7, 1002, &p), SBX_SESSION_E_UNKNOWN);
	for (int i = 2; i <= SBX_SESSIONS_MAX; i++)
		assert_int_equal(sbx_session_find(*state, cookies[i], 7, 1002, &p), 0);
}

static void test_links_are_bounded(void **state)
{
	char first[SBX_SESSION_SECRET_MAX], code[SBX_SESSION_SECRET_MAX];

	assert_int_equal(sbx_session_link(*state, &one, 0, first), 0);
	for (int i = 0; i < SBX_LINKS_MAX; i++)
		assert_int_equal(sbx_session_link(*state, &one, 1, code), 0);
	assert_int_equal(sbx_session_begin(*state, first, 7, 2, first), SBX_SESSION_E_UNKNOWN);
	assert_int_equal(sbx_session_begin(*state, code, 7, 2, code), 0);
}

static void test_others_keep_their_places(void **state)
{
	static const struct sbx_principal other = { .role = SBX_ROLE_ADMIN, .name = "uid 0" };
	char link[SBX_SESSION_SECRET_MAX], code[SBX_SESSION_SECRET_MAX];
	char cookie[SBX_SESSION_SECRET_MAX];
	struct sbx_principal p;

	assert_int_equal(sbx_session_link(*state, &other, 0, link), 0);
	assert_int_equal(sbx_session_begin(*state, link, 7, 0, cookie), 0);
	for (int i = 0; i < SBX_SESSIONS_MAX + 1; i++)
		begin(*state, 1, code);
	assert_int_equal(sbx_session_find(*state, cookie, 7, 2, &p), 0);
	assert_int_equal(sbx_session_link(*state, &other, 2, link), 0);
	for (int i = 0; i < SBX_LINKS_MAX + 1; i++)
		assert_int_equal(sbx_session_link(*state, &one, 3, code), 0);
	assert_int_equal(sbx_session_begin(*state, link, 7, 4, link), 0);
}

static void test_token_text(void **state)
{
	char a[SBX_API_TOKEN_MAX], b[SBX_API_TOKEN_MAX], hash[SBX_SECRET_HASH_MAX];

	(void)state;
	assert_int_equal(sbx_api_token_make(a), 0);
	assert_int_equal(sbx_api_token_make(b), 0);
	assert_string_not_equal(a, b);
	assert_true(sbx_api_token_is_valid(a));
	a[4] = 'G';
	assert_false(sbx_api_token_is_valid(a));
	b[SBX_API_TOKEN_MAX - 2] = '\0';
	assert_false(sbx_api_token_is_valid(b) || sbx_api_token_is_valid(""));
	sbx_secret_hash("abc", hash); /* FIPS 180-2, B.1 */
	assert_string_equal(hash,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_link_is_used_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_session_is_its_browsers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_link_holds_a_minute, setup, teardown),
		cmocka_unit_test_setup_teardown(test_session_has_the_principal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_idle_longest_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others_keep_their_places, setup, teardown),
		cmocka_unit_test(test_token_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
