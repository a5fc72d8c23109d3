/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Strings replaced in streams: at the same places however the stream is cut. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/swap.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/http/world.h"

static struct sbx_http_secret secrets[] = {
	{
		.name = TEXT("ONE"),
		.placeholder = TEXT(HOLDER_1),
		.value = TEXT(VALUE_1),
		.hosts = LIST(SPAN("a.example")),
		.in = SBX_HTTP_IN_ALL,
		.detect = 1,
	},
	{
		.name = TEXT("TWO"),
		.placeholder = TEXT(HOLDER_2),
		.value = TEXT(VALUE_2),
		.hosts = LIST(SPAN("*.b.example"), SPAN("a.example")),
		.in = SBX_HTTP_IN_ALL,
	},
	{
		/* Its value begins as the second one's. */
		.name = TEXT("THREE"),
		.placeholder = TEXT("sbx-placeholder-b"),
		.value = TEXT("second-value-2+and-more"),
		.hosts = LIST(SPAN("a.example")),
		.in = SBX_HTTP_IN_HEADER,
	},
};
static const struct sbx_http_rules rules = { .id = ID, .n_secrets = 3, .secrets = secrets };

struct output {
	char text[4096];
	size_t n;
	int result;	/* of the sink */
	size_t n_calls; /* before it fails */
};

static int collect(void *userdata, struct sbx_span out)
{
	struct output *o = userdata;

	assert_true(out.n > 0);
	if (o->result && !o->n_calls--)
		return o->result;
	assert_true(out.n < sizeof(o->text) - o->n);
	memcpy(o->text + o->n, out.p, out.n);
	o->n += out.n;
	o->text[o->n] = '\0';
	return 0;
}

/* Feeds a copy of exactly its size. */
static int feed(struct sbx_swap *s, const char *p, size_t n, bool end, struct output *o,
		struct sbx_http_verdict *v)
{
	uint8_t *copy = malloc(n ? n : 1);
	int r;

	memcpy(copy, p, n);
	r = sbx_swap_feed(s, sbx_span(copy, n), end, collect, o, v);
	memset(copy, 'X', n);
	free(copy);
	return r;
}

enum kind { REQUEST, REQUEST_JSON, REQUEST_FORM, RESPONSE };

static struct sbx_swap *make(enum kind kind, const char *host)
{
	static const uint8_t forms[] = { SBX_HTTP_FORM_OTHER, SBX_HTTP_FORM_JSON,
					 SBX_HTTP_FORM_URLENCODED };
	struct sbx_http_rewritten w = { .request = request("POST", "/"), .in_body = 3 };
	struct sbx_swap *s = NULL;

	if (kind == RESPONSE) {
		assert_int_equal(sbx_swap_new_response(&rules, host, &s), 0);
		return s;
	}
	if (strcmp(host, "a.example") != 0)
		w.in_body = 0;
	w.body_form = forms[kind];
	assert_int_equal(sbx_swap_new_request(&rules, &w, host, &s), 0);
	return s;
}

/* Fed with cuts at @a and @b, and an end of its own when @late. */
static int run(enum kind kind, const char *host, const char *in, size_t a, size_t b, bool late,
	       struct output *o, struct sbx_http_verdict *v)
{
	struct sbx_swap *s = make(kind, host);
	size_t n = strlen(in);
	int r;

	*o = (struct output){ 0 };
	assert_non_null(s);
	r = feed(s, in, a, false, o, v);
	r = r ? r : feed(s, in + a, b - a, false, o, v);
	r = r ? r : feed(s, in + b, n - b, !late, o, v);
	if (!r && late)
		r = feed(s, "", 0, true, o, v);
	sbx_swap_free(s);
	return r;
}

static int run_bytes(enum kind kind, const char *host, const char *in, struct output *o,
		     struct sbx_http_verdict *v)
{
	struct sbx_swap *s = make(kind, host);
	int r = 0;

	*o = (struct output){ 0 };
	for (size_t i = 0; in[i] && !r; i++)
		r = feed(s, in + i, 1, false, o, v);
	r = r ? r : feed(s, "", 0, true, o, v);
	sbx_swap_free(s);
	return r;
}

