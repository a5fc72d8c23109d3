/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rules encoded and decoded; what neither direction takes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fail_alloc.h"
#include "tests/unit/http/world.h"

static struct sbx_http_entry entries[2];
static struct sbx_http_secret secrets[2];
static struct sbx_http_rules rules;

/* Good lists, made anew by each fill(), because tests change them. */
static struct sbx_http_list pair(size_t i, struct sbx_span a, struct sbx_span b)
{
	static struct sbx_span v[6][2];

	v[i][0] = a;
	v[i][1] = b;
	return (struct sbx_http_list){ .n = b.n ? 2 : 1, .v = v[i] };
}

/* Good rules, with something in every field. */
static void fill(void)
{
	static const struct sbx_span none;

	entries[0] = (struct sbx_http_entry){
		.text = TEXT("api.example:443"),
		.host = TEXT("api.example"),
		.access = SBX_HTTP_ACCESS_LISTED,
		.websocket = 1,
		.max_request_bytes = UINT64_C(1) << 40,
		.methods = pair(0, TEXT("GET"), TEXT("POST")),
		.paths = pair(1, TEXT("/a/**"), TEXT("/b")),
		.headers = pair(2, TEXT("X-Team: one"), TEXT("X-Empty:")),
		.cert = TEXT("-----BEGIN CERTIFICATE-----\n"),
		.key = TEXT("-----BEGIN PRIVATE KEY-----\n"),
	};
	entries[1] =
		(struct sbx_http_entry){ .text = TEXT("*.b.example"), .host = TEXT("*.b.example") };
	secrets[0] = (struct sbx_http_secret){
		.name = TEXT("TOKEN"),
		.placeholder = TEXT(HOLDER_1),
		.value = TEXT(VALUE_1),
		.hosts = pair(3, TEXT("api.example"), TEXT("*.b.example")),
		.in = SBX_HTTP_IN_ALL,
		.detect = 1,
		.methods = pair(4, TEXT("GET"), none),
		.paths = pair(5, TEXT("/"), none),
	};
	secrets[1] = (struct sbx_http_secret){
		.name = TEXT("KEY"),
		.placeholder = TEXT(HOLDER_2),
		.value = TEXT(VALUE_2),
		.inject = SBX_HTTP_INJECT_HEADER,
		.override = 1,
		.header = TEXT("X-Api-Key"),
		.template_text = TEXT("key=${secret};"),
	};
	rules = (struct sbx_http_rules){
		.id = ID,
		.n_leaves = 1,
		.n_flows = 2,
		.head_bytes = 3,
		.handshake_timeout_ms = 4,
		.idle_timeout_ms = UINT32_MAX,
		.java = 1,
		.n_entries = 2,
		.entries = entries,
		.n_secrets = 2,
		.secrets = secrets,
	};
}

/* The bytes; to be freed. */
static uint8_t *encode(size_t *ret_n)
{
	ssize_t n = sbx_http_rules_encode(&rules, NULL, 0);
	uint8_t *p;

	assert_true(n > 0);
	p = malloc((size_t)n);
	assert_int_equal(sbx_http_rules_encode(&rules, p, (size_t)n), n);
	assert_int_equal(sbx_http_rules_encode(&rules, p, (size_t)n - 1), -EMSGSIZE);
	assert_int_equal(sbx_http_rules_encode(&rules, p, 0), -EMSGSIZE);
	*ret_n = (size_t)n;
	return p;
}

