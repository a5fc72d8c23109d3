/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the two SSL_CTX. */
#include "tls/conn/contexts.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

/* Mozilla's "intermediate": forward secrecy and AEAD. */
#define CIPHERS_TLS12 "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM"

static int user_index(void)
{
	static int index = -1;

	if (index < 0)
		index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	return index;
}

void *sbx_ssl_user(const SSL *ssl)
{
	return SSL_get_ex_data(ssl, user_index());
}

void sbx_ssl_set_user(SSL *ssl, void *user)
{
	SSL_set_ex_data(ssl, user_index(), user);
}

static SSL_CTX *new_ctx(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx)
		return NULL;
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_read_ahead(ctx, 1);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_cipher_list(ctx, CIPHERS_TLS12) != 1) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

SSL_CTX *sbx_contexts_server(SSL_client_hello_cb_fn hello, SSL_CTX_alpn_select_cb_func alpn)
{
	SSL_CTX *ctx = new_ctx(TLS_server_method());

	if (!ctx)
		return NULL;
	/* Tickets hold the state, so the server keeps none. */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 1);
	SSL_CTX_set_client_hello_cb(ctx, hello, NULL);
	SSL_CTX_set_alpn_select_cb(ctx, alpn, NULL);
	return ctx;
}

SSL_CTX *sbx_contexts_client(int (*session)(SSL *ssl, SSL_SESSION *session))
{
	SSL_CTX *ctx = new_ctx(TLS_client_method());

	if (!ctx)
		return NULL;
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(ctx,
				       SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, session);
	return ctx;
}

bool sbx_contexts_trust(SSL_CTX *ctx, struct sbx_span bundle)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	BIO *bio = BIO_new_mem_buf(bundle.p, (int)bundle.n);
	bool any = false;
	X509 *cert;

	while (bio && (cert = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL))) {
		any |= X509_STORE_add_cert(store, cert) == 1;
		X509_free(cert);
	}
	ERR_clear_error(); /* the end of the text is an error */
	BIO_free(bio);
	return any;
}
