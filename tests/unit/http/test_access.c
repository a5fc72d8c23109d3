/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests under each access of an entry: each refusal beside its allowed twin. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/http/world.h"

static struct sbx_http_verdict verdict;

/* "allow", or "status reason". */
static const char *judge_request(const struct sbx_http_entry *e, const struct sbx_http_request *r)
{
	static char text[64];

	memset(&verdict, 0xff, sizeof(verdict));
	if (sbx_http_judge_access(e, "a.example", r, &verdict)) {
		assert_int_equal(verdict.reason, SBX_REASON_LIST_ALLOW);
		assert_string_equal(verdict.text, "");
		return "allow";
	}
	assert_true(verdict.reason != SBX_REASON_LIST_ALLOW);
	/* Every text names the host and the entry. */
	assert_non_null(strstr(verdict.text, "a.example"));
	assert_non_null(strstr(verdict.text, "entry 'entry-text'"));
	snprintf(text, sizeof(text), "%d %s", verdict.status, sbx_reason_str(verdict.reason));
	return text;
}

struct form {
	const char *method, *target, *header, *value;
	enum { NO_BODY, EMPTY, LENGTH_5, CHUNKED } body;
	const char *upgrade;
};

#define ASK(m, ...)                                                                                \
	{                                                                                          \
		.method = (m), __VA_ARGS__                                                         \
	}

static const char *judge(const struct sbx_http_entry *e, struct form f)
{
	struct sbx_http_request r = request(f.method, f.target);

	r.has_body = f.body != NO_BODY;
	r.has_length = f.body == EMPTY || f.body == LENGTH_5;
	r.length = f.body == LENGTH_5 ? 5 : 0;
	r.upgrade = f.upgrade != NULL;
	if (f.upgrade)
		r.upgrade_to = sbx_span_str(f.upgrade);
	if (f.header)
		add_header(&r, f.header, f.value);
	return judge_request(e, &r);
}

struct judged_case {
	struct form form;
	const char *want;
};

static void check(const struct sbx_http_entry *e, const struct judged_case *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_string_equal(judge(e, c[i].form), c[i].want);
}

#define METHOD	"403 access_method"
#define BODY	"403 request_body"
#define PATH	"403 access_path"
#define ODD	"400 path_ambiguous"
#define UPGRADE "403 http_upgrade"

static void test_any(void **state)
{
	static const struct sbx_http_entry any = { .text = TEXT("entry-text") };
	static const struct judged_case cases[] = {
		{ ASK("GET", "/"), "allow" },
		{ ASK("POST", "/a//../b%2f", .body = CHUNKED), "allow" },
		{ ASK("PURGE", "*"), "allow" },
		{ ASK("TRACE", "/"), "405 access_method" },
		{ ASK("trace", "/"), "405 access_method" },
		{ ASK("TRACER", "/"), "allow" },
		{ ASK("CONNECT", "a.example:443"), "405 access_method" },
		{ ASK("POST", "/", "X-HTTP-Method-Override", "PUT"), "allow" },
		{ ASK("GET", "/", .upgrade = "websocket"), UPGRADE },
		{ ASK("GET", "/", .upgrade = ""), UPGRADE },
	};

	(void)state;
	check(&any, cases, SBX_N_ELEMENTS(cases));
}

static void test_websocket(void **state)
{
	struct sbx_http_entry e = { .text = TEXT("entry-text"), .websocket = 1 };
	static const struct judged_case cases[] = {
		{ ASK("GET", "/", .upgrade = "websocket"), "allow" },
		{ ASK("GET", "/", .upgrade = "WebSocket"), "allow" },
		{ ASK("GET", "/", .upgrade = "h2c"), UPGRADE },
		{ ASK("GET", "/", .upgrade = ""), UPGRADE },
		{ ASK("GET", "/", .upgrade = "websocket, h2c"), UPGRADE },
		{ ASK("POST", "/", .upgrade = "websocket"), UPGRADE },
		{ ASK("get", "/", .upgrade = "websocket"), UPGRADE },
	};

	(void)state;
	check(&e, cases, SBX_N_ELEMENTS(cases));
	e.access = SBX_HTTP_ACCESS_READ_ONLY;
	assert_string_equal(judge(&e, cases[0].form), UPGRADE);
}