static void test_again(void **state)
{
	SBX_AUTO_FREE uint8_t *p = NULL, *again = NULL;
	struct sbx_http_rules r;
	size_t n;

	(void)state;
	fill();
	p = encode(&n);
	assert_int_equal(sbx_http_rules_decode(sbx_span(p, n), &r), 0);
	assert_string_equal(r.id, ID);
	assert_int_equal(r.n_entries, 2);
	assert_int_equal(r.n_secrets, 2);
	assert_true(r.n_leaves == 1 && r.n_flows == 2 && r.head_bytes == 3 && r.java == 1);
	assert_true(r.handshake_timeout_ms == 4 && r.idle_timeout_ms == UINT32_MAX);
	assert_true(r.entries[0].max_request_bytes == UINT64_C(1) << 40 && r.entries[0].websocket);
	assert_int_equal(r.entries[0].headers.n, 2);
	assert_memory_equal(r.secrets[0].value.p, VALUE_1, sizeof(VALUE_1) - 1);
	assert_true(r.secrets[0].value.p > p && r.secrets[0].value.p < p + n);
	assert_true(r.secrets[1].inject == SBX_HTTP_INJECT_HEADER && r.secrets[1].override == 1);

	again = malloc(n);
	assert_int_equal(sbx_http_rules_encode(&r, again, n), n);
	assert_memory_equal(p, again, n);
	sbx_http_rules_fini(&r);
	sbx_http_rules_fini(&r);
}

/* Every prefix, one byte more, and every byte changed: refused, or rules that encode again. */
static void test_hostile(void **state)
{
	SBX_AUTO_FREE uint8_t *p = NULL, *more = NULL, *again = NULL;
	struct sbx_http_rules r;
	size_t n;

	(void)state;
	fill();
	p = encode(&n);
	for (size_t k = 0; k < n; k++) {
		uint8_t *cut = malloc(k ? k : 1);

		memcpy(cut, p, k);
		assert_int_equal(sbx_http_rules_decode(sbx_span(cut, k), &r), -EBADMSG);
		free(cut);
	}
	more = calloc(1, n + 1);
	again = malloc(n);
	memcpy(more, p, n);
	assert_int_equal(sbx_http_rules_decode(sbx_span(more, n + 1), &r), -EBADMSG);
	for (size_t k = 0; k < n; k++) {
		static const uint8_t changes[] = { 0x01, 0x80, 0xff };

		for (size_t c = 0; c < sizeof(changes); c++) {
			more[k] = p[k] ^ changes[c];
			if (sbx_http_rules_decode(sbx_span(more, n), &r) == 0) {
				assert_int_equal(sbx_http_rules_encode(&r, again, n), n);
				assert_memory_equal(again, more, n);
				sbx_http_rules_fini(&r);
			}
		}
		more[k] = p[k];
	}
}

static void test_allocations(void **state)
{
	SBX_AUTO_FREE uint8_t *p = NULL;
	struct sbx_http_rules r;
	size_t n, n_failed = 0;
	int e;

	(void)state;
	fill();
	p = encode(&n);
	for (size_t k = 1; (fail_at = k, e = sbx_http_rules_decode(sbx_span(p, n), &r)); k++) {
		assert_int_equal(e, -ENOMEM);
		n_failed++;
	}
	fail_at = 0;
	sbx_http_rules_fini(&r);
	assert_int_equal(n_failed, 2 + 3 + 3); /* arrays, lists that are not empty */
}

static void expect(int want)
{
	SBX_AUTO_FREE uint8_t *p = NULL;

	assert_int_equal(!sbx_http_rules_check(&rules), want);
	if (want) {
		assert_true(sbx_http_rules_encode(&rules, NULL, 0) > 0);
	} else {
		p = malloc(1 << 20);
		assert_int_equal(sbx_http_rules_encode(&rules, NULL, 0), -EINVAL);
		assert_int_equal(sbx_http_rules_encode(&rules, p, 1 << 20), -EINVAL);
	}
	fill();
}

#define GOOD(change) ((void)(change), expect(1))
#define BAD(change)  ((void)(change), expect(0))