static struct output whole;
static struct sbx_http_verdict verdict;

/* Whole, byte by byte, and with every two cuts: one outcome. */
static int swap(enum kind kind, const char *host, const char *in)
{
	size_t n = strlen(in);
	int r = run(kind, host, in, 0, 0, false, &whole, &verdict);
	struct sbx_http_verdict v;
	struct output o;

	assert_int_equal(run_bytes(kind, host, in, &o, &v), r);
	assert_string_equal(o.text, whole.text);
	for (size_t a = 0; a <= n; a++) {
		for (size_t b = a; b <= n; b++) {
			assert_int_equal(run(kind, host, in, a, b, b & 1, &o, &v), r);
			assert_string_equal(o.text, whole.text);
		}
	}
	return r;
}

static void test_requests(void **state)
{
	static const struct {
		enum kind kind;
		const char *in, *out;
	} cases[] = {
		{ REQUEST, "", "" },
		{ REQUEST, "nothing", "nothing" },
		{ REQUEST, HOLDER_1, VALUE_1 },
		{ REQUEST, "a" HOLDER_1 "b" HOLDER_2, "a" VALUE_1 "b" VALUE_2 },
		{ REQUEST, HOLDER_1 HOLDER_1 HOLDER_2, VALUE_1 VALUE_1 VALUE_2 },
		/* A beginning that goes on otherwise. */
		{ REQUEST, "sbx-sbx-placeholder-" HOLDER_2, "sbx-sbx-placeholder-" VALUE_2 },
		{ REQUEST, "sbx-placeholder-aaaaaaaaaaaaaaaa", "sbx-placeholder-aaaaaaaaaaaaaaaa" },
		{ REQUEST, "sbx-placeholder-aaaaaaaaaaaaaaaa3",
		  "sbx-placeholder-aaaaaaaaaaaaaaaa3" },
		{ REQUEST_JSON, "{\"a\":\"" HOLDER_1 "\"}", "{\"a\":\"gh \\\"p/\\\\+&=%1\"}" },
		{ REQUEST_FORM, "a=" HOLDER_1 "&b=" HOLDER_2,
		  "a=gh%20%22p%2F%5C%2B%26%3D%251&b=" VALUE_2 },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		assert_int_equal(swap(cases[i].kind, "a.example", cases[i].in), 0);
		assert_string_equal(whole.text, cases[i].out);
	}
}

/* The bytes before it may be out; it is not, and nothing behind it. */
static void test_refused(void **state)
{
	static const struct {
		enum kind kind;
		const char *host, *in, *before, *name, *says;
		enum sbx_reason reason;
	} cases[] = {
		{ REQUEST, "c.example", "a " HOLDER_1 " b", "a ", "'ONE'", "c.example",
		  SBX_REASON_SECRET_MISDIRECTED },
		{ REQUEST, "c.example", HOLDER_2, "", "'TWO'", "*.b.example",
		  SBX_REASON_SECRET_MISDIRECTED },
		{ REQUEST, "a.example", HOLDER_2 "sbx-placeholder-b", VALUE_2, "'THREE'", "'in'",
		  SBX_REASON_SECRET_MISDIRECTED },
		{ REQUEST, "a.example", "x" VALUE_1 "y", "x", "'ONE'", "real value",
		  SBX_REASON_SECRET_DETECTED },
		{ REQUEST_JSON, "a.example", "\"gh \\\"p/\\\\+&=%1\"", "\"", "'ONE'", "real value",
		  SBX_REASON_SECRET_DETECTED },
		{ REQUEST_FORM, "a.example", "a=gh%20%22p%2F%5C%2B%26%3D%251", "a=", "'ONE'",
		  "real value", SBX_REASON_SECRET_DETECTED },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		assert_int_equal(swap(cases[i].kind, cases[i].host, cases[i].in),
				 SBX_SWAP_E_REFUSED);
		assert_string_equal(whole.text, cases[i].before);
		assert_int_equal(verdict.reason, cases[i].reason);
		assert_int_equal(verdict.status, 403);
		assert_non_null(strstr(verdict.text, cases[i].name));
		assert_non_null(strstr(verdict.text, cases[i].says));
		assert_null(strstr(verdict.text, VALUE_1));
	}
	/* Not detected: the second secret does not ask for it. */
	assert_int_equal(swap(REQUEST, "a.example", VALUE_2), 0);
}