static void test_read_only(void **state)
{
	static const struct sbx_http_entry e = { .text = TEXT("entry-text"),
						 .access = SBX_HTTP_ACCESS_READ_ONLY };
	static const struct judged_case cases[] = {
		{ ASK("GET", "/simple/x/?a=//"), "allow" },
		{ ASK("HEAD", "/"), "allow" },
		{ ASK("OPTIONS", "*"), "allow" },
		{ ASK("POST", "/"), METHOD },
		{ ASK("DELETE", "/"), METHOD },
		{ ASK("get", "/"), METHOD },
		{ ASK("PROPFIND", "/"), METHOD },
		{ ASK("GET", "/", .body = EMPTY), "allow" },
		{ ASK("GET", "/", .body = LENGTH_5), BODY },
		{ ASK("GET", "/", .body = CHUNKED), BODY },
		{ ASK("OPTIONS", "/", .body = CHUNKED), BODY },
		{ ASK("GET", "/", .upgrade = "websocket"), UPGRADE },
		{ ASK("GET", "/", "X-Http-Method-Override", "PUT"), METHOD },
		{ ASK("GET", "/", "x_http_method_override", "PUT"), METHOD },
		{ ASK("GET", "/", "X-HTTP-Method", "PUT"), METHOD },
		{ ASK("GET", "/", "X_HTTP_Method", "PUT"), METHOD },
		{ ASK("GET", "/", "x-method-override", "PUT"), METHOD },
		{ ASK("GET", "/", "x-method", "PUT"), "allow" },
		{ ASK("GET", "/", "xahttp-method-override", "PUT"), "allow" },
		{ ASK("GET", "/", "x_http_method_over_ide", "PUT"), "allow" },
		{ ASK("GET", "/", "X-HTTP-METHOD-OVERRIDE", "PUT"), METHOD },
		{ ASK("GET", "/", "x-method-overrides", "PUT"), "allow" },
		{ ASK("GET", "/a/../b"), ODD },
		{ ASK("GET", "/a/..b"), "allow" },
		{ ASK("GET", "/", "X-Original-URL", "/b"), METHOD },
		{ ASK("GET", "/", "x_rewrite_url", "/b"), METHOD },
		{ ASK("GET", "/?a=b&_method=PUT"), METHOD },
		{ ASK("GET", "/?%5fmethod=PUT"), METHOD },
		{ ASK("GET", "/?_method"), METHOD },
		{ ASK("GET", "/?payment_method=_method"), "allow" },
		/* PHP drops spaces before a name and what is behind a NUL, and makes '_' of dots
		 * and spaces. */
		{ ASK("GET", "/?a=b&.method=DELETE"), METHOD },
		{ ASK("GET", "/?a=b&%2emethod=DELETE"), METHOD },
		{ ASK("GET", "/?%20_method=DELETE"), METHOD },
		{ ASK("GET", "/?+++++++++++++++%20%20%20%20%20%20%20%20+.method=DELETE"), METHOD },
		{ ASK("GET", "/?_method%00aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=DELETE"), METHOD },
		{ ASK("GET", "/?_method+=DELETE"), "allow" },
		{ ASK("GET", "/?a.method=DELETE"), "allow" },
		{ ASK("GET", "/?_HttpMethod=PATCH"), METHOD }, /* Salesforce */
		{ ASK("GET", "/?X-HTTP-Method-Override=PATCH"), METHOD },
		{ ASK("GET", "/?x-http-method-overrides=PATCH"), "allow" },
		{ ASK("GET", "/?a?_method=PUT"), "allow" },
		/* npm asks so for the packages of a scope. */
		{ ASK("GET", "/@a%2fb"), "allow" },
		{ ASK("PUT", "/@a%2fb"), METHOD },
		{ ASK("GET", "/a%2f..%2fb"), ODD },
		{ ASK("GET", "/a%2f/b"), ODD },
		{ ASK("GET", "/a%252fb"), ODD },
		{ ASK("GET", "http://a.example/"), ODD },
	};

	(void)state;
	check(&e, cases, SBX_N_ELEMENTS(cases));
	assert_string_equal(judge(&e, (struct form)ASK("POST", "/")), METHOD);
	assert_string_equal(
		verdict.text,
		"a.example is read-only here (entry 'entry-text', access: read-only): POST "
		"is not allowed; to allow it, use a profile whose entry for the host has "
		"'access: {methods: [GET, HEAD, POST]}', or 'access: any'");
}