static void test_entries(void **state)
{
	struct sbx_http_entry *e = entries;

	(void)state;
	fill();
	expect(1);
	BAD(rules.id[0] = 'x');
	BAD(rules.java = 2);
	BAD(e->text = TEXT(""));
	BAD(e->text = TEXT("a\n"));
	GOOD(e->host = TEXT("*.example"));
	BAD(e->host = TEXT(""));
	BAD(e->host = TEXT("*."));
	BAD(e->host = TEXT("*"));
	BAD(e->host = TEXT("API.example"));
	BAD(e->host = TEXT("api.example."));
	BAD(e->host = TEXT("a.*.example"));
	BAD(e->host = TEXT("192.0.2.1"));
	BAD(e->access = SBX_N_HTTP_ACCESSES);
	BAD(e->websocket = 2);
	GOOD(e->methods.n = 0);
	GOOD(e->methods.v[0] = TEXT("M|-ABCDEFGHIJKLMNOPQRSTUVWXYZ012"));
	BAD(e->methods.v[0] = TEXT("M|-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123"));
	BAD(e->methods.v[0] = TEXT("get"));
	BAD(e->methods.v[0] = TEXT(""));
	BAD(e->methods.v[0] = TEXT("G T"));
	BAD(e->paths.v[1] = TEXT("b"));
	BAD(e->paths.v[1] = TEXT("/b/../c"));
	BAD(e->headers.v[0] = TEXT("X-Team"));
	BAD(e->headers.v[0] = TEXT(": a"));
	BAD(e->headers.v[0] = TEXT("X Team: a"));
	BAD(e->headers.v[0] = TEXT("X-Team: a\r\nX: b"));
	BAD(e->headers.v[0] = TEXT("Host: a"));
	BAD(e->headers.v[0] = TEXT("content_length: 5"));
	BAD(e->cert = TEXT(""));
	BAD(e->key = TEXT(""));
	GOOD((e->cert = TEXT(""), e->key = TEXT("")));
}

static void test_secrets(void **state)
{
	struct sbx_http_secret *s = secrets;

	(void)state;
	fill();
	BAD(s->name = TEXT(""));
	GOOD(s->placeholder = TEXT("abcdefghijklmnopqrst"));
	BAD(s->placeholder = TEXT("abcdefghijklmnopqrs"));
	BAD(s->placeholder = TEXT("abcdefghijklmnopqrst%"));
	BAD(s->placeholder = TEXT("abcdefghijklmnopqrst+"));
	BAD(s->placeholder = TEXT(HOLDER_2));
	BAD(s->placeholder = TEXT("x" HOLDER_2 "x"));
	GOOD(s->value = TEXT("x"));
	GOOD(s->value = TEXT("\x80\t"));
	BAD(s->value = TEXT(""));
	BAD(s->value = TEXT("a\0b"));
	BAD(s->value = TEXT("a\rb"));
	BAD(s->value = TEXT("a\nb"));
	GOOD(s->hosts.n = 0);
	BAD(s->hosts.v[0] = TEXT("Api.example"));
	BAD(s->inject = SBX_N_HTTP_INJECTS);
	BAD(s->in = 8);
	BAD(s->override = 2);
	BAD(s->detect = 2);
	BAD(s->methods.v[0] = TEXT("get"));
	BAD(s->paths.v[0] = TEXT(""));
	s = &secrets[1];
	BAD(s->header = TEXT(""));
	BAD(s->header = TEXT("Transfer-Encoding"));
	BAD(s->header = TEXT("X-Api-Key:"));
	GOOD(s->template_text = TEXT("${secret}"));
	BAD(s->template_text = TEXT(""));
	BAD(s->template_text = TEXT("${secre}"));
	BAD(s->template_text = TEXT("${secret}${secret}"));
	BAD(s->template_text = TEXT("${secret}\r\n"));
}

