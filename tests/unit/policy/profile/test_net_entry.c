/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/keys/profile_parse.h"
#include "policy/profile/net_entry.h"

/* Parse, compare the canonical text, parse that again. */
static struct sbx_net_entry good_as(const char *pattern, const char *canonical, bool deny)
{
	struct sbx_net_entry e = { 0 }, again = { 0 };
	struct sbx_err err = { 0 };
	int r = sbx_net_entry_parse(pattern, SBX_PATTERN_ANY, deny, &e, &err);

	if (r != 0)
		fail_msg("%s: %s", pattern, err.msg);
	assert_string_equal(e.text, canonical);
	assert_int_equal(sbx_net_entry_parse(e.text, SBX_PATTERN_ANY, deny, &again, NULL), 0);
	assert_string_equal(again.text, canonical);
	assert_int_equal(again.n_ports, e.n_ports);
	assert_memory_equal(again.ports, e.ports, e.n_ports * sizeof(e.ports[0]));
	assert_int_equal(again.proto, e.proto);
	sbx_net_entry_fini(&again);
	return e;
}

static void good(const char *pattern, const char *canonical)
{
	struct sbx_net_entry e = good_as(pattern, canonical, false);

	sbx_net_entry_fini(&e);
}

static void bad_as(const char *pattern, const char *why, bool deny, enum sbx_pattern_form form)
{
	struct sbx_net_entry e = { 0 };
	struct sbx_err err = { 0 };

	if (sbx_net_entry_parse(pattern, form, deny, &e, &err) != SBX_PROFILE_E_INVALID)
		fail_msg("%s was taken", pattern);
	if (!strstr(err.msg, why))
		fail_msg("%s: '%s' does not say '%s'", pattern, err.msg, why);
	assert_null(e.text);
}

static void bad(const char *pattern, const char *why)
{
	bad_as(pattern, why, false, SBX_PATTERN_ANY);
}

static void test_names(void **state)
{
	struct sbx_net_entry e = good_as("*.Example.ORG.", "*.example.org", false);

	(void)state;
	assert_true(e.wildcard);
	assert_false(e.is_cidr);
	assert_string_equal(e.host, "example.org");
	assert_int_equal(e.n_ports, 0);
	assert_false(e.proto_set);
	sbx_net_entry_fini(&e);
	good("pypi.org", "pypi.org");
	good("PyPI.org.", "pypi.org");
	good("_dmarc.example.org", "_dmarc.example.org");
	good("intranet", "intranet");
	good("b\303\274cher.example",
	     "xn--bcher-kva.example");
	good("fa\xc3\x9f.example", "xn--fa-hia.example");
	good("\342\221\240a.example",
	     "1a.example");
	good("example\xe3\x80\x82org", "example.org");
	good("*.m\xc3\xbcnchen.example", "*.xn--mnchen-3ya.example");
	bad("", "no name");
	bad(".", "empty");
	bad("a..b", "label");
	bad("-a.example", "label");
	bad("exa mple.org", "not a letter");
	bad("a.*.example.org", "asterisk");
	bad("a*.example.org", "asterisk");
	bad("**.example.org", "asterisk");
	bad("*", "every name");
	bad("*.", "empty");
	bad("https://example.org", "URL");
	bad("https://example.org/path", "URL");
	bad("example.org/path", "tcp or udp");
	bad("example.org/", "tcp or udp");
	bad("user@example.org", "not a letter");
	bad("\xe2\x98\x83\xef\xbf\xbf.example", "internationalised");
	/* Digits of other scripts become an address, which is refused as a name. */
	bad("\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", "address");
}

static void test_lengths(void **state)
{
	char name[300], pattern[SBX_PATTERN_MAX + 2];

	(void)state;
	/* 63 + 1 + 63 + 1 + 63 + 1 + 61 = 253 */
	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	name[253] = '\0';
	good(name, name);
	name[253] = 'a';
	name[254] = '\0';
	bad(name, "253");
	memset(name, 'a', 64);
	strcpy(name + 64, ".example");
	bad(name, "63");
	memset(pattern, 'a', sizeof(pattern));
	pattern[SBX_PATTERN_MAX + 1] = '\0';
	bad(pattern, "longer than 1024");
}

static void test_addresses_as_names(void **state)
{
	(void)state;
	bad("127.1", "address");
	bad("0x7f.1", "address");
	bad("2130706433", "address");
	bad("0177.0.0.1", "address");
	bad("1.2.3.4.5", "address");
	bad("*.0.0.1", "address");
	bad_as("192.0.2.1", "cidr", false, SBX_PATTERN_HOST);
	bad_as("2001:db8::1", "cidr", false, SBX_PATTERN_HOST);
	bad_as("example.org", "not an IPv4", false, SBX_PATTERN_CIDR);
}

