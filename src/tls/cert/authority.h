/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_CERT_AUTHORITY_H
#define SBX_TLS_CERT_AUTHORITY_H

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stddef.h>
#include <stdint.h>

#include "http/rules.h"

/*
 * The sandbox's own certificate authority: made when sbx-tls starts, known to this sandbox alone,
 * gone with the process. Its certificate is constrained to the names of the rules' entries (RFC
 * 5280 section 4.2.1.10).
 */
#define SBX_N_LEAF_EXTENSIONS 4
struct sbx_authority {
	EVP_PKEY *key; /* ECDSA P-256, in OpenSSL's locked heap */
	X509 *cert;
	EVP_PKEY *leaf_key; /* of all leaves */
	X509_EXTENSION *leaf_extensions[SBX_N_LEAF_EXTENSIONS]; /* that all leaves share */
};

/* Makes keys and certificate. 0, or -EIO with OpenSSL's error queue set. sbx_authority_fini()
 * accepts what is half made. */
int sbx_authority_init(struct sbx_authority *a, const struct sbx_http_rules *rules);
void sbx_authority_fini(struct sbx_authority *a);

/* A new certificate for the normalised name @host, valid for SBX_LEAF_HOURS. NULL: failed. */
#define SBX_LEAF_HOURS 24
X509 *sbx_authority_mint(const struct sbx_authority *a, const char *host);

/* The certificate as PEM, malloc'ed. 0 or -EIO. */
int sbx_authority_pem(const struct sbx_authority *a, char **ret, size_t *ret_n);

/* A PKCS#12 store for Java with the certificates of @bundle (PEM) and the authority's, all trusted:
 * without encryption or MAC, because nothing in it is secret and Java's default password is public.
 * malloc'ed. 0 or -EIO. */
int sbx_authority_java_store(const struct sbx_authority *a, struct sbx_span bundle, uint8_t **ret,
			     size_t *ret_n);

#endif
