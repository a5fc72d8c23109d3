/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The client certificate of an entry: each problem beside the pair that is fine. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>

#include "tls/cert/own_certificate.h"

/* A PEM text; freed with its BIO. */
struct pem {
	BIO *bio;
	struct sbx_span text;
};

static struct pem pem_of(BIO *bio)
{
	char *p;
	long n = BIO_get_mem_data(bio, &p);

	return (struct pem){ bio, sbx_span(p, (size_t)n) };
}

static struct pem key_pem(EVP_PKEY *key, const char *passphrase)
{
	BIO *bio = BIO_new(BIO_s_mem());

	assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, key,
						       passphrase ? EVP_aes_128_cbc() : NULL,
						       passphrase,
						       passphrase ? (int)strlen(passphrase) : 0,
						       NULL, NULL),
			 1);
	return pem_of(bio);
}

/* Self-signed, twice: the second is a chain. */
static struct pem certificate_pem(EVP_PKEY *key)
{
	X509 *x = X509_new();
	BIO *bio = BIO_new(BIO_s_mem());

	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	assert_int_equal(X509_set_pubkey(x, key), 1);
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(PEM_write_bio_X509(bio, x), 1);
	X509_free(x);
	return pem_of(bio);
}

static void judged(struct sbx_span cert, struct sbx_span key, const char *part)
{
	const struct sbx_http_entry e = { .cert = cert, .key = key };
	const char *why = sbx_own_certificate_judge(&e);

	if (!why != !part || (why && !strstr(why, part)))
		fail_msg("'%s', not '%s'", why ? why : "fine", part ? part : "fine");
}

static void test_judge(void **state)
{
	EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256"), *rsa = EVP_RSA_gen(2048);
	struct pem cert = certificate_pem(key), good = key_pem(key, NULL);
	struct pem bad = key_pem(other, NULL), kind = key_pem(rsa, NULL);
	struct pem closed = key_pem(key, "passphrase");

	(void)state;
	judged(cert.text, good.text, NULL);
	judged(cert.text, bad.text, "the key does not belong to the client certificate");
	judged(cert.text, kind.text, "the key does not belong to the client certificate");
	judged(cert.text, closed.text, "one with a passphrase cannot");
	judged(cert.text, cert.text, "the file of its key has none");
	judged(good.text, good.text, "the file of the client certificate has none");
	judged(sbx_span_str("-----BEGIN CERTIFICATE-----\n"), good.text, "has none");
	BIO_free(cert.bio);
	BIO_free(good.bio);
	BIO_free(bad.bio);
	BIO_free(kind.bio);
	BIO_free(closed.bio);
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
	EVP_PKEY_free(rsa);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_judge) };

	return cmocka_run_group_tests_name("own_certificate", tests, NULL, NULL);
}