static void test_git(void **state)
{
	static const char type[] = "application/x-git-upload-pack-request";
	static const struct sbx_http_entry e = { .text = TEXT("entry-text"),
						 .access = SBX_HTTP_ACCESS_READ_ONLY };
	static const struct judged_case cases[] = {
		{ ASK("GET", "/a/b.git/info/refs?service=git-upload-pack"), "allow" },
		{ ASK("GET", "/a/b.git/info/refs?service=git-receive-pack"), METHOD },
		{ ASK("HEAD", "/a/b.git/info/refs?service=git-receive-pack"), METHOD },
		{ ASK("GET", "/a/b.git/info%2frefs?service=git-receive-pack"), METHOD },
		{ ASK("GET", "/a/b.git/info/refs?x&service=%67it-receive%2Dpack"), METHOD },
		{ ASK("GET", "/a/b.git/info/%72efs?service=git-receive-pack"), METHOD },
		{ ASK("GET", "/a/b.git/info/refs2?service=git-receive-pack"), "allow" },
		{ ASK("POST", "/a/b.git/git-upload-pack", "Content-Type", type, CHUNKED), "allow" },
		{ ASK("POST", "/a/b.git/git-upload-pack", "content-type", type, LENGTH_5),
		  "allow" },
		{ ASK("POST", "/a/b.git/git-upload-pac%6b", "content-type", type, LENGTH_5),
		  "allow" },
		/* The names of other things may end so, where servers have an API beside git:
		 * "/api/v4/projects/1/repository/files/git-upload-pack?content=..." */
		{ ASK("POST", "/a/b.git/git-upload-pack?a=b", "Content-Type", type, LENGTH_5),
		  METHOD },
		{ ASK("POST", "/a/b.git/git-upload-pack", "Content-Type", type, EMPTY), METHOD },
		{ ASK("POST", "/a/b.git/git-upload-pack", "Content-Type", type), METHOD },
		{ ASK("POST", "/a/b.git/git-upload-pack", .body = LENGTH_5), METHOD },
		{ ASK("POST", "/a/b.git/git-upload-pack", "Content-Type", "text/plain", LENGTH_5),
		  METHOD },
		{ ASK("PUT", "/a/b.git/git-upload-pack", "Content-Type", type, LENGTH_5), METHOD },
		{ ASK("POST", "/a/b.git/xgit-upload-pack", "Content-Type", type, LENGTH_5),
		  METHOD },
		{ ASK("POST", "/a/b.git/git-receive-pack", "Content-Type", type, LENGTH_5),
		  METHOD },
		{ ASK("POST", "/a%2fb.git/git-upload-pack", "Content-Type", type, LENGTH_5),
		  METHOD },
		{ ASK("POST", "/a/git-upload-pack/../x", "Content-Type", type, LENGTH_5), ODD },
	};
	struct sbx_http_request r = request("POST", "/a/git-upload-pack");
	static char target[11 + 8192 + 2];

	(void)state;
	check(&e, cases, SBX_N_ELEMENTS(cases));
	add_header(&r, "Content-Type", type);
	r.has_body = true;
	assert_string_equal(judge_request(&e, &r), "allow");
	add_header(&r, "Accept", "text/plain");
	assert_string_equal(judge_request(&e, &r), "allow");
	add_header(&r, "Content-Type", "text/plain");
	assert_string_equal(judge_request(&e, &r), METHOD);
	assert_string_equal(judge(&e, (struct form)ASK("POST", "/a/git-receive-pack")), METHOD);
	assert_non_null(strstr(verdict.text, "a git push is not allowed"));
	assert_string_equal(
		judge(&e, (struct form)ASK("GET", "/info/refs?service=git-receive-pack")), METHOD);
	/* A query that is too long to be searched. */
	memset(target, 'x', sizeof(target) - 1);
	memcpy(target, "/info/refs?", 11);
	target[11 + 8192] = '\0';
	assert_string_equal(judge(&e, (struct form)ASK("GET", target)), "allow");
	target[11 + 8192] = 'x';
	assert_string_equal(judge(&e, (struct form)ASK("GET", target)), METHOD);
}

