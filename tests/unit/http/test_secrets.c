/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Secrets in the head of a request: each refusal beside its allowed twin. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "http/encode.h"
#include "http/path.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/http/world.h"

#define HOLDER_3 "sbx-placeholder-cccccccccccccccc3"

static struct sbx_span below[1];
static struct sbx_http_secret secrets[3];
static struct sbx_http_rules rules;
static struct sbx_http_entry entry;

/* ONE may be used at a.example in every way; TWO with GET below /b/ of *.b.example, in headers;
 * THREE is set by sbx. */
static int fill(void **state)
{
	static struct sbx_span host_1[] = { SPAN("a.example") }, host_2[] = { SPAN("*.b.example") },
			       get[] = { SPAN("GET") };

	(void)state;
	below[0] = TEXT("/b/");
	secrets[0] = (struct sbx_http_secret){
		.name = TEXT("ONE"),
		.placeholder = TEXT(HOLDER_1),
		.value = TEXT(VALUE_1),
		.hosts = { 1, host_1 },
		.in = SBX_HTTP_IN_ALL,
		.detect = 1,
	};
	secrets[1] = (struct sbx_http_secret){
		.name = TEXT("TWO"),
		.placeholder = TEXT(HOLDER_2),
		.value = TEXT(VALUE_2),
		.hosts = { 1, host_2 },
		.in = SBX_HTTP_IN_HEADER,
		.methods = { 1, get },
		.paths = { 1, below },
	};
	secrets[2] = (struct sbx_http_secret){
		.name = TEXT("THREE"),
		.placeholder = TEXT(HOLDER_3),
		.value = TEXT("value-of-three"),
		.hosts = { 1, host_1 },
		.inject = SBX_HTTP_INJECT_HEADER,
		.override = 1,
		.header = TEXT("X-Three"),
		.template_text = TEXT("three ${secret}!"),
	};
	rules = (struct sbx_http_rules){ .id = ID, .n_secrets = 2, .secrets = secrets };
	entry = (struct sbx_http_entry){ .text = TEXT("entry-text") };
	return 0;
}

static struct sbx_http_verdict verdict;
static bool asks_uncoded; /* the last request that was rewritten got a field Accept-Encoding */

static bool is_accept_encoding(const struct sbx_http_header *h)
{
	return h->name.n == 15 && !memcmp(h->name.p, "Accept-Encoding", 15);
}

static bool asked_for_coding(const struct sbx_http_request *r)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (is_accept_encoding(&r->headers[i]))
			return true;
	return false;
}

/* The request as "METHOD TARGET|Name: value|...", or "reason". A field of asks_uncoded is left
 * out. */
static const char *rewrite(const char *host, const struct sbx_http_request *r)
{
	static char text[8192];
	struct sbx_http_rewritten w;
	size_t n;

	memset(&verdict, 0xff, sizeof(verdict));
	if (!sbx_http_rewrite(&rules, &entry, host, r, &w, &verdict)) {
		assert_null(w.memory);
		assert_true(verdict.status >= 400 && verdict.text[0]);
		assert_null(strstr(verdict.text, VALUE_1));
		assert_null(strstr(verdict.text, VALUE_2));
		return sbx_reason_str(verdict.reason);
	}
	assert_int_equal(verdict.reason, SBX_REASON_LIST_ALLOW);
	n = (size_t)snprintf(text, sizeof(text), "%.*s %.*s", (int)w.request.method.n,
			     (const char *)w.request.method.p, (int)w.request.target.n,
			     (const char *)w.request.target.p);
	asks_uncoded = false;
	for (size_t i = 0; i < w.request.n_headers; i++) {
		const struct sbx_http_header *h = &w.request.headers[i];

		if (is_accept_encoding(h) && !asked_for_coding(r)) {
			assert_int_equal(h->value.n, 8);
			assert_memory_equal(h->value.p, "identity", 8);
			assert_false(asks_uncoded);
			asks_uncoded = true;
			continue;
		}
		n += (size_t)snprintf(text + n, sizeof(text) - n, "|%.*s: %.*s", (int)h->name.n,
				      (const char *)h->name.p, (int)h->value.n,
				      (const char *)h->value.p);
		assert_true(n < sizeof(text));
	}
	sbx_http_rewritten_fini(&w);
	sbx_http_rewritten_fini(&w);
	return text;
}

static const char *ask(const char *host, const char *method, const char *target, const char *name,
		       const char *value)
{
	struct sbx_http_request r = request(method, target);

	if (name)
		add_header(&r, name, value);
	return rewrite(host, &r);
}

