/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "tests/unit/embeddings.h"

static struct sbx_addr addr(const char *s)
{
	struct sbx_addr a;

	if (sbx_addr_parse(s, &a))
		fail_msg("'%s' does not parse", s);
	return a;
}

static const struct {
	const char *text;
	enum sbx_addr_class class;
} classes[] = {
	/* IPv4: the ends of each range, and its neighbours */
	{ "0.0.0.0", SBX_ADDR_UNSPECIFIED },
	{ "0.255.255.255", SBX_ADDR_UNSPECIFIED },
	{ "1.0.0.0", SBX_ADDR_PUBLIC },
	{ "9.255.255.255", SBX_ADDR_PUBLIC },
	{ "10.0.0.0", SBX_ADDR_PRIVATE },
	{ "10.255.255.255", SBX_ADDR_PRIVATE },
	{ "11.0.0.0", SBX_ADDR_PUBLIC },
	{ "100.63.255.255", SBX_ADDR_PUBLIC },
	{ "100.64.0.1", SBX_ADDR_PRIVATE },
	{ "100.127.255.255", SBX_ADDR_PRIVATE },
	{ "100.128.0.0", SBX_ADDR_PUBLIC },
	{ "126.255.255.255", SBX_ADDR_PUBLIC },
	{ "127.0.0.1", SBX_ADDR_LOOPBACK },
	{ "127.255.255.255", SBX_ADDR_LOOPBACK },
	{ "128.0.0.0", SBX_ADDR_PUBLIC },
	{ "169.253.255.255", SBX_ADDR_PUBLIC },
	{ "169.254.0.0", SBX_ADDR_LINK_LOCAL },
	{ "169.254.255.255", SBX_ADDR_LINK_LOCAL },
	{ "169.255.0.0", SBX_ADDR_PUBLIC },
	{ "172.15.255.255", SBX_ADDR_PUBLIC },
	{ "172.16.0.0", SBX_ADDR_PRIVATE },
	{ "172.31.255.255", SBX_ADDR_PRIVATE },
	{ "172.32.0.0", SBX_ADDR_PUBLIC },
	{ "192.0.0.8", SBX_ADDR_PRIVATE },
	{ "192.0.2.1", SBX_ADDR_PUBLIC },
	{ "192.88.99.1", SBX_ADDR_UNSPECIFIED },
	{ "192.167.255.255", SBX_ADDR_PUBLIC },
	{ "192.168.0.0", SBX_ADDR_PRIVATE },
	{ "192.168.255.255", SBX_ADDR_PRIVATE },
	{ "192.169.0.0", SBX_ADDR_PUBLIC },
	{ "198.17.255.255", SBX_ADDR_PUBLIC },
	{ "198.18.0.0", SBX_ADDR_PRIVATE },
	{ "198.19.255.255", SBX_ADDR_PRIVATE },
	{ "198.20.0.0", SBX_ADDR_PUBLIC },
	{ "198.51.100.7", SBX_ADDR_PUBLIC },
	{ "203.0.113.9", SBX_ADDR_PUBLIC },
	{ "223.255.255.255", SBX_ADDR_PUBLIC },
	{ "224.0.0.1", SBX_ADDR_MULTICAST },
	{ "239.255.255.255", SBX_ADDR_MULTICAST },
	{ "240.0.0.0", SBX_ADDR_UNSPECIFIED },
	{ "255.255.255.254", SBX_ADDR_UNSPECIFIED },
	{ "255.255.255.255", SBX_ADDR_BROADCAST },
	{ "169.254.169.254", SBX_ADDR_METADATA },
	{ "169.254.170.2", SBX_ADDR_METADATA },
	{ "169.254.170.23", SBX_ADDR_METADATA },
	{ "100.100.100.200", SBX_ADDR_METADATA },
	{ "168.63.129.16", SBX_ADDR_METADATA },
	{ "168.63.129.17", SBX_ADDR_PUBLIC },
	{ "192.0.0.192", SBX_ADDR_METADATA },
	/* IPv6 */
	{ "::", SBX_ADDR_UNSPECIFIED },
	{ "::1", SBX_ADDR_LOOPBACK },
	{ "::2", SBX_ADDR_UNSPECIFIED },
	{ "2606:4700::1111", SBX_ADDR_PUBLIC },
	{ "2001:db8::1", SBX_ADDR_PUBLIC },
	{ "3fff::1", SBX_ADDR_PUBLIC },
	{ "4000::1", SBX_ADDR_UNSPECIFIED },
	{ "1fff:ffff::1", SBX_ADDR_UNSPECIFIED },
	{ "100::1", SBX_ADDR_UNSPECIFIED },
	{ "fbff::1", SBX_ADDR_UNSPECIFIED },
	{ "fc00::1", SBX_ADDR_PRIVATE },
	{ "fdff:ffff::1", SBX_ADDR_PRIVATE },
	{ "fd00:5b::1", SBX_ADDR_PRIVATE },
	{ "fd00:5b:1::7", SBX_ADDR_PRIVATE },
	{ "fe00::1", SBX_ADDR_UNSPECIFIED },
	{ "fe80::1", SBX_ADDR_LINK_LOCAL },
	{ "febf:ffff::1", SBX_ADDR_LINK_LOCAL },
	{ "fec0::1", SBX_ADDR_LINK_LOCAL },
	{ "ff00::", SBX_ADDR_MULTICAST },
	{ "ff02::1", SBX_ADDR_MULTICAST },
	{ "fd00:ec2::254", SBX_ADDR_METADATA },
	{ "fd00:ec2::255", SBX_ADDR_PRIVATE },
	{ "fd20:ce::254", SBX_ADDR_METADATA },
	{ "2001:2::1", SBX_ADDR_UNSPECIFIED },
	{ "2001:1ff:ffff::1", SBX_ADDR_UNSPECIFIED },
	{ "2001:200::1", SBX_ADDR_PUBLIC },
	/* embedded: ::ffff:0:0/96 */
	{ "::ffff:8.8.8.8", SBX_ADDR_PUBLIC },
	{ "::ffff:127.0.0.1", SBX_ADDR_LOOPBACK },
	{ "::ffff:169.254.169.254", SBX_ADDR_METADATA },
	{ "::ffff:0.0.0.0", SBX_ADDR_UNSPECIFIED },
	/* ::/96 is nobody's */
	{ "::8.8.8.8", SBX_ADDR_UNSPECIFIED },
	{ "::127.0.0.1", SBX_ADDR_LOOPBACK },
	{ "::10.0.0.1", SBX_ADDR_UNSPECIFIED },
	{ "::169.254.169.254", SBX_ADDR_METADATA },
	/* SIIT's ::ffff:0:0:0/96 */
	{ "::ffff:0:8.8.8.8", SBX_ADDR_UNSPECIFIED },
	/* NAT64 */
	{ "64:ff9b::8.8.8.8", SBX_ADDR_PUBLIC },
	{ "64:ff9b::10.0.0.1", SBX_ADDR_PRIVATE },
	{ "64:ff9b::127.0.0.1", SBX_ADDR_LOOPBACK },
	{ "64:ff9b::169.254.169.254", SBX_ADDR_METADATA },
	{ "64:ff9b:0:1::8.8.8.8", SBX_ADDR_UNSPECIFIED },
	/* NAT64 of the network's own: the same address in each of RFC 6052's places */
	{ "64:ff9b:1::8.8.8.8", SBX_ADDR_PUBLIC },
	{ "64:ff9b:1:808:8:800::", SBX_ADDR_PUBLIC },
	{ "64:ff9b:1::a9fe:a9fe", SBX_ADDR_METADATA },
	{ "64:ff9b:1:a9fe:a9:fe00::", SBX_ADDR_METADATA },
	{ "64:ff9b:1:a9:fe:a9fe::", SBX_ADDR_METADATA },
	{ "64:ff9b:1::a9:fea9:fe00:0", SBX_ADDR_METADATA },
	{ "64:ff9b:1:a9fe:a9:fe00:808:808", SBX_ADDR_METADATA },
	{ "64:ff9b:1::10.0.0.1", SBX_ADDR_PRIVATE },
	{ "64:ff9b:1::", SBX_ADDR_UNSPECIFIED },
	{ "64:ff9b:2::8.8.8.8", SBX_ADDR_UNSPECIFIED },
	/* 6to4 */
	{ "2002:808:808::1", SBX_ADDR_PUBLIC },
	{ "2002:7f00:1::1", SBX_ADDR_LOOPBACK },
	{ "2002:a00:1::1", SBX_ADDR_PRIVATE },
	{ "2002:a9fe:a9fe::", SBX_ADDR_METADATA },
	/* Teredo: server in the open, client inverted */
	{ "2001:0:808:808::f7f7:f7f7", SBX_ADDR_PUBLIC },
	{ "2001:0:a00:1::f7f7:f7f7", SBX_ADDR_PRIVATE },
	{ "2001:0:808:808::f5ff:fffe", SBX_ADDR_PRIVATE },
	{ "2001:0:808:808::80ff:fffe", SBX_ADDR_LOOPBACK },
	{ "2001:0:808:808::5601:5601", SBX_ADDR_METADATA },
	{ "2001:0:a9fe:a9fe::f7f7:f7f7", SBX_ADDR_METADATA },
	{ "2001:0:a00:1::80ff:fffe", SBX_ADDR_LOOPBACK },
};

