/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sandbox's authority: what OpenSSL's own verifier says about its leaves. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/hostname.h"
#include "tests/unit/http/world.h"
#include "tls/cert/authority.h"

static struct sbx_http_entry entries[] = {
	{ .host = SPAN("api.example") },
	{ .host = SPAN("*.wild.example") },
};
static const struct sbx_http_rules rules = { .id = ID,
					     .entries = entries,
					     .n_entries = SBX_N_ELEMENTS(entries) };

static struct sbx_authority authority;

static int make_authority(void **state)
{
	(void)state;
	return sbx_authority_init(&authority, &rules);
}

static int free_authority(void **state)
{
	(void)state;
	sbx_authority_fini(&authority);
	sbx_authority_fini(&authority); /* as one that was never made */
	return 0;
}

/* The verdict (X509_V_*) of a client that trusts the authority alone and expects @name. */
static int verify(X509 *leaf, const char *name)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	int r;

	assert_int_equal(X509_STORE_add_cert(store, authority.cert), 1);
	assert_int_equal(X509_STORE_CTX_init(ctx, store, leaf, NULL), 1);
	X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
	X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(ctx), name, 0);
	X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_X509_STRICT);
	r = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	return r;
}

static int mint_and_verify(const char *name, const char *expected)
{
	X509 *leaf = sbx_authority_mint(&authority, name);
	int r;

	assert_non_null(leaf);
	r = verify(leaf, expected);
	X509_free(leaf);
	return r;
}

static void test_names_inside(void **state)
{
	(void)state;
	assert_int_equal(mint_and_verify("api.example", "api.example"), X509_V_OK);
	assert_int_equal(mint_and_verify("a.wild.example", "a.wild.example"), X509_V_OK);
	assert_int_equal(mint_and_verify("a.b.wild.example", "a.b.wild.example"), X509_V_OK);
	assert_int_equal(mint_and_verify("api.example", "a.wild.example"),
			 X509_V_ERR_HOSTNAME_MISMATCH);
}

static void test_names_outside(void **state)
{
	static const char *const names[] = { "xapi.example", "example", "www.example",
					     "wild.example.org", "xwild.example" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		assert_int_equal(mint_and_verify(names[i], names[i]),
				 X509_V_ERR_PERMITTED_VIOLATION);
}

/* A leaf cannot sign another. */
static void test_leaf_is_no_authority(void **state)
{
	X509 *leaf = sbx_authority_mint(&authority, "api.example");

	(void)state;
	assert_non_null(leaf);
	assert_int_equal(X509_check_ca(leaf), 0);
	assert_int_equal(X509_check_ca(authority.cert), 1);
	assert_int_equal(X509_get_pathlen(authority.cert), 0);
	assert_int_equal(X509_get_key_usage(authority.cert), KU_KEY_CERT_SIGN);
	assert_int_equal(X509_get_key_usage(leaf), KU_DIGITAL_SIGNATURE);
	assert_int_equal(X509_get_extended_key_usage(leaf), XKU_SSL_SERVER);
	X509_free(leaf);
}

static int san_is_critical(X509 *leaf)
{
	int critical = -1;
	GENERAL_NAMES *names = X509_get_ext_d2i(leaf, NID_subject_alt_name, &critical, NULL);

	assert_non_null(names);
	assert_int_equal(sk_GENERAL_NAME_num(names), 1);
	GENERAL_NAMES_free(names);
	return critical;
}

/* A common name has at most 64 bytes: a longer name stands in the SAN alone, which is critical
 * then (RFC 5280 section 4.2.1.6). */
static void check_long(size_t n)
{
	char name[SBX_HOSTNAME_MAX + 1];
	bool fits = n <= 64;
	X509 *leaf;

	memset(name, 'a', sizeof(name));
	for (size_t i = 50; i < n; i += 50)
		name[i] = '.';
	memcpy(name + n - strlen(".wild.example"), ".wild.example", strlen(".wild.example") + 1);
	leaf = sbx_authority_mint(&authority, name);
	assert_non_null(leaf);
	assert_int_equal(X509_NAME_entry_count(X509_get_subject_name(leaf)), fits ? 1 : 0);
	assert_int_equal(san_is_critical(leaf), fits ? 0 : 1);
	assert_int_equal(verify(leaf, name), X509_V_OK);
	X509_free(leaf);
}

static void test_long_names(void **state)
{
	(void)state;
	check_long(64);
	check_long(65);
	check_long(200);
	check_long(SBX_HOSTNAME_MAX);
}

static long hours_left(const X509 *cert)
{
	int days, seconds;

	assert_int_equal(ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)), 1);
	return days * 24L + (seconds + 1800) / 3600;
}