static void test_responses(void **state)
{
	static const struct {
		const char *host, *in, *out;
	} cases[] = {
		{ "a.example", VALUE_1, HOLDER_1 },
		{ "a.example", "a" VALUE_1 VALUE_2 "b", "a" HOLDER_1 HOLDER_2 "b" },
		{ "a.example", "gh \\\"p/\\\\+&=%1", HOLDER_1 },
		{ "a.example", "gh \\\"p\\/\\\\+&=%1", HOLDER_1 },
		{ "a.example", "?gh%20%22p%2F%5C%2B%26%3D%251&", "?" HOLDER_1 "&" },
		{ "a.example", "?gh%20%22p%2f%5c%2b%26%3d%251&", "?" HOLDER_1 "&" },
		{ "a.example", "/gh%20%22p/%5C%2B%26%3D%251/", "/" HOLDER_1 "/" },
		{ "a.example", "gh \\\"p/\\\\+\\u0026=%1", HOLDER_1 },
		{ "a.example", "gh \\\"p/\\\\+\\u0026\\u003d%1", HOLDER_1 },
		{ "a.example", "gh \\u0022p/\\\\\\u002B\\u0026=%1", HOLDER_1 },
		/* The longest of those that begin at one place. */
		{ "a.example", VALUE_2 "+and-more", "sbx-placeholder-b" },
		{ "a.example", VALUE_2 "%2Band-more", "sbx-placeholder-b" },
		{ "a.example", VALUE_2 "+and-mor", HOLDER_2 "+and-mor" },
		{ "a.example", VALUE_2 "+and-mor" VALUE_2, HOLDER_2 "+and-mor" HOLDER_2 },
		{ "a.example", HOLDER_1, HOLDER_1 },
		/* Only the host's own. */
		{ "x.b.example", VALUE_1 VALUE_2, VALUE_1 HOLDER_2 },
		{ "x.b.example", "second-second-value-2second-value-",
		  "second-" HOLDER_2 "second-value-" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		char *text;
		size_t n;
		struct sbx_swap *s = make(RESPONSE, cases[i].host);

		assert_int_equal(swap(RESPONSE, cases[i].host, cases[i].in), 0);
		assert_string_equal(whole.text, cases[i].out);
		assert_int_equal(sbx_swap_text(s, sbx_span_str(cases[i].in), &text, &n), 0);
		assert_int_equal(n, strlen(cases[i].out));
		if (!strcmp(cases[i].in, cases[i].out))
			assert_null(text);
		else
			assert_memory_equal(text, cases[i].out, n);
		free(text);
		sbx_swap_free(s);
	}
	assert_null(make(RESPONSE, "c.example"));
}

/* base64 of either alphabet, behind no, one and two other bytes. */
static void test_base64(void **state)
{
	static const char *const in[] = { "Pj4/Pj4/YWJj",   "Pj4_Pj4_YWJj",    "YT4+Pz4+P2FiYw==",
					  "YT4-Pz4-P2FiYw", "YWE+Pj8+Pj9hYmM", "YWE-Pj8-Pj9hYmM" };
	struct sbx_span value = secrets[1].value;

	(void)state;
	secrets[1].value = TEXT(">>?>>?abc");
	for (size_t i = 0; i < SBX_N_ELEMENTS(in); i++) {
		assert_int_equal(swap(RESPONSE, "x.b.example", in[i]), 0);
		assert_null(strstr(whole.text, in[i] + 4));
		assert_true(whole.n > strlen(in[i]));
	}
	secrets[1].value = value;
}

/* The value before a rotation, in all forms. */
static void test_before(void **state)
{
	(void)state;
	secrets[1].before = TEXT("old/value+");
	assert_int_equal(swap(RESPONSE, "x.b.example",
			      "old/value+ old%2Fvalue%2B old%2fvalue%2b old\\/value+ " VALUE_2),
			 0);
	assert_string_equal(whole.text,
			    HOLDER_2 " " HOLDER_2 " " HOLDER_2 " " HOLDER_2 " " HOLDER_2);
	secrets[1].before = (struct sbx_span){ 0 };
}

/* How many bytes of @guess behind some others come out before anything follows it. */
static size_t n_out(enum kind kind, const char *guess, size_t n_guess, size_t n_before)
{
	struct sbx_swap *s = make(kind, "a.example");
	struct output o = { 0 };
	char text[512];

	memset(text, 'x', n_before);
	memcpy(text + n_before, guess, n_guess);
	assert_int_equal(feed(s, text, n_before, false, &o, &verdict), 0);
	assert_int_equal(feed(s, text + n_before, n_guess, false, &o, &verdict), 0);
	sbx_swap_free(s);
	return o.n;
}

/* A client whose guesses come back sees nothing of a value, however much of it they have. */
static void test_no_oracle(void **state)
{
	static const char *const values[] = {
		VALUE_1, "gh \\\"p/\\\\+&=%1", "gh%20%22p%2F%5C%2B%26%3D%251",
		VALUE_2, VALUE_2 "+and-more",  "Z2ggInAvXCsmPSUx"
	};
	static const enum kind kinds[] = { RESPONSE, REQUEST, REQUEST_JSON, REQUEST_FORM };
	static const char wrong[] = "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~";

	(void)state;
	for (size_t k = 0; k < SBX_N_ELEMENTS(kinds); k++)
		for (size_t i = 0; i < SBX_N_ELEMENTS(values); i++)
			for (size_t n = 0; n < strlen(values[i]); n++)
				for (size_t n_before = 0; n_before < 200; n_before += 7)
					assert_int_equal(n_out(kinds[k], values[i], n, n_before),
							 n_out(kinds[k], wrong, n, n_before));
}

/* As much is held for short values as for long ones, and nothing behind the end of a line. */
static void test_held(void **state)
{
	static const char line[] = "data: 1\n\n", tail[] = "data: 2\n\tsecond-val";
	char text[100];
	struct output o = { 0 };
	struct sbx_swap *s = make(RESPONSE, "a.example");

	(void)state;
	assert_int_equal(feed(s, line, strlen(line), false, &o, &verdict), 0);
	assert_string_equal(o.text, line);
	o.n = 0;
	assert_int_equal(feed(s, tail, strlen(tail), false, &o, &verdict), 0);
	assert_string_equal(o.text, "data: 2\n");
	assert_int_equal(feed(s, "ue-2", 4, false, &o, &verdict), 0);
	assert_string_equal(o.text, "data: 2\n");
	assert_int_equal(feed(s, "\r", 1, false, &o, &verdict), 0);
	assert_string_equal(o.text, "data: 2\n\t" HOLDER_2 "\r");
	sbx_swap_free(s);

	memset(text, 'x', sizeof(text));
	for (size_t n = 6; n < 60; n++) {
		secrets[1].value = sbx_span(text, n);
		secrets[1].before = TEXT(VALUE_2);
		s = make(RESPONSE, "x.b.example");
		o = (struct output){ 0 };
		assert_int_equal(feed(s,
				      "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"
				      "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~",
				      100, false, &o, &verdict),
				 0);
		/* base64 is a third longer */
		assert_int_equal(o.n, n <= 48 ? 100 - 64 : 0);
		sbx_swap_free(s);
	}
	secrets[1].value = TEXT(VALUE_2);
	secrets[1].before = (struct sbx_span){ 0 };
}

/* --- messages --- */

#define MESSAGES                                                                                   \
	"\0\0\0\0\020a " VALUE_2 "\0\0\0\0\0"                                                      \
	"\001\0\0\0\003sec"
#define SWAPPED                                                                                    \
	"\0\0\0\0\020a " HOLDER_2 "\0\0\0\0\0"                                                     \
	"\001\0\0\0\003sec"

/* However they are cut, nothing of a whole message is held. */
static void test_by_message(void **state)
{
	static const char in[] = MESSAGES, out[] = SWAPPED;
	const size_t n = sizeof(in) - 1, n_first = 5 + 16, n_first_out = 5 + 2 + strlen(HOLDER_2);

	(void)state;
	secrets[1].in = SBX_HTTP_IN_HEADER;
	for (size_t step = 1; step <= n; step++) {
		struct sbx_swap *s = make(RESPONSE, "x.b.example");
		struct output o = { 0 };

		sbx_swap_set_type(s, TEXT("Application/gRPC+proto"));
		for (size_t i = 0; i < n; i += step) {
			assert_int_equal(
				feed(s, in + i, step < n - i ? step : n - i, false, &o, &verdict),
				0);
			if (i + step >= n_first)
				assert_true(o.n >= n_first_out);
		}
		assert_int_equal(o.n, sizeof(out) - 1);
		assert_memory_equal(o.text, out, o.n);
		assert_int_equal(feed(s, "\0\0\0\0\377abc", 8, false, &o, &verdict), 0);
		assert_int_equal(feed(s, VALUE_2, strlen(VALUE_2), true, &o, &verdict), 0);
		assert_int_equal(o.n, sizeof(out) - 1 + 8 + strlen(HOLDER_2));
		sbx_swap_free(s);
	}
	secrets[1].in = SBX_HTTP_IN_ALL;
}

/* A client that has a value put into a query or a body, which the server sends back, could have a
 * message end within it. */
static void test_client_messages(void **state)
{
	static const char in[] = "\0\0\0\0\005" VALUE_2;
	static const uint8_t places[] = { SBX_HTTP_IN_QUERY, SBX_HTTP_IN_BODY, SBX_HTTP_IN_ALL };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(places); i++) {
		struct output o = { 0 };
		struct sbx_swap *s;

		secrets[1].in = places[i];
		s = make(RESPONSE, "x.b.example");
		sbx_swap_set_type(s, TEXT("application/grpc"));
		assert_int_equal(feed(s, in, sizeof(in) - 1, true, &o, &verdict), 0);
		assert_int_equal(o.n, 5 + strlen(HOLDER_2));
		assert_memory_equal(o.text + 5, HOLDER_2, strlen(HOLDER_2));
		sbx_swap_free(s);
	}
	secrets[1].in = SBX_HTTP_IN_ALL;
}