/* The limit, and one past it. */
static void test_limits(void **state)
{
	static uint8_t bytes[SBX_HTTP_PEM_MAX + 1];
	static struct sbx_span many[SBX_HTTP_LIST_MAX + 1];
	static struct sbx_http_entry many_entries[SBX_HTTP_ENTRIES_MAX + 1];
	struct sbx_http_secret *s = secrets;
	size_t n;

	(void)state;
	fill();
	memset(bytes, 'a', sizeof(bytes));
	GOOD(entries[0].key = sbx_span(bytes, SBX_HTTP_PEM_MAX));
	BAD(entries[0].key = sbx_span(bytes, SBX_HTTP_PEM_MAX + 1));
	GOOD(entries[0].cert = sbx_span(bytes, SBX_HTTP_PEM_MAX));
	BAD(entries[0].cert = sbx_span(bytes, SBX_HTTP_PEM_MAX + 1));
	GOOD(s->value = sbx_span(bytes, SBX_HTTP_VALUE_MAX));
	BAD(s->value = sbx_span(bytes, SBX_HTTP_VALUE_MAX + 1));
	GOOD(s->placeholder = sbx_span(bytes, SBX_HTTP_PLACEHOLDER_MAX));
	BAD(s->placeholder = sbx_span(bytes, SBX_HTTP_PLACEHOLDER_MAX + 1));
	GOOD(s->name = sbx_span(bytes, SBX_HTTP_TEXT_MAX));
	BAD(s->name = sbx_span(bytes, SBX_HTTP_TEXT_MAX + 1));
	GOOD(secrets[1].header = sbx_span(bytes, SBX_HTTP_TEXT_MAX));
	BAD(secrets[1].header = sbx_span(bytes, SBX_HTTP_TEXT_MAX + 1));
	for (size_t i = 0; i < SBX_N_ELEMENTS(many); i++)
		many[i] = TEXT("GET");
	GOOD((s->methods.v = many, s->methods.n = SBX_HTTP_LIST_MAX));
	BAD((s->methods.v = many, s->methods.n = SBX_HTTP_LIST_MAX + 1));
	for (n = 0; n < SBX_N_ELEMENTS(many_entries); n++)
		many_entries[n] = entries[1];
	GOOD((rules.entries = many_entries, rules.n_entries = n - 1));
	BAD((rules.entries = many_entries, rules.n_entries = n));
	/* Each good, but more than the whole may have. */
	for (size_t i = 0; i < 8; i++) {
		many_entries[i].cert = sbx_span(bytes, SBX_HTTP_PEM_MAX);
		many_entries[i].key = sbx_span(bytes, SBX_HTTP_PEM_MAX);
	}
	rules.entries = many_entries;
	rules.n_entries = 8;
	assert_int_equal(sbx_http_rules_encode(&rules, NULL, 0), -EMSGSIZE);
	rules.n_entries = 7;
	assert_true(sbx_http_rules_encode(&rules, NULL, 0) > 56 << 20);
}

static void test_hosts(void **state)
{
	(void)state;
	assert_true(sbx_http_host_matches(TEXT("a.example"), "a.example"));
	assert_false(sbx_http_host_matches(TEXT("a.example"), "b.a.example"));
	assert_false(sbx_http_host_matches(TEXT("a.example"), "a.exampl"));
	assert_false(sbx_http_host_matches(TEXT("a.example"), ""));
	assert_true(sbx_http_host_matches(TEXT("*.example"), "a.example"));
	assert_true(sbx_http_host_matches(TEXT("*.example"), "b.a.example"));
	assert_false(sbx_http_host_matches(TEXT("*.example"), "example"));
	assert_false(sbx_http_host_matches(TEXT("*.example"), ".example"));
	assert_false(sbx_http_host_matches(TEXT("*.example"), "xexample"));
	assert_false(sbx_http_host_matches(TEXT("*.example"), "a.example.com"));
	assert_false(sbx_http_host_matches(TEXT(""), ""));
	assert_false(sbx_http_host_matches(TEXT("*."), "a."));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_again),	    cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_allocations), cmocka_unit_test(test_entries),
		cmocka_unit_test(test_secrets),	    cmocka_unit_test(test_limits),
		cmocka_unit_test(test_hosts),
	};

	return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
