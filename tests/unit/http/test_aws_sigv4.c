/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signature Version 4: Amazon's published examples, and requests that cannot be signed. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "http/aws_sigv4.h"
#include "tests/unit/http/world.h"

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
/* Of the test suite, and of S3's documentation. */
#define KEY    "AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define KEY_S3 "AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

static const char *why;

/* Signs as the client's header with @scope and @names asks; the signature, or "-" with `why`. */
static const char *sign(const char *key, const char *host, const char *scope, const char *names,
			const struct sbx_http_request *r)
{
	static char text[1024];
	struct sbx_aws_authorization a;
	struct sbx_http_block *memory = NULL;
	struct sbx_span value;
	char *signature;
	int e;

	snprintf(text, sizeof(text),
		 "AWS4-HMAC-SHA256 Credential=placeholder/%s, SignedHeaders=%s,Signature=00", scope,
		 names);
	assert_true(sbx_aws_parse(sbx_span_str(text), &a));
	why = NULL;
	e = sbx_aws_sign(&a, host, r, sbx_span_str(key), &memory, &value, &why);
	if (e) {
		assert_int_equal(e, -EINVAL);
		assert_non_null(why);
		sbx_http_memory_free(&memory);
		return "-";
	}
	{
		static char out[1024];
		char head[512];

		assert_true(value.n < sizeof(out));
		memcpy(out, value.p, value.n);
		out[value.n] = '\0';
		snprintf(head, sizeof(head),
			 "AWS4-HMAC-SHA256 Credential=%.*s/%s, SignedHeaders=%s, Signature=",
			 (int)strcspn(key, ":"), key, scope, names);
		assert_memory_equal(out, head, strlen(head));
		signature = out + strlen(head);
	}
	sbx_http_memory_free(&memory);
	return signature;
}

static const char *sign_suite(const char *names, const struct sbx_http_request *r)
{
	return sign(KEY, "example.amazonaws.com", "20150830/us-east-1/service/aws4_request", names,
		    r);
}

static const char *sign_s3(const char *names, const struct sbx_http_request *r)
{
	return sign(KEY_S3, "examplebucket.s3.amazonaws.com", "20130524/us-east-1/s3/aws4_request",
		    names, r);
}