/* A GET of a.example with one header. */
static const char *ask_header(const char *name, const char *value)
{
	return ask("a.example", "GET", "/", name, value);
}

#define MISDIRECTED sbx_reason_str(SBX_REASON_SECRET_MISDIRECTED)
#define DETECTED    sbx_reason_str(SBX_REASON_SECRET_DETECTED)

static void test_headers(void **state)
{
	(void)state;
	assert_string_equal(ask_header("Accept", "*/*"), "GET /|Accept: */*");
	assert_string_equal(ask_header("Authorization", "Bearer " HOLDER_1),
			    "GET /|Authorization: Bearer " VALUE_1);
	assert_string_equal(ask_header("Cookie", "a=" HOLDER_1 "; b=" HOLDER_1),
			    "GET /|Cookie: a=" VALUE_1 "; b=" VALUE_1);
	assert_string_equal(ask_header("X", HOLDER_1 HOLDER_1), "GET /|X: " VALUE_1 VALUE_1);
	assert_string_equal(ask_header("X", "sbx-placeholder-"), "GET /|X: sbx-placeholder-");
	assert_string_equal(ask_header("X", ""), "GET /|X: ");

	assert_string_equal(ask_header("X", HOLDER_1 HOLDER_2), MISDIRECTED);
	assert_string_equal(
		verdict.text,
		"the placeholder of secret 'TWO' was in a header of a request to a.example, "
		"but the secret is for *.b.example only; if it should go there, add "
		"a.example to its hosts");
	/* In a name, in any case. */
	assert_string_equal(ask_header("X-" HOLDER_1, "a"), MISDIRECTED);
	assert_string_equal(ask_header("x-SBX-placeholder-AAAAAAAAAAAAAAAA1", "a"), MISDIRECTED);
	assert_string_equal(ask_header("x-SBX-placeholder-AAAAAAAAAAAAAAAA3", "a"),
			    "GET /|x-SBX-placeholder-AAAAAAAAAAAAAAAA3: a");
	secrets[0].in = SBX_HTTP_IN_QUERY | SBX_HTTP_IN_BODY;
	assert_string_equal(ask_header("X", HOLDER_1), MISDIRECTED);
	assert_non_null(strstr(verdict.text, "add header to its 'in'"));
}

static void test_conditions(void **state)
{
	static const char *const overrides[][2] = {
		{ "/b/c", "X-HTTP-Method-Override" }, { "/b/c", "x_http_method" },
		{ "/b/c", "X-Method-Override" },      { "/b/c", "X-Original-URL" },
		{ "/b/c", "X_Rewrite_URL" },	      { "/b/c?_method=PUT", "X-A" },
		{ "/b/c?a=b&%5fMethod=PUT", "X-A" },  { "/b/c?a;_method", "X-A" },
	};

	struct sbx_http_request r = request("GET", "/");

	(void)state;
	assert_string_equal(ask("x.b.example", "GET", "/b/c", "X", HOLDER_2),
			    "GET /b/c|X: " VALUE_2);
	assert_string_equal(ask("b.example", "GET", "/b/c", "X", HOLDER_2), MISDIRECTED);
	assert_string_equal(ask("xb.example", "GET", "/b/c", "X", HOLDER_2), MISDIRECTED);
	assert_string_equal(ask("x.b.example.c", "GET", "/b/c", "X", HOLDER_2), MISDIRECTED);
	assert_string_equal(ask("x.b.example", "POST", "/b/c", "X", HOLDER_2), MISDIRECTED);
	assert_non_null(strstr(verdict.text, "for the methods GET only"));
	assert_string_equal(ask("x.b.example", "get", "/b/c", "X", HOLDER_2), MISDIRECTED);
	assert_string_equal(ask("x.b.example", "GET", "/c", "X", HOLDER_2), MISDIRECTED);
	assert_non_null(strstr(verdict.text, "for the paths /b/ only"));
	assert_string_equal(ask("x.b.example", "GET", "/%62/c", "X", HOLDER_2),
			    "GET /%62/c|X: " VALUE_2);
	assert_string_equal(ask("x.b.example", "GET", "/b/../c", "X", HOLDER_2), MISDIRECTED);
	assert_non_null(strstr(verdict.text, "dot segment"));
	/* Some servers drop the parameters of a segment. */
	assert_string_equal(ask("x.b.example", "GET", "/b/c;d", "X", HOLDER_2),
			    "GET /b/c;d|X: " VALUE_2);
	below[0] = TEXT("/**.json");
	assert_string_equal(ask("x.b.example", "GET", "/b/c;.json", "X", HOLDER_2), MISDIRECTED);
	assert_non_null(strstr(verdict.text, "for the paths /**.json only"));
	assert_string_equal(ask("x.b.example", "GET", "/b/c%3b.json", "X", HOLDER_2), MISDIRECTED);
	assert_string_equal(ask("x.b.example", "GET", "/b/c.json;.json", "X", HOLDER_2),
			    "GET /b/c.json;.json|X: " VALUE_2);
	below[0] = TEXT("/b/");
	/* Fields that replace them for some servers. */
	assert_string_equal(ask("x.b.example", "GET", "/b/c", "x_http_method_override", "PUT"),
			    "GET /b/c|x_http_method_override: PUT");
	for (size_t i = 0; i < SBX_N_ELEMENTS(overrides); i++) {
		struct sbx_http_request odd = request("GET", overrides[i][0]);

		add_header(&odd, overrides[i][1], "/c");
		add_header(&odd, "X", HOLDER_2);
		assert_string_equal(rewrite("x.b.example", &odd), MISDIRECTED);
		assert_non_null(strstr(verdict.text, "replace the method or the path"));
		odd.headers[1].value = TEXT(HOLDER_1);
		assert_non_null(strstr(rewrite("a.example", &odd), VALUE_1));
	}
	/* An odd path matters only to a secret that has paths. */
	assert_string_equal(ask("a.example", "GET", "/b/../c", "X", HOLDER_1),
			    "GET /b/../c|X: " VALUE_1);
	assert_string_equal(ask("x.b.example", "GET", "/b/../c", "X", "a"), "GET /b/../c|X: a");
	add_header(&r, "X", HOLDER_1);
	assert_string_equal(rewrite("a.example", &r), "GET /|X: " VALUE_1);
	r.tls = false;
	assert_string_equal(rewrite("a.example", &r), MISDIRECTED);
	assert_non_null(strstr(verdict.text, "https"));
	secrets[0].hosts.n = 0;
	assert_string_equal(ask_header("X", HOLDER_1), MISDIRECTED);
}