static void test_cidrs(void **state)
{
	struct sbx_net_entry e = good_as("[2001:DB8::/32]:443", "[2001:db8::/32]:443", false);

	(void)state;
	assert_true(e.is_cidr);
	assert_null(e.host);
	assert_int_equal(e.cidr.prefix, 32);
	assert_int_equal(e.cidr.addr.family, 6);
	sbx_net_entry_fini(&e);
	good("10.1.2.0/24:5432", "10.1.2.0/24:5432");
	good("2001:db8::/32", "2001:db8::/32");
	good("[2001:db8::1]", "2001:db8::1");
	good("[2001:db8::1]:53/udp", "[2001:db8::1]:53/udp");
	good("2001:db8::1/128", "2001:db8::1");
	good("192.0.2.1", "192.0.2.1");
	good("192.0.2.1/32:25", "192.0.2.1:25");
	good("0.0.0.0/0", "0.0.0.0/0");
	good("::/0", "::/0");
	bad("10.1.2.3/24", "did you mean '10.1.2.0/24'?");
	bad("2001:db8::1/32", "did you mean '2001:db8::/32'?");
	bad("10.0.0.0/33", "prefix length");
	bad("10.0.0.0/", "tcp or udp");
	bad("10.0.0.0/-1", "tcp or udp");
	bad("2001:db8::/129", "prefix length");
	bad("10.0.0/8", "not an address");
	bad("010.0.0.0/8", "not an address");
	bad("[2001:db8::1", "brackets");
	bad("[2001:db8::1]443", "brackets");
	bad("[2001:db8::]/32", "brackets");
	bad("[example.org]:443", "not an IPv4");
	bad("2001:db8::/32:443", "prefix length");
	bad("::ffff:192.0.2.1", "as IPv4");
	bad("fe80::1%eth0", "not an IPv4");
	bad("127.0.0.0/8", "loopback addresses are never reached");
	bad("::1", "loopback");
	bad("169.254.169.254", "metadata");
	bad("224.0.0.0/4", "multicast");
	bad("0.0.0.0", "never reached");
	bad("198.18.0.0/15", "own names");
	bad("198.18.7.0/24", "own names");
	bad("fd00:5b:1::/64", "own names");
}

static void test_ports(void **state)
{
	struct sbx_net_entry e =
		good_as("example.org:443,8443,1000-2000", "example.org:443,8443,1000-2000", false);

	(void)state;
	assert_int_equal(e.n_ports, 3);
	assert_int_equal(e.ports[0].first, 443);
	assert_int_equal(e.ports[0].last, 443);
	assert_int_equal(e.ports[2].first, 1000);
	assert_int_equal(e.ports[2].last, 2000);
	sbx_net_entry_fini(&e);
	good("example.org:*", "example.org:1-65535");
	good("example.org:1", "example.org:1");
	good("example.org:65535/udp", "example.org:65535/udp");
	good("example.org/tcp", "example.org/tcp");
	good("example.org:7-7", "example.org:7");
	good("a.example:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
	     "a.example:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16");
	bad("a.example:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "at most 16");
	bad("example.org:0", "65535");
	bad("example.org:65536", "65535");
	bad("example.org:", "port is");
	bad("example.org:443,", "port is");
	bad("example.org:,443", "port is");
	bad("example.org:-443", "port is");
	bad("example.org:443-", "port is");
	bad("example.org:2000-1000", "the first port of the range is above its last");
	bad("example.org:https", "port is");
	bad("example.org:443:80", "not an IPv4");
	bad("example.org:443/sctp", "tcp or udp");
	bad(":443", "no name");
}

/* Each refused base beside one that differs by a word and is fine. */
static void test_wildcards(void **state)
{
	struct sbx_net_entry e;

	(void)state;
	bad("*.com", "public suffix");
	good("*.example.com", "*.example.com");
	bad("*.co.uk", "public suffix");
	good("*.bbc.co.uk", "*.bbc.co.uk");
	bad("*.github.io", "public suffix");
	good("*.me.github.io", "*.me.github.io");
	bad("*.githubusercontent.com", "public suffix");
	good("raw.githubusercontent.com", "raw.githubusercontent.com");
	/* The list's own wildcards and their exceptions. */
	bad("*.kawasaki.jp", "public suffix");
	bad("*.any.kawasaki.jp", "public suffix");
	good("*.city.kawasaki.jp", "*.city.kawasaki.jp");
	bad("*.compute.amazonaws.com", "public suffix");
	/* IDN suffixes, in either form. */
	bad("*.\xd1\x80\xd1\x84", "public suffix");
	bad("*.xn--p1ai", "public suffix");
	/* Top-level names that are not listed may be sold tomorrow; reserved ones never. */
	bad("*.nosuchtld", "public suffix");
	good("*.internal", "*.internal");
	good("*.home.arpa", "*.home.arpa");
	bad("*.in-addr.arpa", "public suffix");
	good("*.test", "*.test");
	/* A deny entry may cover a public suffix, and loopback. */
	e = good_as("*.com", "*.com", true);
	sbx_net_entry_fini(&e);
	e = good_as("127.0.0.0/8", "127.0.0.0/8", true);
	sbx_net_entry_fini(&e);
	bad_as("*", "default: deny", true, SBX_PATTERN_ANY);
}

static void test_list(void **state)
{
	struct sbx_net_list list = { 0 };
	struct sbx_err err = { 0 };
	char pattern[64];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(pattern, sizeof(pattern), "h%d.example.org:%d", i, i + 1);
		assert_int_equal(sbx_net_list_add_pattern(&list, pattern, "--allow", &err), 0);
	}
	assert_int_equal(list.n, 1000);
	assert_string_equal(list.v[999].text, "h999.example.org:1000");
	assert_int_equal(sbx_net_list_add_pattern(&list, "*.org", "--allow", &err),
			 SBX_PROFILE_E_INVALID);
	assert_int_equal(strncmp(err.msg, "--allow '*.org': ", 17), 0);
	assert_int_equal(list.n, 1000);
	sbx_net_list_fini(&list);
	assert_int_equal(list.n, 0);
	/* The list knows what it is for. */
	list.deny = true;
	assert_int_equal(sbx_net_list_add_pattern(&list, "*.org", "--deny", NULL), 0);
	sbx_net_list_fini(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_cidrs), cmocka_unit_test(test_addresses_as_names),
		cmocka_unit_test(test_ports), cmocka_unit_test(test_wildcards),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
