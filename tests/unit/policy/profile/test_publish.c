/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Published ports: valid ones, refused ones, and those that only this host reaches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "policy/profile/profile.h"
#include "policy/profile/publish.h"

static void good(const char *text, const char *outside, unsigned inside, bool loopback)
{
	char buf[SBX_PUBLISH_STR_MAX];
	struct sbx_publish p = { 0 };
	struct sbx_err err = { 0 };

	if (sbx_publish_parse(text, &p, &err) != 0)
		fail_msg("%s: %s", text, err.msg);
	assert_string_equal(sbx_publish_format(&p, buf, sizeof(buf)), outside);
	assert_int_equal(p.inside, inside);
	assert_int_equal(sbx_publish_is_loopback(&p), loopback);
}

static void bad(const char *text, const char *says)
{
	struct sbx_publish p = { .inside = 7 };
	struct sbx_err err = { 0 };

	if (sbx_publish_parse(text, &p, &err) != SBX_PROFILE_E_INVALID)
		fail_msg("%s was taken", text);
	assert_int_equal(p.inside, 7);
	if (!strstr(err.msg, says) || !strstr(err.msg, text))
		fail_msg("%s: %s", text, err.msg);
}

static void test_forms(void **state)
{
	(void)state;
	good("8888", "127.0.0.1:8888", 8888, true);
	good("8080:80", "127.0.0.1:8080", 80, true);
	good("0:80", "127.0.0.1:0", 80, true);
	good("1:65535", "127.0.0.1:1", 65535, true);
	good("127.0.0.2:8888", "127.0.0.2:8888", 8888, true);
	good("127.255.0.1:8080:80", "127.255.0.1:8080", 80, true);
	good("[::1]:8888", "[::1]:8888", 8888, true);
	good("[::1]:0:80", "[::1]:0", 80, true);
	good("[0:0::0:1]:1:2", "[::1]:1", 2, true);
	good("localhost:8080", "127.0.0.1:8080", 8080, true);
	good("localhost:0:80", "127.0.0.1:0", 80, true);
}

/* Taken here; the planner asks the system policy about them. */
static void test_other_addresses(void **state)
{
	(void)state;
	good("0.0.0.0:80", "0.0.0.0:80", 80, false);
	good("[::]:80", "[::]:80", 80, false);
	good("192.0.2.1:8080:80", "192.0.2.1:8080", 80, false);
	good("[2001:db8::1]:0:80", "[2001:db8::1]:0", 80, false);
	good("128.0.0.1:80", "128.0.0.1:80", 80, false);
	/* An address that embeds a loopback address is not a loopback address: a listener would
	 * bind the outer one. */
	good("[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80", 80, false);
	good("[::127.0.0.1]:80", "[::127.0.0.1]:80", 80, false);
	good("[64:ff9b::7f00:1]:80", "[64:ff9b::7f00:1]:80", 80, false);
	good("[2002:7f00:1::1]:80", "[2002:7f00:1::1]:80", 80, false);
}

static void test_refused(void **state)
{
	static const char *const ports[] = {
		"",	     ":",	   "0",	  "127.0.0.1:0", "65536",	"065", "+1",
		"-1",	     " 1",	   "1 ",  "8e1",	 "99999999999", "x",   "1.5",
		"127.0.0.1", "127.0.0.1:", "a:1", "tcp:1",	 "80/tcp",	"1-2", "0x50"
	};
	static const char *const inside[] = {
		"80:",		 "80:0",       "80:65536",	  "80:x",
		"127.0.0.1:80:", "[::1]:80:0", "127.0.0.1:1:2:3", "[::1]:1:2:3",
		"1: 2"
	};
	static const char *const addrs[] = { "myhost:1:2", "localhost.:1:2", "1:2:3",
					     "::1:80",	   "[::1]",	     "[::1]80",
					     "[::1",	   "[]:80",	     "[127.0.0.1]:80",
					     "127.1:80",   "127.0.0.1.:80",  "0x7f.0.0.1:80",
					     ".:80",	   "[::1%lo]:80",    "[fe80::1%eth0]:80",
					     "*:80:80",	   "1:2:3:4",	     "[[::1]]:80",
					     ":::" };
	char longest[256];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(ports); i++)
		bad(ports[i], "a port is a number");
	for (size_t i = 0; i < SBX_N_ELEMENTS(inside); i++)
		bad(inside[i], "the sandbox's port is");
	for (size_t i = 0; i < SBX_N_ELEMENTS(addrs); i++)
		bad(addrs[i], "an address of this host");
	memset(longest, '1', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	bad(longest, "too long");
	for (size_t n = 1; n < sizeof(longest); n++) { /* every length, at the buffer's edge too */
		size_t left = sizeof(longest) - 1 - n;
		struct sbx_publish p;

		assert_int_equal(sbx_publish_parse(longest + n, &p, NULL) == 0,
				 left >= 1 && left <= 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_other_addresses),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("publish", tests, NULL, NULL);
}