static void test_method_and_path(void **state)
{
	(void)state;
	assert_string_equal(ask("a.example", HOLDER_1, "/", NULL, NULL), MISDIRECTED);
	assert_string_equal(ask("a.example", "GET", "/" HOLDER_1, NULL, NULL), MISDIRECTED);
	assert_non_null(strstr(verdict.text, "in the path"));
	assert_non_null(strstr(verdict.text, "where no placeholder is replaced"));
	assert_string_equal(ask("a.example", "GET", "/x/" HOLDER_1 "/y?a", NULL, NULL),
			    MISDIRECTED);
	assert_string_equal(
		ask("a.example", "GET", "/%73bx-placeholder%2daaaaaaaaaaaaaaaa1", NULL, NULL),
		MISDIRECTED);
	assert_string_equal(
		ask("a.example", "GET", "/%73bx-placeholder%2daaaaaaaaaaaaaaaa3", NULL, NULL),
		"GET /%73bx-placeholder%2daaaaaaaaaaaaaaaa3");
	assert_string_equal(ask("a.example", "OPTIONS", "*", NULL, NULL), "OPTIONS *");
}

static const char *asked(const char *method, const char *target)
{
	static char text[64];

	sbx_http_request_text(&rules, sbx_span_str(method), sbx_span_str(target), text,
			      sizeof(text));
	return text;
}

/* No query, no placeholder and no value, however they are written; a part of a long path. */
static void test_text_of_a_request(void **state)
{
	char path[SBX_HTTP_PATH_MAX + 8] = "/";

	(void)state;
	assert_string_equal(asked("PUT", "/p?token=x"), "PUT /p");
	assert_string_equal(asked("OPTIONS", "*"), "OPTIONS *");
	assert_string_equal(asked("", ""), " ");
#define HIDDEN "GET (a path with a secret in it)"
	assert_string_equal(asked("GET", "/x" HOLDER_2), HIDDEN);
	assert_string_equal(asked("GET", "/%73bx-placeholder-aaaaaaaaaaaaaaaa1"), HIDDEN);
	assert_string_equal(asked("GET", "/" VALUE_2 "/x"), HIDDEN);
	assert_string_equal(asked("GET", "/s%65cond-value-2"), HIDDEN);
	assert_string_equal(asked(VALUE_2, "/"), "(a method with a secret in it) /");
	memset(path + 1, 'a', 100);
	strcpy(path + 101, VALUE_2);
	assert_string_equal(asked("GET", path), HIDDEN);
	path[101] = '\0';
	assert_int_equal(strlen(asked("GET", path)), 63);
	memset(path + 1, 'a', sizeof(path) - 2);
	assert_string_equal(asked("GET", path), HIDDEN);
	rules.n_secrets = 0;
	assert_int_equal(strlen(asked("GET", path)), 63);
}

