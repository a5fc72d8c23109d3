/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tls/cert/own_certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>

/* OpenSSL would ask on the terminal. */
static int no_passphrase(char *buf, int n, int writing, void *userdata)
{
	(void)buf;
	(void)n;
	(void)writing;
	(void)userdata;
	return -1;
}

/* The certificates that follow the first are its chain. */
static bool add_chain(BIO *cert, SSL *ssl)
{
	bool ok = true;

	for (X509 *next; ok && (next = PEM_read_bio_X509(cert, NULL, NULL, NULL));) {
		ok = SSL_add1_chain_cert(ssl, next) == 1;
		X509_free(next);
	}
	return ok;
}

const char *sbx_own_certificate_use(const struct sbx_http_entry *e, SSL *ssl)
{
	BIO *cert = BIO_new_mem_buf(e->cert.p, (int)e->cert.n);
	BIO *key = BIO_new_mem_buf(e->key.p, (int)e->key.n);
	X509 *x = cert ? PEM_read_bio_X509(cert, NULL, NULL, NULL) : NULL;
	EVP_PKEY *k = key ? PEM_read_bio_PrivateKey(key, NULL, no_passphrase, NULL) : NULL;
	const char *why = NULL;

	if (!x || SSL_use_certificate(ssl, x) != 1)
		why = "the file of the client certificate has none that can be used";
	else if (!k)
		why = "the file of its key has none that can be read; one with a passphrase cannot";
	else if (X509_check_private_key(x, k) != 1 || SSL_use_PrivateKey(ssl, k) != 1)
		why = "the key does not belong to the client certificate";
	else if (!add_chain(cert, ssl))
		why = "the chain of the client certificate cannot be used";
	ERR_clear_error();
	X509_free(x);
	EVP_PKEY_free(k);
	BIO_free(cert);
	BIO_free(key);
	return why;
}

const char *sbx_own_certificate_judge(const struct sbx_http_entry *e)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = ctx ? SSL_new(ctx) : NULL;
	const char *why = ssl ? sbx_own_certificate_use(e, ssl) : "out of memory";

	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return why;
}