static void test_listed(void **state)
{
	struct sbx_http_entry e = {
		.text = TEXT("entry-text"),
		.access = SBX_HTTP_ACCESS_LISTED,
		.methods = LIST(TEXT("GET"), TEXT("PUT")),
		.paths = LIST(TEXT("/a/"), TEXT("/b/*/c"), TEXT("/*-public/")),
	};
	static const struct judged_case both[] = {
		{ ASK("GET", "/a/x"), "allow" },
		{ ASK("PUT", "/b/x/c?d", .body = CHUNKED), "allow" },
		{ ASK("POST", "/a/x"), METHOD },
		{ ASK("HEAD", "/a/x"), METHOD },
		{ ASK("get", "/a/x"), METHOD },
		{ ASK("GET", "/b/x/d"), PATH },
		{ ASK("GET", "/%61/x"), "allow" },
		{ ASK("GET", "/b/%78/c"), "allow" },
		{ ASK("GET", "/A/x"), PATH },
		{ ASK("GET", "/a/../secret"), ODD },
		{ ASK("GET", "/a/%2e%2e/secret"), ODD },
		{ ASK("GET", "/a/..%2fsecret"), ODD },
		{ ASK("GET", "*"), PATH },
		{ ASK("GET", "/b/x;y/c;z"), PATH },
		{ ASK("GET", "/b/x;y/c"), "allow" },
		{ ASK("GET", "/private;-public/x"), PATH },
		{ ASK("GET", "/private%3b-public/x"), PATH },
		{ ASK("GET", "/my-public;-public/x"), "allow" },
		{ ASK("GET", "/a/x", "X-Method-Override", "POST"), METHOD },
	};
	static const struct judged_case methods_only[] = {
		{ ASK("GET", "/any"), "allow" },
		{ ASK("GET", "/any/../x"), ODD },
		{ ASK("POST", "/any"), METHOD },
	};

	(void)state;
	check(&e, both, SBX_N_ELEMENTS(both));
	assert_string_equal(judge(&e, both[2].form), METHOD);
	assert_non_null(strstr(verdict.text, "with GET, PUT only"));
	assert_string_equal(judge(&e, (struct form)ASK("GET", "/%62")), PATH);
	assert_non_null(strstr(verdict.text, "/a/, /b/*/c, /*-public/"));
	e.paths.n = 0;
	check(&e, methods_only, SBX_N_ELEMENTS(methods_only));
	e.paths.n = 2;
	e.methods.n = 0;
	assert_string_equal(judge(&e, (struct form)ASK("BREW", "/a/x")), "allow");
	assert_string_equal(judge(&e, (struct form)ASK("BREW", "/c")), PATH);
	assert_string_equal(judge(&e, (struct form)ASK("TRACE", "/a/x")), "405 access_method");
}

static void test_size(void **state)
{
	struct sbx_http_entry e = { .text = TEXT("entry-text"), .max_request_bytes = 5 };
	struct sbx_http_request r = request("PUT", "/");

	(void)state;
	assert_string_equal(judge(&e, (struct form)ASK("PUT", "/", .body = LENGTH_5)), "allow");
	r.length = 6;
	assert_string_equal(judge_request(&e, &r), "allow");
	r.has_length = true;
	assert_string_equal(judge_request(&e, &r), "413 request_size");
	/* Measured by the caller while it comes. */
	assert_string_equal(judge(&e, (struct form)ASK("PUT", "/", .body = CHUNKED)), "allow");
	e.max_request_bytes = 4;
	assert_string_equal(judge(&e, (struct form)ASK("PUT", "/", .body = LENGTH_5)),
			    "413 request_size");
	e.max_request_bytes = 0;
	assert_string_equal(judge(&e, (struct form)ASK("PUT", "/", .body = LENGTH_5)), "allow");
}

/* A long text is cut, and control bytes do not get into it. */
static void test_text(void **state)
{
	static char method[5000];
	struct sbx_http_entry e = { .text = TEXT("entry-text"),
				    .access = SBX_HTTP_ACCESS_READ_ONLY };
	struct sbx_http_request r = request("GET", "/");

	(void)state;
	memset(method, 'M', sizeof(method) - 1);
	r.method = sbx_span_str(method);
	assert_string_equal(judge_request(&e, &r), METHOD);
	assert_int_equal(strlen(verdict.text), sizeof(verdict.text) - 1);
	r.method = TEXT("A\r\n\x7f"
			"B");
	assert_string_equal(judge_request(&e, &r), METHOD);
	assert_non_null(strstr(verdict.text, "A???B is not allowed"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any),	  cmocka_unit_test(test_websocket),
		cmocka_unit_test(test_read_only), cmocka_unit_test(test_git),
		cmocka_unit_test(test_listed),	  cmocka_unit_test(test_size),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests_name("access", tests, NULL, NULL);
}