static void test_validity(void **state)
{
	X509 *a = sbx_authority_mint(&authority, "api.example");
	X509 *b = sbx_authority_mint(&authority, "api.example");

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(hours_left(a), SBX_LEAF_HOURS);
	assert_true(hours_left(authority.cert) >= 30 * 24);
	/* clocks that are a little behind */
	assert_int_equal(X509_cmp_time(X509_get0_notBefore(a), &(time_t){ time(NULL) - 1800 }), -1);
	assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(a), X509_get0_serialNumber(b)),
			     0);
	X509_free(a);
	X509_free(b);
}

static void test_pem(void **state)
{
	SBX_AUTO_FREE char *pem = NULL;
	size_t n = 0;
	BIO *bio;
	X509 *again;

	(void)state;
	assert_int_equal(sbx_authority_pem(&authority, &pem, &n), 0);
	bio = BIO_new_mem_buf(pem, (int)n);
	again = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	assert_non_null(again);
	assert_int_equal(X509_cmp(again, authority.cert), 0);
	assert_null(PEM_read_bio_X509(bio, NULL, NULL, NULL)); /* one, and no key */
	assert_null(memmem(pem, n, "PRIVATE", 7));
	X509_free(again);
	BIO_free(bio);
}

/* The certificates in a store that has neither a MAC nor a password. */
static int count_certificates(const uint8_t *p, size_t n)
{
	PKCS12 *store = d2i_PKCS12(NULL, &p, (long)n);
	STACK_OF(PKCS7) *safes = store ? PKCS12_unpack_authsafes(store) : NULL;
	STACK_OF(PKCS12_SAFEBAG) *bags = safes ?
		PKCS12_unpack_p7data(sk_PKCS7_value(safes, 0)) : NULL;
	int n_certs = 0;

	assert_non_null(bags);
	assert_int_equal(PKCS12_mac_present(store), 0);
	assert_int_equal(sk_PKCS7_num(safes), 1);
	for (int i = 0; i < sk_PKCS12_SAFEBAG_num(bags); i++)
		n_certs += PKCS12_SAFEBAG_get_nid(sk_PKCS12_SAFEBAG_value(bags, i)) == NID_certBag;
	assert_int_equal(n_certs, sk_PKCS12_SAFEBAG_num(bags));
	sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
	sk_PKCS7_pop_free(safes, PKCS7_free);
	PKCS12_free(store);
	return n_certs;
}

static void test_java_store(void **state)
{
	SBX_AUTO_FREE char *pem = NULL;
	SBX_AUTO_FREE uint8_t *alone = NULL, *with_bundle = NULL;
	size_t n_pem, n;

	(void)state;
	assert_int_equal(sbx_authority_java_store(&authority, sbx_span("", 0), &alone, &n), 0);
	assert_int_equal(count_certificates(alone, n), 1);
	assert_int_equal(sbx_authority_pem(&authority, &pem, &n_pem), 0);
	assert_int_equal(sbx_authority_java_store(&authority, sbx_span(pem, n_pem), &with_bundle,
						  &n), 0);
	assert_int_equal(count_certificates(with_bundle, n), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_inside),
		cmocka_unit_test(test_names_outside),
		cmocka_unit_test(test_leaf_is_no_authority),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_validity),
		cmocka_unit_test(test_pem),
		cmocka_unit_test(test_java_store),
	};

	return cmocka_run_group_tests(tests, make_authority, free_authority);
}