static void test_suite(void **state)
{
	struct sbx_http_request r = request("GET", "/");

	(void)state;
	add_header(&r, "X-Amz-Date", "20150830T123600Z");
	assert_string_equal(sign_suite("host;x-amz-date", &r),
			    "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
	r.target = TEXT("/?Param2=value2&Param1=value1");
	assert_string_equal(sign_suite("host;x-amz-date", &r),
			    "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

static void test_s3(void **state)
{
	struct sbx_http_request r = request("GET", "/test.txt");

	(void)state;
	add_header(&r, "x-amz-date", "20130524T000000Z");
	add_header(&r, "x-amz-content-sha256", EMPTY_SHA256);
	add_header(&r, "Range", "bytes=0-9");
	assert_string_equal(sign_s3("host;range;x-amz-content-sha256;x-amz-date", &r),
			    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
	r.n_headers = 2;
	r.target = TEXT("/?lifecycle");
	assert_string_equal(sign_s3("host;x-amz-content-sha256;x-amz-date", &r),
			    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
	r.target = TEXT("/?max-keys=2&prefix=J");
	assert_string_equal(sign_s3("host;x-amz-content-sha256;x-amz-date", &r),
			    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
	r = request("PUT", "/test%24file.text");
	r.has_body = true;
	add_header(&r, "Date", "Fri, 24 May 2013 00:00:00 GMT");
	add_header(&r, "x-amz-date", "20130524T000000Z");
	add_header(&r, "x-amz-storage-class", "REDUCED_REDUNDANCY");
	add_header(&r, "x-amz-content-sha256",
		   "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
	assert_string_equal(
		sign_s3("date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class", &r),
		"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

/* A path that is encoded twice, repeated headers and runs of spaces; computed in Python. */
static void test_forms(void **state)
{
	struct sbx_http_request r = request("POST", "/a%20b/c%7e?a=d%2be&a=b%20c&&A");

	(void)state;
	r.has_body = r.has_length = true;
	r.length = 5;
	add_header(&r, "X-Amz-Date", "20150830T123600Z");
	add_header(&r, "X-Amz-Content-SHA256", "UNSIGNED-PAYLOAD");
	add_header(&r, "X-Two", "a  b   c");
	add_header(&r, "x-two", "d");
	assert_string_equal(sign(KEY, "example.amazonaws.com",
				 "20150830/us-east-1/execute-api/aws4_request",
				 "content-length;host;x-amz-content-sha256;x-amz-date;x-two", &r),
			    "bf680817bedd3a542aa105faf9bbace79ac15ab3934e0aefeb16476b09425aff");
}

static void test_refused(void **state)
{
	struct sbx_http_request r = request("PUT", "/a"), no_date = r;

	(void)state;
	r.has_body = true;
	add_header(&r, "X-Amz-Date", "20150830T123600Z");
	add_header(&r, "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD");
	assert_int_equal(strlen(sign_suite("host", &r)), 64);
	assert_string_equal(sign_suite("x-amz-date", &r), "-");
	assert_string_equal(sign_suite("host;x-absent", &r), "-");
	assert_string_equal(sign_suite("content-length;host", &r), "-");
	assert_string_equal(sign_suite("host", &no_date), "-");
	assert_string_equal(sign("NOCOLON", "h", "1/2/3/aws4_request", "host", &r), "-");
	assert_string_equal(sign(":x", "h", "1/2/3/aws4_request", "host", &r), "-");
	assert_string_equal(sign("x:", "h", "1/2/3/aws4_request", "host", &r), "-");
	r.target = TEXT("/a/../b");
	assert_string_equal(sign_suite("host", &r), "-");
	r.target = TEXT("/a");
	r.headers[1].value = TEXT("STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
	assert_string_equal(sign_suite("host", &r), "-");
	r.headers[1].value = TEXT("STREAMING-UNSIGNED-PAYLOAD-TRAILER");
	assert_int_equal(strlen(sign_suite("host", &r)), 64);
	r.n_headers = 1;
	assert_string_equal(sign_suite("host", &r), "-");
	r.has_body = false;
	assert_int_equal(strlen(sign_suite("host", &r)), 64);
}

static void test_parse(void **state)
{
	static const char *const bad[] = {
		"",
		"AWS4-HMAC-SHA256",
		"AWS4-HMAC-SHA256 ",
		"AWS4-ECDSA-P256-SHA256 "
		"Credential=i/d/r/s/aws4_request,SignedHeaders=h,Signature=0",
		"AWS4-HMAC-SHA256 Credential=i/d/r/s/aws4_request,SignedHeaders=h",
		"AWS4-HMAC-SHA256 Credential=i/d/r/s/aws4_request,Signature=0",
		"AWS4-HMAC-SHA256 SignedHeaders=h,Signature=0",
		"AWS4-HMAC-SHA256 Credential=i/d/r/s/aws4,SignedHeaders=h,Signature=0",
		"AWS4-HMAC-SHA256 Credential=i/d/r/aws4_request,SignedHeaders=h,Signature=0",
		"AWS4-HMAC-SHA256 Credential=/d/r/s/aws4_request,SignedHeaders=h,Signature=0",
		"AWS4-HMAC-SHA256 Credential=i/d/r/s/aws4_request,SignedHeaders=h,Signature=0,X=1",
		"AWS4-HMAC-SHA256 SignedHeaders=h,SignedHeaders=h,"
		"Credential=i/d/r/s/aws4_request,Signature=0",
	};
	struct sbx_aws_authorization a;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_false(sbx_aws_parse(sbx_span_str(bad[i]), &a));
	assert_true(sbx_aws_parse(TEXT("AWS4-HMAC-SHA256 Signature=0 , SignedHeaders=h;x ,"
				       "Credential=i/d/r/s/aws4_request"),
				  &a));
	assert_true(a.id.n == 1 && a.scope.n == 18 && a.service.p[0] == 's' &&
		    a.signed_headers.n == 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suite), cmocka_unit_test(test_s3),
		cmocka_unit_test(test_forms), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_parse),
	};

	return cmocka_run_group_tests_name("aws_sigv4", tests, NULL, NULL);
}