static void test_classes(void **state)
{
	struct sbx_addr none = { 0 }, odd = { .family = 5, .b = { 8, 8, 8, 8 } };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(classes); i++) {
		struct sbx_addr a = addr(classes[i].text);

		if (sbx_addr_class(&a) != classes[i].class)
			fail_msg("%s is %s, not %s", classes[i].text,
				 sbx_addr_class_str(sbx_addr_class(&a)),
				 sbx_addr_class_str(classes[i].class));
	}
	assert_int_equal(sbx_addr_class(&none), SBX_ADDR_UNSPECIFIED);
	assert_int_equal(sbx_addr_class(&odd), SBX_ADDR_UNSPECIFIED);
	assert_string_equal(sbx_addr_class_str((enum sbx_addr_class)SBX_ADDR_N_CLASSES), "unknown");
}

/* The first range that holds an address says what it is, but for what it embeds. */
static void test_ranges(void **state)
{
	struct sbx_addr_range r = { 0 };
	size_t n = 0;

	(void)state;
	for (; sbx_addr_range_at(n, &r); n++) {
		assert_true(r.cidr.addr.family == 4 || r.cidr.addr.family == 6);
		assert_true(sbx_cidr_contains(&r.cidr, &r.cidr.addr));
	}
	assert_int_equal(r.cidr.addr.family, 6);
	assert_int_equal(r.cidr.prefix, 0); /* every IPv6 address is in one */
	assert_false(sbx_addr_range_at(n + 1, &r));
	assert_false(sbx_addr_range_at(SIZE_MAX, &r));
	for (size_t i = 0; i < SBX_N_ELEMENTS(classes); i++) {
		struct sbx_addr a = addr(classes[i].text);
		size_t k = 0;

		while (k < n && !(sbx_addr_range_at(k, &r) && sbx_cidr_contains(&r.cidr, &a)))
			k++;
		if (k == n)
			assert_int_equal(classes[i].class, SBX_ADDR_PUBLIC);
		else if (r.embeds == SBX_ADDR_EMBEDS_NONE)
			assert_int_equal(classes[i].class, r.class);
	}
}

