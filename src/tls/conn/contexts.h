/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_CONN_CONTEXTS_H
#define SBX_TLS_CONN_CONTEXTS_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "base/span.h"

/* The settings of TLS that all connections share: towards clients, and towards servers. TLS 1.2
 * (AEAD with forward secrecy) and 1.3. */

/* Room for a pointer of the caller's in each SSL, for callbacks. */
void *sbx_ssl_user(const SSL *ssl);
void sbx_ssl_set_user(SSL *ssl, void *user);

/* @hello is called with a ClientHello, @alpn to choose the protocol (OpenSSL's signatures). NULL:
 * failed. */
SSL_CTX *sbx_contexts_server(SSL_client_hello_cb_fn hello, SSL_CTX_alpn_select_cb_func alpn);
/* @session is called with a session to keep. It trusts nobody yet. NULL: failed. */
SSL_CTX *sbx_contexts_client(int (*session)(SSL *ssl, SSL_SESSION *session));
/* Trusts the certificates of @bundle (PEM; others in it are skipped). Takes some milliseconds.
 * Returns false if there is none. */
bool sbx_contexts_trust(SSL_CTX *ctx, struct sbx_span bundle);

#endif