/* Bytes that are no message are swapped as any others. */
static void test_no_message(void **state)
{
	static const char in[] = "{\"\": \"\0\0\0\0\003sec" VALUE_2;
	struct sbx_swap *s;
	struct output o = { 0 };

	(void)state;
	secrets[1].in = SBX_HTTP_IN_HEADER;
	s = make(RESPONSE, "x.b.example");
	sbx_swap_set_type(s, TEXT("Application/gRPC+proto"));
	assert_int_equal(feed(s, in, sizeof(in) - 1, false, &o, &verdict), 0);
	assert_memory_equal(o.text, in, o.n);
	assert_int_equal(feed(s, "", 0, true, &o, &verdict), 0);
	assert_int_equal(o.n, sizeof(in) - 1 - strlen(VALUE_2) + strlen(HOLDER_2));
	sbx_swap_free(s);
	secrets[1].in = SBX_HTTP_IN_ALL;
}

static void test_nothing(void **state)
{
	static const struct sbx_http_rules none = { .id = ID };
	struct sbx_http_rewritten w = { .request = request("POST", "/") };
	struct sbx_swap *s = (void *)1;
	char *text = (void *)1;
	size_t n;

	(void)state;
	assert_int_equal(sbx_swap_new_request(&none, &w, "a.example", &s), 0);
	assert_null(s);
	assert_int_equal(sbx_swap_new_response(&none, "a.example", &s), 0);
	assert_null(s);
	assert_int_equal(sbx_swap_text(NULL, TEXT("a"), &text, &n), 0);
	assert_null(text);
	assert_null(sbx_swap_free(NULL));
}

