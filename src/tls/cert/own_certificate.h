/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_CERT_OWN_CERTIFICATE_H
#define SBX_TLS_CERT_OWN_CERTIFICATE_H

#include <openssl/ssl.h>

#include "http/rules.h"

/* The certificate that an entry's `mtls` shows to the server, with its chain and key. */

/* Give it to @ssl, a connection to a server. NULL, or the problem: a file that OpenSSL cannot read,
 * or a key that does not belong to the certificate. */
const char *sbx_own_certificate_use(const struct sbx_http_entry *e, SSL *ssl);
/* The problem that the connections of @e will have, or NULL. */
const char *sbx_own_certificate_judge(const struct sbx_http_entry *e);

#endif
