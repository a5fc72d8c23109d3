/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests that wait for their body: without memory they are refused, and nothing is lost. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/http/world.h"
#include "tls/conn/whole.h"

#define AWS_ID "AKIDEXAMPLEPLACEHOLDER00"
#define SIGNED                                                                                     \
	"AWS4-HMAC-SHA256 Credential=" AWS_ID "/20150830/us-east-1/service/aws4_request, "         \
	"SignedHeaders=host;x-amz-date, Signature="                                                \
	"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"

static size_t fail_at; /* counted down; 0: none fails */
static long n_blocks;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void __wrap_free(void *p);

static bool fails(void)
{
	if (fail_at && --fail_at == 0)
		return true;
	n_blocks++;
	return false;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void __wrap_free(void *p)
{
	n_blocks -= p != NULL;
	__real_free(p);
}

/* OpenSSL, which may be in the program, does not take part. */
static void *ssl_malloc(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return __real_malloc(n);
}

static void *ssl_realloc(void *p, size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return realloc(p, n);
}

static void ssl_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	__real_free(p);
}

static struct sbx_http_secret secrets[] = {
	{ .name = TEXT("ONE"),
	  .placeholder = TEXT(HOLDER_1),
	  .value = TEXT(VALUE_2),
	  .hosts = LIST(SPAN("a.example")),
	  .in = SBX_HTTP_IN_ALL },
	{ .name = TEXT("AWS"),
	  .placeholder = TEXT(AWS_ID),
	  .value = TEXT("AKIDREAL:key-of-aws"),
	  .hosts = LIST(SPAN("a.example")),
	  .inject = SBX_HTTP_INJECT_AWS_SIGV4,
	  .in = SBX_HTTP_IN_HEADER },
};
static struct sbx_http_entry entry;
static struct sbx_tls_context ctx;

/* Rewrites a request with @body; true: it may be sent. */
static bool rewrite(const char *body, struct sbx_http_verdict *v)
{
	const struct sbx_conn c = { .ctx = &ctx, .entry = &entry, .name = "a.example" };
	struct sbx_http_request r = request("POST", "/");
	struct sbx_http_rewritten w = { 0 };
	struct sbx_whole *whole = NULL;
	uint8_t *swapped = NULL;
	bool ok = false;
	size_t n;

	ctx.rules.secrets = secrets;
	ctx.rules.n_secrets = SBX_N_ELEMENTS(secrets);
	add_header(&r, "X-Amz-Date", "20150830T123600Z");
	add_header(&r, "Authorization", SIGNED);
	r.authority = sbx_span_str("a.example");
	r.has_body = r.has_length = true;
	r.length = strlen(body);
	assert_true(sbx_http_signs_body(&ctx.rules, "a.example", &r));
	*v = (struct sbx_http_verdict){ .reason = SBX_REASON_RESOURCE, .status = 503 };
	if (sbx_whole_new(&r, NULL, 0, &whole) == 0)
		ok = sbx_whole_rewrite(&c, whole, sbx_span_str(body), &w, &swapped, &n, v);
	if (ok) {
		assert_int_equal(w.request.length, n);
		assert_int_equal(swapped != NULL, strstr(body, HOLDER_1) != NULL);
		sbx_http_rewritten_fini(&w);
	}
	free(swapped);
	sbx_whole_free(whole);
	return ok;
}

static void check(const char *body)
{
	struct sbx_http_verdict v;
	size_t n = 0;
	bool ok;

	do {
		long before = n_blocks;

		fail_at = ++n;
		ok = rewrite(body, &v);
		if (!ok) {
			assert_int_equal(fail_at, 0);
			assert_int_equal(v.reason, SBX_REASON_RESOURCE);
			assert_int_equal(v.status, 503);
		}
		assert_int_equal(n_blocks, before);
	} while (!ok);
	assert_true(n > 4);
	fail_at = 0;
}

static void test_no_memory(void **state)
{
	(void)state;
	check("abc");
	check("[" HOLDER_1 "]");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_memory) };

	if (CRYPTO_set_mem_functions(ssl_malloc, ssl_realloc, ssl_free) != 1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