static void test_keeps_length(void **state)
{
	struct sbx_swap *s = make(REQUEST, "a.example");

	(void)state;
	assert_false(sbx_swap_keeps_length(s));
	sbx_swap_free(s);
	/* A string that stops the stream changes no length. */
	s = make(REQUEST, "c.example");
	assert_true(sbx_swap_keeps_length(s));
	sbx_swap_free(s);
	secrets[1].value = TEXT("same-length-as-the-placeholder-00");
	assert_int_equal(secrets[1].value.n, secrets[1].placeholder.n);
	s = make(RESPONSE, "x.b.example");
	assert_true(sbx_swap_keeps_length(s));
	sbx_swap_free(s);
	secrets[1].value = TEXT("same-length-as-the-placeholder-0+");
	s = make(RESPONSE, "x.b.example");
	assert_false(sbx_swap_keeps_length(s));
	sbx_swap_free(s);
	secrets[1].value = TEXT(VALUE_2);
}

/* The secret key of an AWS pair, alone and in the pair. */
static void test_pair(void **state)
{
	(void)state;
	secrets[1].inject = SBX_HTTP_INJECT_AWS_SIGV4;
	secrets[1].value = TEXT("KEYID:secretkey");
	assert_int_equal(swap(RESPONSE, "x.b.example", "KEYID:secretkey,KEYID,secretkey."), 0);
	assert_string_equal(whole.text, "KEYID:" HOLDER_2 ",KEYID," HOLDER_2 ".");
	secrets[1].inject = SBX_HTTP_INJECT_PLACEHOLDER;
	secrets[1].value = TEXT(VALUE_2);
}