/* The verdict names the secret, so that the event can. */
static void test_secret_of_a_verdict(void **state)
{
	(void)state;
	assert_string_equal(ask("x.example", "GET", "/", "X", HOLDER_2), MISDIRECTED);
	assert_string_equal(verdict.secret, "TWO");
	assert_string_equal(ask("a.example", "GET", "/", "X", VALUE_1),
			    sbx_reason_str(SBX_REASON_SECRET_DETECTED));
	assert_string_equal(verdict.secret, "ONE");
	sbx_http_refuse(&verdict, SBX_REASON_RESOURCE, 503, "x");
	assert_string_equal(verdict.secret, "");
}

#define VALUE_1_ENCODED "gh%20%22p%2F%5C%2B%26%3D%251"

static void test_query(void **state)
{
	const struct {
		const char *target, *want;
	} cases[] = {
		{ "/?", "GET /?" },
		{ "/?a=b%20c+d&e", "GET /?a=b%20c+d&e" },
		{ "/?" HOLDER_1, "GET /?" VALUE_1_ENCODED },
		{ "/p?a=" HOLDER_1 "&b=%41", "GET /p?a=" VALUE_1_ENCODED "&b=%41" },
		{ "/p?a=%73bx%2Dplaceholder-aaaaaaaa%61aaaaaaa%31&b=+%41+",
		  "GET /p?a=" VALUE_1_ENCODED "&b=+%41+" },
		{ "/p?a=%73bx%2Dplaceholder-aaaaaaaa%61aaaaaaa%33&b",
		  "GET /p?a=%73bx%2Dplaceholder-"
		  "aaaaaaaa%61aaaaaaa%33&b" },
		{ "/?" HOLDER_1 HOLDER_1 "%", "GET /?" VALUE_1_ENCODED VALUE_1_ENCODED "%" },
		{ "/?" HOLDER_1 "&" HOLDER_2, MISDIRECTED },
		{ "/?%73bx-placeholder-aaaaaaaaaaaaaaaa2", MISDIRECTED },
		{ "/?a?b=" HOLDER_1, "GET /?a?b=" VALUE_1_ENCODED },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		assert_string_equal(ask("a.example", "GET", cases[i].target, NULL, NULL),
				    cases[i].want);
	secrets[0].in = SBX_HTTP_IN_HEADER;
	assert_string_equal(ask("a.example", "GET", "/?" HOLDER_1, NULL, NULL), MISDIRECTED);
	assert_non_null(strstr(verdict.text, "add query to its 'in'"));
}

/* "Basic " and the base64 of @plain; @form: 0 as usual, 1 without padding, 2 the URL's alphabet. */
static const char *basic(const char *plain, int form)
{
	static char text[512];
	size_t n = 6 + sbx_base64_encode(sbx_span_str(plain), (uint8_t *)text + 6);

	memcpy(text, "Basic ", 6);
	text[n] = '\0';
	if (form)
		text[strcspn(text, "=")] = '\0';
	for (char *p = text; form == 2 && *p; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
	return text;
}

static void test_basic(void **state)
{
	char want[512];

	(void)state;
	snprintf(want, sizeof(want), "GET /|Authorization: %s", basic("me?>:" VALUE_1, 0));
	for (int form = 0; form < 3; form++)
		assert_string_equal(ask_header("Authorization", basic("me?>:" HOLDER_1, form)),
				    want);
	snprintf(want, sizeof(want), "GET /|proxy-authorization: %s", basic(VALUE_1 ":x", 0));
	assert_string_equal(ask_header("proxy-authorization", basic(HOLDER_1 ":x", 0)), want);
	assert_string_equal(ask_header("Authorization", basic("me:" HOLDER_2, 0)), MISDIRECTED);
	assert_string_equal(ask_header("Authorization", basic("me:" VALUE_1, 0)), DETECTED);
	assert_string_equal(ask_header("Authorization", "basic \t"
							"c2J4LXBsYWNlaG9sZGVyLWFhYWFhYWFhY"
							"WFhYWFhYWEy"),
			    MISDIRECTED);
	/* Credentials as they were, when nothing is in them. */
	assert_string_equal(ask_header("Authorization", "Basic bWU6eA"),
			    "GET /|Authorization: Basic bWU6eA");
	assert_string_equal(ask_header("Authorization", "Basic *"), "GET /|Authorization: Basic *");
	assert_string_equal(ask_header("Authorization", "Basic"), "GET /|Authorization: Basic");
	/* The secret is the base64 itself. */
	assert_string_equal(ask_header("Authorization", "Basic " HOLDER_1),
			    "GET /|Authorization: Basic " VALUE_1);
	secrets[0].in = SBX_HTTP_IN_QUERY;
	assert_string_equal(ask_header("Authorization", basic("me:" HOLDER_1, 0)), MISDIRECTED);
}

static void test_detect(void **state)
{
	static const char *const targets[] = { "/?a=" VALUE_1_ENCODED, "/" VALUE_1_ENCODED "/b",
					       "/?a=gh+%22p/%5c%2b&=%251" };

	(void)state;
	for (int detect = 1; detect >= 0; detect--) {
		secrets[0].detect = (uint8_t)detect;
		assert_string_equal(ask_header("X", "a" VALUE_1 "b"),
				    detect ? DETECTED : "GET /|X: a" VALUE_1 "b");
		/* To the secret's own host, and to others. */
		assert_string_equal(ask("c.example", "GET", "/", "X", VALUE_1),
				    detect ? DETECTED : "GET /|X: " VALUE_1);
		for (size_t i = 0; i < SBX_N_ELEMENTS(targets); i++)
			assert_int_equal(
				!strcmp(ask("a.example", "GET", targets[i], NULL, NULL), DETECTED),
				detect);
	}
	assert_string_equal(ask_header("X", VALUE_2), "GET /|X: " VALUE_2);
}

static void test_injection(void **state)
{
	struct sbx_http_request r = request("GET", "/");

	(void)state;
	rules.n_secrets = 3;
	assert_string_equal(ask_header("X", "a"), "GET /|X: a|X-Three: three value-of-three!");
	assert_string_equal(ask("c.example", "GET", "/", "X", "a"), "GET /|X: a");
	/* A header that is replaced is not judged. */
	assert_string_equal(ask_header("x-three", HOLDER_3),
			    "GET /|X-Three: three value-of-three!");
	assert_string_equal(ask("c.example", "GET", "/", "x-three", HOLDER_3), MISDIRECTED);
	assert_string_equal(ask_header("X", HOLDER_3), MISDIRECTED);
	assert_non_null(strstr(verdict.text, "in the header X-Three"));
	add_header(&r, "X-Three", "1");
	add_header(&r, "A", "2");
	add_header(&r, "x-THREE", "3");
	assert_string_equal(rewrite("a.example", &r), "GET /|A: 2|X-Three: three value-of-three!");
	r.tls = false;
	assert_string_equal(rewrite("a.example", &r), "GET /|X-Three: 1|A: 2|x-THREE: 3");
	r.tls = true;
	secrets[2].override = 0;
	assert_string_equal(rewrite("a.example", &r), "GET /|X-Three: 1|A: 2|x-THREE: 3");
	assert_string_equal(ask_header("x-three", HOLDER_3), MISDIRECTED);
	assert_string_equal(ask_header("X", "a"), "GET /|X: a|X-Three: three value-of-three!");
	secrets[2].methods = secrets[1].methods;
	assert_string_equal(ask("a.example", "POST", "/", NULL, NULL), "POST /");
	secrets[2].paths = secrets[1].paths;
	assert_string_equal(ask("a.example", "GET", "/", NULL, NULL), "GET /");
	assert_string_equal(ask("a.example", "GET", "/b/", NULL, NULL),
			    "GET /b/|X-Three: three value-of-three!");
	assert_string_equal(ask("a.example", "GET", "/b/../b/", NULL, NULL), "GET /b/../b/");
}

/* Gateways that make variables of names read '_' as '-' (RFC 3875), so that they would get the
 * client's header beside the one that sbx sets. */
static void test_injection_disguised(void **state)
{
	static const char *const names[] = { "X_Three", "x_three", "X_THREE", "x-three" };
	struct sbx_http_request r;

	(void)state;
	rules.n_secrets = 3;
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		secrets[2].override = 1;
		assert_string_equal(ask_header(names[i], "a"),
				    "GET /|X-Three: three value-of-three!");
		assert_string_equal(ask_header(names[i], HOLDER_3),
				    "GET /|X-Three: three value-of-three!");
		/* The client's header stays, and sbx sets none beside it. */
		secrets[2].override = 0;
		r = request("GET", "/");
		add_header(&r, names[i], "a");
		assert_non_null(strstr(rewrite("a.example", &r), names[i]));
		assert_null(strstr(rewrite("a.example", &r), "value-of-three"));
		assert_string_equal(ask_header(names[i], HOLDER_3), MISDIRECTED);
		/* To another host nothing is set. */
		assert_non_null(strstr(ask("c.example", "GET", "/", names[i], "a"), names[i]));
	}
	for (int override = 0; override < 2; override++) {
		secrets[2].override = (uint8_t) override;
		assert_string_equal(ask_header("XaThree", "a"),
				    "GET /|XaThree: a|X-Three: three value-of-three!");
		assert_string_equal(ask_header("X_Threes", "a"),
				    "GET /|X_Threes: a|X-Three: three value-of-three!");
	}
	secrets[2].header = TEXT("X_Three");
	secrets[2].override = 1;
	assert_string_equal(ask_header("X-Three", "a"), "GET /|X_Three: three value-of-three!");
}

/* No value would be found in UTF-16. */
static void test_accept_charset(void **state)
{
	static const char *const accepts[][2] = {
		{ "text/a;charset=utf-16", "text/a" },
		{ "text/a; q=0.1; Charset = \"utf-16\";b=c, d/e ;charset=x,f/g",
		  "text/a; q=0.1;b=c, d/e ,f/g" },
		{ "text/a; chars=utf-16, charset/a", "text/a; chars=utf-16, charset/a" },
		{ "a/b;q=1;", "a/b;q=1;" },
	};
	char expected[128];

	(void)state;
	assert_string_equal(ask_header("accept_Charset", "utf-16"), "GET /");
	assert_string_equal(ask("c.example", "GET", "/", "Accept-Charset", "a"),
			    "GET /|Accept-Charset: a");
	for (size_t i = 0; i < SBX_N_ELEMENTS(accepts); i++) {
		snprintf(expected, sizeof(expected), "GET /|ACCEPT: %s", accepts[i][1]);
		assert_string_equal(ask_header("ACCEPT", accepts[i][0]), expected);
		snprintf(expected, sizeof(expected), "GET /|ACCEPT: %s", accepts[i][0]);
		assert_string_equal(ask("c.example", "GET", "/", "ACCEPT", accepts[i][0]),
				    expected);
	}
}

/* The server may read either name. */
static void test_accept_encoding(void **state)
{
	static const char *const names[] = { "Accept-Encoding", "accept_encoding" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		assert_non_null(strstr(ask_header(names[i], "gzip"), ": identity"));
		assert_non_null(strstr(ask("c.example", "GET", "/", names[i], "gzip"), ": gzip"));
	}
	assert_string_equal(ask_header("AcceptXEncoding", "gzip"), "GET /|AcceptXEncoding: gzip");
	/* A server that is not asked may choose. */
	assert_true(asks_uncoded);
	ask_header("Accept-Encoding", "gzip");
	assert_false(asks_uncoded);
	ask_header("Accept_Encoding", "gzip");
	assert_true(asks_uncoded);
	ask("c.example", "GET", "/", "X", "a");
	assert_false(asks_uncoded);
	/* Nor is anything else asked that cannot be searched. */
	assert_string_equal(ask_header("a-im", "gdiff"), "GET /");
	assert_string_equal(ask("c.example", "GET", "/", "A-IM", "gdiff"), "GET /|A-IM: gdiff");
	assert_string_equal(ask_header("Grpc-Accept-Encoding", "gzip"), "GET /");
	assert_string_equal(ask_header("connect-accept-encoding", "gzip"), "GET /");
}

static void test_entry_headers_disguised(void **state)
{
	struct sbx_span lines[] = { TEXT("X-Team: one"), TEXT("X_Other: two") };

	(void)state;
	entry.headers = (struct sbx_http_list){ 2, lines };
	assert_string_equal(ask("c.example", "GET", "/", "X_Team", "a"),
			    "GET /|X-Team: one|X_Other: two");
	assert_string_equal(ask("c.example", "GET", "/", "x_TEAM", HOLDER_1),
			    "GET /|X-Team: one|X_Other: two");
	assert_string_equal(ask("c.example", "GET", "/", "x-other", "a"),
			    "GET /|X-Team: one|X_Other: two");
	assert_string_equal(ask("c.example", "GET", "/", "XTeam", "a"),
			    "GET /|XTeam: a|X-Team: one|X_Other: two");
}

static void test_entry_headers(void **state)
{
	struct sbx_span lines[] = { TEXT("X-Team: \tone "), TEXT("X-Three:set") };

	(void)state;
	rules.n_secrets = 3;
	entry.headers = (struct sbx_http_list){ 2, lines };
	assert_string_equal(ask("c.example", "GET", "/", "x-team", HOLDER_1),
			    "GET /|X-Team: one|X-Three: set");
	assert_string_equal(ask("a.example", "GET", "/", "x-team", "a"),
			    "GET /|X-Team: one|X-Three: three value-of-three!");
	secrets[2].override = 0;
	assert_string_equal(ask("a.example", "GET", "/", "x-team", "a"),
			    "GET /|X-Team: one|X-Three: set");
}

static void test_body(void **state)
{
	static const char *const of_messages[] = { "grpc-encoding", "Connect-Content-Encoding" };
	static const struct {
		const char *type;
		enum sbx_http_form form;
	} types[] = {
		{ NULL, SBX_HTTP_FORM_OTHER },
		{ "text/plain", SBX_HTTP_FORM_OTHER },
		{ "application/jsonx", SBX_HTTP_FORM_OTHER },
		{ "application/json", SBX_HTTP_FORM_JSON },
		{ "Application/JSON ; charset=utf-8", SBX_HTTP_FORM_JSON },
		{ "application/problem+json;x", SBX_HTTP_FORM_JSON },
		{ "application/x-www-form-urlencoded", SBX_HTTP_FORM_URLENCODED },
	};
	const struct {
		const char *host, *encoding, *type, *want;
		bool has_body;
	} cases[] = {
		{ "a.example", "identity", NULL, "allow", true },
		{ "a.example", "gzip", NULL, MISDIRECTED, true },
		{ "a.example", "identity, gzip", NULL, MISDIRECTED, true },
		{ "a.example", "gzip", NULL, "allow", false },
		{ "a.example", "gzip", "application/x-git-upload-pack-request", "allow", true },
		{ "c.example", "gzip", NULL, "allow", true },
	};
	struct sbx_http_rewritten w;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(types); i++) {
		struct sbx_http_request r = request("POST", "/");

		add_header(&r, "content-Type", types[i].type);
		assert_true(sbx_http_rewrite(&rules, &entry, "a.example", &r, &w, &verdict));
		assert_int_equal(w.body_form, types[i].form);
		assert_int_equal(w.in_body, 1);
		sbx_http_rewritten_fini(&w);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_http_request r = request("POST", "/");
		const char *got;

		r.has_body = cases[i].has_body;
		add_header(&r, "Content-Encoding", cases[i].encoding);
		add_header(&r, "Content-Type", cases[i].type);
		got = rewrite(cases[i].host, &r);
		assert_string_equal(strncmp(got, "POST", 4) ? got : "allow", cases[i].want);
	}
	/* The messages of a stream may be compressed, each by itself. */
	for (size_t i = 0; i < SBX_N_ELEMENTS(of_messages); i++) {
		struct sbx_http_request r = request("POST", "/");

		r.has_body = true;
		add_header(&r, of_messages[i], "identity");
		assert_int_equal(strncmp(rewrite("a.example", &r), "POST", 4), 0);
		r.headers[0].value = TEXT("gzip");
		assert_string_equal(rewrite("a.example", &r), MISDIRECTED);
		assert_int_equal(strncmp(rewrite("c.example", &r), "POST", 4), 0);
	}
}