/* An address that is refused as IPv4 is refused in every wrapping; RFC 6052's /96 place for
 * NAT64. */
static void test_wrapping_never_helps(void **state)
{
	static const char *const before[] = { "::ffff:", "::", "64:ff9b::", "64:ff9b:1::" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(classes); i++) {
		if (classes[i].class == SBX_ADDR_PUBLIC || strchr(classes[i].text, ':'))
			continue;
		for (size_t j = 0; j < SBX_N_ELEMENTS(before); j++) {
			char text[64];
			struct sbx_addr a;

			snprintf(text, sizeof(text), "%s%s", before[j], classes[i].text);
			a = addr(text);
			assert_int_not_equal(sbx_addr_class(&a), SBX_ADDR_PUBLIC);
			if (classes[i].class == SBX_ADDR_METADATA)
				assert_int_equal(sbx_addr_class(&a), SBX_ADDR_METADATA);
		}
	}
}

static bool has_embedded(const struct sbx_addr *a, const char *text, size_t *ret_n)
{
	struct sbx_addr v4[SBX_ADDR_EMBEDDED_MAX], want = addr(text);
	bool found = false;

	*ret_n = sbx_addr_embedded(a, v4);
	for (size_t i = 0; i < *ret_n; i++) {
		assert_int_equal(v4[i].family, 4);
		found |= sbx_addr_equal(&v4[i], &want);
	}
	return found;
}