/* A value one byte too short to be looked for. */
static void test_short(void **state)
{
	(void)state;
	secrets[1].value = TEXT("abcde");
	assert_null(make(RESPONSE, "x.b.example"));
	secrets[1].value = TEXT("abcdef");
	assert_int_equal(swap(RESPONSE, "x.b.example", "abcabcdefabcde"), 0);
	assert_string_equal(whole.text, "abc" HOLDER_2 "abcde");
	secrets[1].value = TEXT(VALUE_2);
}

static void test_sink_fails(void **state)
{
	(void)state;
	for (size_t n_calls = 0; n_calls < 3; n_calls++) {
		struct sbx_swap *s = make(REQUEST, "a.example");
		struct output o = { .result = -EPIPE, .n_calls = n_calls };

		assert_int_equal(
			feed(s, "a" HOLDER_1 "b", sizeof(HOLDER_1) + 1, true, &o, &verdict),
			-EPIPE);
		sbx_swap_free(s);
	}
}

static void test_allocations(void **state)
{
	struct sbx_http_rewritten w = { .request = request("POST", "/"),
					.in_body = 1,
					.body_form = SBX_HTTP_FORM_JSON };
	struct sbx_swap *s;
	size_t n_failed = 0, n;
	char *text;
	int r;

	(void)state;
	for (size_t k = 1; (fail_at = k, r = sbx_swap_new_request(&rules, &w, "a.example", &s));
	     k++) {
		assert_int_equal(r, -ENOMEM);
		assert_null(s);
		n_failed++;
	}
	fail_at = 0;
	sbx_swap_free(s);
	for (size_t k = 1; (fail_at = k, r = sbx_swap_new_response(&rules, "a.example", &s)); k++) {
		assert_int_equal(r, -ENOMEM);
		assert_null(s);
		n_failed++;
	}
	fail_at = 1;
	assert_int_equal(sbx_swap_text(s, TEXT(VALUE_1), &text, &n), -ENOMEM);
	fail_at = 0;
	sbx_swap_free(s);
	assert_true(n_failed > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_responses),
		cmocka_unit_test(test_before),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_no_oracle),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_by_message),
		cmocka_unit_test(test_client_messages),
		cmocka_unit_test(test_no_message),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_keeps_length),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_sink_fails),
		cmocka_unit_test(test_allocations),
	};

	return cmocka_run_group_tests_name("swap", tests, NULL, NULL);
}
