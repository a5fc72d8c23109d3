/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/record/refusals.h"

static struct sbx_event event(enum sbx_reason reason, enum sbx_proto proto, const char *name,
			      const char *addr, uint16_t port, const char *rule)
{
	struct sbx_event e = {
		.proto = (uint8_t)proto, .reason = (uint8_t)reason, .port = port, .count = 1
	};

	if (addr)
		assert_int_equal(sbx_addr_parse(addr, &e.addr), 0);
	snprintf(e.name, sizeof(e.name), "%s", name ? name : "");
	snprintf(e.rule, sizeof(e.rule), "%s", rule ? rule : "");
	return e;
}

/* Each reason that says more than its own sentence; --allow only where it helps. */
static void test_lines(void **state)
{
	static const struct {
		enum sbx_reason reason;
		enum sbx_proto proto;
		const char *name, *addr;
		uint16_t port;
		const char *rule, *line;
	} t[] = {
		{ SBX_REASON_DEFAULT_DENY, SBX_PROTO_DNS, "example.org", NULL, 53, NULL,
		  "refused 1x example.org (not in profile 'p'); allow with --allow example.org" },
		{ SBX_REASON_DEFAULT_DENY, SBX_PROTO_TCP, "example.org", "100.64.0.9", 443, NULL,
		  "refused 1x example.org:443 (not in profile 'p'); allow with --allow "
		  "example.org" },
		{ SBX_REASON_DEFAULT_DENY, SBX_PROTO_TCP, "example.org", "100.64.0.9", 22, NULL,
		  "refused 1x example.org:22 (not in profile 'p'); allow with --allow "
		  "example.org:22" },
		{ SBX_REASON_DEFAULT_DENY, SBX_PROTO_DNS, "localhost", NULL, 53, NULL,
		  "refused 1x localhost (not in profile 'p')" },
		{ SBX_REASON_DEFAULT_DENY, SBX_PROTO_DNS, "a b", NULL, 53, NULL,
		  "refused 1x a b (not in profile 'p')" },
		{ SBX_REASON_DEFAULT_DENY, SBX_PROTO_DNS, "x\x1b[2J\xff", NULL, 53, NULL,
		  "refused 1x x\\x1b[2J\\xff (not in profile 'p')" },
		{ SBX_REASON_PORT, SBX_PROTO_TCP, "example.org", NULL, 80, "example.org:443",
		  "refused 1x example.org:80 (not among the ports of the entry 'example.org:443'); "
		  "allow with --allow "
		  "example.org:80" },
		{ SBX_REASON_PORT, SBX_PROTO_UDP, "example.org", NULL, 443, "example.org",
		  "refused 1x example.org:443/udp (not among the ports of the entry "
		  "'example.org'); allow with --allow "
		  "example.org:443/udp" },
		{ SBX_REASON_LITERAL_ADDRESS, SBX_PROTO_TCP, NULL, "192.0.2.1", 443, NULL,
		  "refused 1x 192.0.2.1:443 (an address was dialled that no allowed name gave); "
		  "allow with --allow "
		  "192.0.2.1:443" },
		{ SBX_REASON_LITERAL_ADDRESS, SBX_PROTO_TCP, NULL, "2a00::1", 443, NULL,
		  "refused 1x [2a00::1]:443 (an address was dialled that no allowed name gave); "
		  "allow with --allow "
		  "'[2a00::1]:443'" },
		{ SBX_REASON_LITERAL_ADDRESS, SBX_PROTO_TCP, NULL, "10.0.0.9", 443, NULL,
		  "refused 1x 10.0.0.9:443 (a private address, reached only where the system "
		  "policy admits it)" },
		{ SBX_REASON_LITERAL_ADDRESS, SBX_PROTO_ICMP, NULL, "192.0.2.1", 0, NULL,
		  "refused 1x 192.0.2.1 (icmp) (an address was dialled that no allowed name "
		  "gave)" },
		{ SBX_REASON_FLOOR, SBX_PROTO_TCP, NULL, "169.254.169.254", 80,
		  "floor 169.254.169.254",
		  "refused 1x 169.254.169.254:80 (floor 169.254.169.254, which no profile and no "
		  "flag lifts)" },
		{ SBX_REASON_LIST_DENY, SBX_PROTO_DNS, "example.org", NULL, 53, "*.org",
		  "refused 1x example.org (denied by the entry '*.org')" },
		{ SBX_REASON_AIR_GAP, SBX_PROTO_DNS, "example.org", NULL, 53, NULL,
		  "refused 1x example.org (the sandbox is air-gapped or offline)" },
		{ SBX_REASON_CONNECT_FAILED, SBX_PROTO_TCP, "example.org", NULL, 443, "example.org",
		  "failed 1x example.org:443 (the server could not be reached: check the name and "
		  "this host's own network)" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(t); i++) {
		struct sbx_event e =
			event(t[i].reason, t[i].proto, t[i].name, t[i].addr, t[i].port, t[i].rule);
		struct sbx_refusals *l = NULL;
		struct sbx_refusal r;
		char line[SBX_REFUSAL_LINE_MAX];

		sbx_refusals_add(&l, &e);
		sbx_refusals_at(l, 0, "p", &r);
		assert_string_equal(sbx_refusal_line(&r, line, sizeof(line)), t[i].line);
		sbx_refusals_free(l);
	}
}

/* Refusals that differ in a key field stay apart; all others are one line. The longest texts
 * fit. */
static void test_the_same(void **state)
{
	struct sbx_event e = event(SBX_REASON_DEFAULT_DENY, SBX_PROTO_TCP, "a.test", "100.64.0.1",
				   443, "r"),
			 other;
	struct sbx_refusals *l = NULL;
	struct sbx_refusal r;
	char line[SBX_REFUSAL_LINE_MAX];

	(void)state;
	sbx_refusals_sort(NULL);
	assert_int_equal(sbx_refusals_n(NULL), 0);
	sbx_refusals_add(&l, &e);
	other = e;
	other.addr.b[3] = 77; /* the name's next address */
	other.ts_ms = 99;
	sbx_refusals_add(&l, &other);
	assert_int_equal(sbx_refusals_n(l), 1);
	other = e, other.port = 80;
	sbx_refusals_add(&l, &other);
	other = e, other.reason = SBX_REASON_PORT;
	sbx_refusals_add(&l, &other);
	other = e, other.proto = SBX_PROTO_UDP;
	sbx_refusals_add(&l, &other);
	other = e, other.rule[0] = 's';
	sbx_refusals_add(&l, &other);
	other = event(SBX_REASON_LITERAL_ADDRESS, SBX_PROTO_TCP, NULL, "192.0.2.1", 443, NULL);
	sbx_refusals_add(&l, &other);
	other.addr.b[3] = 2;
	other.count = 9;
	sbx_refusals_add(&l, &other);
	assert_int_equal(sbx_refusals_n(l), 7);
	sbx_refusals_sort(l);
	sbx_refusals_at(l, 0, "p", &r);
	assert_string_equal(r.where, "192.0.2.2:443");
	sbx_refusals_at(l, 1, "p", &r);
	assert_int_equal(r.event->count, 2);
	sbx_refusals_at(l, 2, "p", &r);
	assert_string_equal(r.where, "a.test:80"); /* of equals the first that came */
	sbx_refusals_free(l);
	l = NULL;
	memset(other.name, '\x01', SBX_HOSTNAME_MAX);
	memset(other.rule, '\x01', SBX_RULE_MAX);
	other.reason = SBX_REASON_PORT;
	other.count = UINT64_MAX;
	sbx_refusals_add(&l, &other);
	sbx_refusals_add(&l, &other);
	sbx_refusals_at(l, 0, "p", &r);
	assert_true(r.event->count == UINT64_MAX);
	assert_non_null(strstr(sbx_refusal_line(&r, line, sizeof(line)), "\\x01\\x01"));
	sbx_refusals_free(l);
}

/* The request, and the entry that refused it. Requests that differ are one line, with the first. */
static void test_requests(void **state)
{
	struct sbx_event e = event(SBX_REASON_ACCESS_METHOD, SBX_PROTO_TCP, "a.test", NULL, 443,
				   "*.test");
	struct sbx_refusals *l = NULL;
	struct sbx_refusal r;
	char line[SBX_REFUSAL_LINE_MAX];

	(void)state;
	strcpy(e.request, "PUT /p\x1b");
	sbx_refusals_add(&l, &e);
	sbx_refusals_add(&l, &e);
	sbx_refusals_at(l, 0, "p", &r);
	assert_string_equal(r.request, "PUT /p\x1b");
	assert_string_equal(sbx_refusal_line(&r, line, sizeof(line)),
			    "refused 2x a.test:443 PUT /p\\x1b (the entry's access does not admit "
			    "the request's method, entry '*.test': write the entry with an "
			    "`access` that lists the request)");
	strcpy(e.request, "PUT /q");
	sbx_refusals_add(&l, &e);
	strcpy(e.request, "PUT /p\x1b");
	sbx_refusals_add(&l, &e);
	assert_int_equal(sbx_refusals_n(l), 1);
	sbx_refusals_at(l, 0, "p", &r);
	assert_int_equal(r.event->count, 4);
	assert_string_equal(r.request, "PUT /p\x1b and others");
	sbx_refusals_free(l);
}

/* The list is bounded, however many names a command makes up. */
static void test_bound(void **state)
{
	struct sbx_refusals *l = NULL;
	struct sbx_event e;
	char name[32];

	(void)state;
	for (int i = 0; i < SBX_REFUSALS_MAX + 50; i++) {
		snprintf(name, sizeof(name), "n%d.test", i);
		e = event(SBX_REASON_DEFAULT_DENY, SBX_PROTO_DNS, name, NULL, 53, NULL);
		sbx_refusals_add(&l, &e);
	}
	e.reason = SBX_REASON_OVERFLOW;
	e.count = UINT64_MAX - 60;
	sbx_refusals_add(&l, &e);
	assert_int_equal(sbx_refusals_n(l), SBX_REFUSALS_MAX);
	assert_true(sbx_refusals_n_others(l) == UINT64_MAX - 10);
	sbx_refusals_add(&l, &e);
	assert_true(sbx_refusals_n_others(l) == UINT64_MAX);
	/* known: still counted */
	e = event(SBX_REASON_DEFAULT_DENY, SBX_PROTO_DNS, "n0.test", NULL, 53, NULL);
	sbx_refusals_add(&l, &e);
	sbx_refusals_sort(l);
	struct sbx_refusal r;
	sbx_refusals_at(l, 0, "p", &r);
	assert_int_equal(r.event->count, 2);
	sbx_refusals_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_the_same),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