static void test_embedded(void **state)
{
	static const char *const none[] = { "192.0.2.7",
					    "::1",
					    "::",
					    "2606:4700::c000:207",
					    "64:ff9b:2::192.0.2.7",
					    "64:ff9b:0:1::192.0.2.7",
					    "64:ff9b:1::",
					    "2003:c000:207::",
					    "2001:1:c000:207::",
					    "fd00:ec2::254" };
	static const char *const v4[] = { "192.0.2.7", "10.0.0.1", "255.255.255.255", "1.0.0.9" };
	size_t n;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(embeddings); i++)
		for (size_t k = 0; k < SBX_N_ELEMENTS(v4); k++) {
			struct sbx_addr a = embed(&embeddings[i], v4[k]);

			if (!has_embedded(&a, v4[k], &n))
				fail_msg("%s: %s", embeddings[i].name, v4[k]);
			a.b[embeddings[i].at[3]] ^= 1;
			assert_false(has_embedded(&a, v4[k], &n));
		}
	for (size_t i = 0; i < SBX_N_ELEMENTS(none); i++) {
		struct sbx_addr a = addr(none[i]);

		has_embedded(&a, "192.0.2.7", &n);
		assert_int_equal(n, 0);
	}
	has_embedded(&(struct sbx_addr){ 0 }, "192.0.2.7", &n);
	assert_int_equal(n, 0);
	has_embedded(&(struct sbx_addr){ .family = 5 }, "192.0.2.7", &n);
	assert_int_equal(n, 0);
}

static void test_parse_refuses(void **state)
{
	static const char *const bad[] = {
		"",
		" 1.2.3.4",
		"1.2.3.4 ",
		"1.2.3",
		"127.1",
		"0x7f.0.0.1",
		"010.0.0.1",
		"1.2.3.256",
		"1.2.3.4.5",
		"::g",
		":::",
		"1::2::3",
		"fe80::1%eth0",
		"[::1]",
		"2001:db8::1/64",
		"1:2:3:4:5:6:7",
		"1:2:3:4:5:6:7:8:9",
		"example.org",
		"-1.2.3.4",
		"12345::",
	};
	struct sbx_addr a = { .family = 9 };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_int_equal(sbx_addr_parse(bad[i], &a), -EINVAL);
	assert_int_equal(a.family, 9); /* written only on success */
}