#define AWS_SCOPE                                                                                  \
	"/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature="
#define AWS_OLD "AWS4-HMAC-SHA256 Credential=" HOLDER_1 AWS_SCOPE "00"
#define AWS_NEW                                                                                    \
	"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE" AWS_SCOPE                                        \
	"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"

/* Signed anew where the secret is for; the placeholder and the secret go nowhere. */
static void test_signing(void **state)
{
	static struct sbx_span host[] = { SPAN("example.amazonaws.com") };
	struct sbx_http_request r = request("GET", "/");

	(void)state;
	secrets[0].inject = SBX_HTTP_INJECT_AWS_SIGV4;
	secrets[0].value = TEXT("AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
	secrets[0].hosts = (struct sbx_http_list){ 1, host };
	add_header(&r, "authorization", AWS_OLD);
	add_header(&r, "X-Amz-Date", "20150830T123600Z");
	assert_string_equal(rewrite("example.amazonaws.com", &r),
			    "GET /|X-Amz-Date: 20150830T123600Z|Authorization: " AWS_NEW);
	assert_string_equal(rewrite("b.amazonaws.com", &r), MISDIRECTED);
	assert_non_null(strstr(verdict.text, "for example.amazonaws.com only"));
	r.tls = false;
	assert_string_equal(rewrite("example.amazonaws.com", &r), MISDIRECTED);
	r.tls = true;
	/* Signed with a header that is not there. */
	r.n_headers = 1;
	assert_string_equal(rewrite("example.amazonaws.com", &r), MISDIRECTED);
	assert_non_null(strstr(verdict.text, "x-amz-date"));
	assert_string_equal(ask_header("X", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), DETECTED);
	/* Elsewhere the placeholder is refused, so the pair is never sent. */
	assert_string_equal(ask("example.amazonaws.com", "GET", "/", "X", HOLDER_1), MISDIRECTED);
	assert_string_equal(ask("example.amazonaws.com", "GET", "/?" HOLDER_1, NULL, NULL),
			    MISDIRECTED);
	assert_string_equal(
		ask("example.amazonaws.com", "GET", "/", "Authorization", "Bearer " HOLDER_1),
		MISDIRECTED);
}

/* As many headers as there may be, and one more; a head that grows too long. */
static void test_limits(void **state)
{
	static char value[SBX_HTTP_VALUE_MAX], many[40 * sizeof(HOLDER_1)];
	struct sbx_http_request r = request("GET", "/");

	(void)state;
	rules.n_secrets = 3;
	while (r.n_headers < SBX_HTTP_HEADERS_MAX - 2)
		add_header(&r, "A", "b");
	assert_non_null(strstr(rewrite("a.example", &r), "X-Three"));
	add_header(&r, "A", "b");
	assert_string_equal(rewrite("a.example", &r), "oversized");
	assert_int_equal(verdict.status, 431);
	assert_non_null(strstr(rewrite("c.example", &r), "A: b"));

	fill(NULL);
	memset(value, 'v', sizeof(value));
	secrets[0].value = sbx_span(value, sizeof(value));
	for (size_t n = 15; n <= 16; n++) {
		struct sbx_http_rewritten w;
		bool fits = n * sizeof(value) < SBX_HTTP_REWRITTEN_MAX;

		many[0] = '\0';
		for (size_t i = 0; i < n; i++)
			strcat(many, HOLDER_1 " ");
		r = request("GET", "/");
		add_header(&r, "X", many);
		assert_int_equal(sbx_http_rewrite(&rules, &entry, "a.example", &r, &w, &verdict),
				 fits);
		if (fits)
			assert_int_equal(w.request.headers[0].value.n, n * (sizeof(value) + 1));
		else
			assert_int_equal(verdict.reason, SBX_REASON_OVERSIZED);
		sbx_http_rewritten_fini(&w);
	}
}

static void test_allocations(void **state)
{
	struct sbx_http_request r = request("GET", "/?a+" HOLDER_1);
	struct sbx_http_rewritten w;
	size_t n_failed = 0;

	(void)state;
	rules.n_secrets = 3;
	add_header(&r, "X", HOLDER_1);
	add_header(&r, "Authorization", basic(HOLDER_1, 0));
	for (size_t k = 1;
	     (fail_at = k, !sbx_http_rewrite(&rules, &entry, "a.example", &r, &w, &verdict)); k++) {
		assert_int_equal(verdict.reason, SBX_REASON_RESOURCE);
		assert_null(w.memory);
		n_failed++;
	}
	fail_at = 0;
	sbx_http_rewritten_fini(&w);
	assert_true(n_failed > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_headers, fill),
		cmocka_unit_test_setup(test_conditions, fill),
		cmocka_unit_test_setup(test_method_and_path, fill),
		cmocka_unit_test_setup(test_text_of_a_request, fill),
		cmocka_unit_test_setup(test_secret_of_a_verdict, fill),
		cmocka_unit_test_setup(test_query, fill),
		cmocka_unit_test_setup(test_basic, fill),
		cmocka_unit_test_setup(test_detect, fill),
		cmocka_unit_test_setup(test_injection, fill),
		cmocka_unit_test_setup(test_injection_disguised, fill),
		cmocka_unit_test_setup(test_accept_charset, fill),
		cmocka_unit_test_setup(test_accept_encoding, fill),
		cmocka_unit_test_setup(test_entry_headers, fill),
		cmocka_unit_test_setup(test_entry_headers_disguised, fill),
		cmocka_unit_test_setup(test_body, fill),
		cmocka_unit_test_setup(test_signing, fill),
		cmocka_unit_test_setup(test_limits, fill),
		cmocka_unit_test_setup(test_allocations, fill),
	};

	return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