/* RFC 5952: the text of a parsed address is the canonical one, and parses to the same. */
static void test_format(void **state)
{
	static const char *const pairs[][2] = {
		{ "192.0.2.1", "192.0.2.1" },
		{ "2001:DB8:0:0:0:0:0:1", "2001:db8::1" },
		{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
		{ "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },
		{ "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
		{ "::ffff:c000:201", "::ffff:192.0.2.1" },
		{ "0:0:0:0:0:0:0:0", "::" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	};
	struct sbx_addr none = { 0 };
	char buf[SBX_ADDR_STR_MAX], small[4];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(pairs); i++) {
		struct sbx_addr a = addr(pairs[i][0]), b;

		assert_string_equal(sbx_addr_format(&a, buf, sizeof(buf)), pairs[i][1]);
		b = addr(buf);
		assert_true(sbx_addr_equal(&a, &b));
		assert_string_equal(sbx_addr_format(&a, small, 2), "");
	}
	assert_string_equal(sbx_addr_format(&none, buf, sizeof(buf)), "");
	buf[0] = 'x';
	assert_ptr_equal(sbx_addr_format(&none, buf, 0), buf);
	assert_int_equal(buf[0], 'x');
}

static void test_cidr_parse(void **state)
{
	static const char *const bad[] = {
		"10.0.0.0/",
		"10.0.0.0/33",
		"10.0.0.0/-1",
		"10.0.0.0/+8",
		"10.0.0.0/08",
		"10.0.0.0/8 ",
		"10.0.0.1/8",
		"10.0.0.0/0",
		"2001:db8::/129",
		"2001:db8::1/64",
		"/8",
		"10/8",
		"",
		"10.0.0.0/8/8",
		"0.0.0.0/1:", /* 20, if that were a digit, and 9 */
		"0.0.0.0/1/",
		"10.0.0.0/4294967304", /* 8, in 32 bits */
		"10.0.0.0/18446744073709551624",
		"10.0.0.0/99999999999999999999",
		"2001:db8::1:2:3:4:5:6:7:8:9:a:b:c:d:e:f:0:1/64",
	};
	char text[4096];
	struct sbx_cidr c;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++) {
		if (sbx_cidr_parse(bad[i], &c) != -EINVAL)
			fail_msg("'%s' was accepted", bad[i]);
	}
	/* Every length about that of the buffer, and far past it. */
	memset(text, '1', sizeof(text));
	for (size_t n = SBX_ADDR_STR_MAX - 3; n < sizeof(text) - 3; n += n < 64 ? 1 : 997) {
		memcpy(text + n, "/8", 3);
		assert_int_equal(sbx_cidr_parse(text, &c), -EINVAL);
		text[n] = '\0';
		assert_int_equal(sbx_cidr_parse(text, &c), -EINVAL);
		memset(text + n, '1', 3);
	}
	assert_int_equal(sbx_cidr_parse("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128", &c),
			 0);
	assert_int_equal(sbx_cidr_parse("0.0.0.0/0", &c), 0);
	assert_int_equal(c.prefix, 0);
	assert_int_equal(sbx_cidr_parse("::/0", &c), 0);
	assert_int_equal(sbx_cidr_parse("192.0.2.7", &c), 0);
	assert_int_equal(c.prefix, 32);
	assert_int_equal(sbx_cidr_parse("2001:db8::/33", &c), 0);
	assert_int_equal(c.prefix, 33);
	assert_int_equal(sbx_cidr_parse("2001:db8:8000::/33", &c), 0);
	assert_int_equal(sbx_cidr_parse("2001:db8:c000::/33", &c), -EINVAL);
}

static bool contains(const char *cidr, const char *text)
{
	struct sbx_addr a = addr(text);
	struct sbx_cidr c;

	assert_int_equal(sbx_cidr_parse(cidr, &c), 0);
	return sbx_cidr_contains(&c, &a);
}

static void test_cidr_contains(void **state)
{
	struct sbx_addr none = { 0 };
	struct sbx_cidr empty = { 0 };

	(void)state;
	assert_true(contains("10.0.0.0/8", "10.255.255.255"));
	assert_false(contains("10.0.0.0/8", "11.0.0.0"));
	assert_true(contains("172.16.0.0/12", "172.31.0.1"));
	assert_false(contains("172.16.0.0/12", "172.32.0.1"));
	assert_true(contains("0.0.0.0/0", "203.0.113.1"));
	assert_false(contains("0.0.0.0/0", "2001:db8::1"));
	assert_false(contains("::/0", "192.0.2.1"));
	assert_true(contains("::/0", "::ffff:192.0.2.1"));
	assert_false(contains("192.0.2.0/24", "::ffff:192.0.2.1"));
	assert_true(contains("2001:db8::/33", "2001:db8:7fff::1"));
	assert_false(contains("2001:db8::/33", "2001:db8:8000::1"));
	assert_true(contains("192.0.2.7", "192.0.2.7"));
	assert_false(contains("192.0.2.7", "192.0.2.6"));
	assert_false(sbx_cidr_contains(&empty, &none));
}

static void test_equal_and_unmap(void **state)
{
	struct sbx_addr a = addr("::ffff:192.0.2.1"), b = addr("192.0.2.1"),
			c = addr("2001:db8::1");
	struct sbx_addr u = sbx_addr_unmap(&a);

	(void)state;
	assert_false(sbx_addr_equal(&a, &b));
	assert_true(sbx_addr_equal(&u, &b));
	u = sbx_addr_unmap(&c);
	assert_true(sbx_addr_equal(&u, &c));
	u = sbx_addr_unmap(&b);
	assert_true(sbx_addr_equal(&u, &b));
	c = addr("c000:201::"); /* its first four bytes are 192.0.2.1's */
	assert_false(sbx_addr_equal(&b, &c));
	assert_false(sbx_addr_equal(&c, &b));
}

static void test_sockaddr(void **state)
{
	static const char *const texts[] = { "192.0.2.1", "2001:db8::1" };
	struct sbx_addr a, b, none = { 0 };
	struct sockaddr_storage ss;
	struct sockaddr *sa = (struct sockaddr *)&ss;
	socklen_t n;
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(texts); i++) {
		a = addr(texts[i]);
		memset(&ss, 0xff, sizeof(ss));
		n = sbx_addr_to_sockaddr(&a, 4711, &ss);
		for (size_t k = n; k < sizeof(ss); k++)
			assert_int_equal(((const uint8_t *)&ss)[k], 0);
		assert_int_equal(sbx_addr_from_sockaddr(sa, n, &b, &port), 0);
		assert_true(sbx_addr_equal(&a, &b));
		assert_int_equal(port, 4711);
		assert_int_equal(sbx_addr_from_sockaddr(sa, n - 1, &b, &port), -EAFNOSUPPORT);
		assert_int_equal(sbx_addr_from_sockaddr(sa, 0, &b, &port), -EAFNOSUPPORT);
	}
	a = addr("::ffff:192.0.2.1");
	n = sbx_addr_to_sockaddr(&a, 1, &ss);
	assert_int_equal(sbx_addr_from_sockaddr(sa, n, &b, &port), 0);
	assert_int_equal(b.family, 4);
	assert_int_equal(sbx_addr_to_sockaddr(&none, 1, &ss), 0);
	ss.ss_family = AF_UNIX;
	assert_int_equal(sbx_addr_from_sockaddr(sa, sizeof(ss), &b, &port), -EAFNOSUPPORT);
}

static void test_our_ranges(void **state)
{
	struct sbx_addr a = addr("198.19.255.255"), b = addr("fd00:5b:1:ffff::1"),
			c = addr("100.64.0.1"), d = addr("fd00:5b::1");

	(void)state;
	assert_true(sbx_cidr_contains(&sbx_synthetic4, &a));
	assert_true(sbx_cidr_contains(&sbx_synthetic6, &b));
	assert_true(sbx_addr_equal(&sbx_self4, &c));
	assert_true(sbx_addr_equal(&sbx_self6, &d));
	assert_false(sbx_cidr_contains(&sbx_synthetic6, &sbx_self6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),		cmocka_unit_test(test_wrapping_never_helps),
		cmocka_unit_test(test_ranges),		cmocka_unit_test(test_embedded),
		cmocka_unit_test(test_parse_refuses),	cmocka_unit_test(test_format),
		cmocka_unit_test(test_cidr_parse),	cmocka_unit_test(test_cidr_contains),
		cmocka_unit_test(test_equal_and_unmap), cmocka_unit_test(test_sockaddr),
		cmocka_unit_test(test_our_ranges),
	};

	return cmocka_run_group_tests_name("addr", tests, NULL, NULL);
}
