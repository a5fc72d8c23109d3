/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the sandbox's authority and its leaves.
 *
 * All leaves share one key: what a client checks is the signature under the authority, and making a
 * key for each name would cost as much as the handshake. The key of the authority is generated in
 * OpenSSL's secure heap (locked, not dumped) and never written anywhere.
 *
 * The authority's certificate is valid as long as a sandbox can reasonably run, not for a day: a
 * process in the sandbox reads its trust store once, so a renewed certificate would never reach it.
 * Leaves are valid for a day; the cache of hosts (host_cache.c) mints new ones in time.
 *
 * OpenSSL 3.0 needs 0.4 ms to write a key of its providers into a certificate and to read it back,
 * more than all else here. A key made by the older calls is written at once, so the leaves' key is
 * one: hence OPENSSL_API_COMPAT.
 */
#define OPENSSL_API_COMPAT 0x10101000L
#include "tls/cert/authority.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hostname.h"
#include "base/text.h"

#define HOUR_S		3600L
#define AUTHORITY_HOURS (90 * 24)
#define COMMON_NAME_MAX 64 /* RFC 5280 appendix A.1, ub-common-name */

SBX_DEFINE_CLEANUP(X509, X509_free);
SBX_DEFINE_CLEANUP(BIO, BIO_free);

/* A positive serial number of 127 random bits. */
static bool set_serial(X509 *cert)
{
	uint8_t bytes[16];
	BIGNUM *bn;
	bool ok;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] = (uint8_t)((bytes[0] & 0x7f) | 0x40);
	bn = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = bn && BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert));
	BN_free(bn);
	return ok;
}

static bool add_extension(X509 *cert, X509V3_CTX *ctx, int nid, const char *value)
{
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, ctx, nid, value);
	bool ok = ext && X509_add_ext(cert, ext, -1) == 1;

	X509_EXTENSION_free(ext);
	return ok;
}

static bool set_name(X509_NAME *name, const char *text)
{
	return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const uint8_t *)text, -1, -1,
					  0) == 1;
}

/* The parts that both kinds of certificates have. */
static X509 *new_cert(EVP_PKEY *key, const char *common_name, long hours)
{
	SBX_CLEANUP(X509_freep) X509 *cert = X509_new();

	if (!cert || X509_set_version(cert, X509_VERSION_3) != 1 || !set_serial(cert) ||
	    !X509_gmtime_adj(X509_getm_notBefore(cert), -HOUR_S) ||
	    !X509_gmtime_adj(X509_getm_notAfter(cert), hours * HOUR_S) ||
	    X509_set_pubkey(cert, key) != 1 ||
	    (*common_name && !set_name(X509_get_subject_name(cert), common_name)))
		return NULL;
	return sbx_steal_ptr(&cert);
}

/* "critical,permitted;DNS:a.example,permitted;DNS:b.example". A constraint covers the name and all
 * names below it. */
static char *constraints(const struct sbx_http_rules *rules)
{
	size_t n_names = rules->n_entries + rules->n_live;
	size_t n_max = 16 + n_names * (SBX_HOSTNAME_MAX + 32), n;
	char *text = malloc(n_max);

	if (!text)
		return NULL;
	n = (size_t)snprintf(text, n_max, "critical");
	for (size_t i = 0; i < n_names; i++) {
		struct sbx_span host = i < rules->n_entries ? rules->entries[i].host :
							      rules->live[i - rules->n_entries];

		if (host.n > 2 && host.p[0] == '*') {
			host.p += 2;
			host.n -= 2;
		}
		n += (size_t)snprintf(text + n, n_max - n, ",permitted;DNS:%.*s",
				      (int)(host.n < SBX_HOSTNAME_MAX ? host.n : SBX_HOSTNAME_MAX),
				      (const char *)host.p);
	}
	return text;
}

static bool make_cert(struct sbx_authority *a, const struct sbx_http_rules *rules)
{
	SBX_AUTO_FREE char *names = constraints(rules);
	char common_name[64];
	X509V3_CTX ctx;

	sbx_text_fit(common_name, sizeof(common_name), "sbx sandbox %s", rules->id);
	a->cert = new_cert(a->key, common_name, AUTHORITY_HOURS);
	if (!a->cert || !names ||
	    X509_set_issuer_name(a->cert, X509_get_subject_name(a->cert)) != 1)
		return false;
	X509V3_set_ctx(&ctx, a->cert, a->cert, NULL, NULL, 0);
	return add_extension(a->cert, &ctx, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	       add_extension(a->cert, &ctx, NID_key_usage, "critical,keyCertSign") &&
	       add_extension(a->cert, &ctx, NID_subject_key_identifier, "hash") &&
	       add_extension(a->cert, &ctx, NID_name_constraints, names) &&
	       X509_sign(a->cert, a->key, EVP_sha256()) > 0;
}

static EVP_PKEY *new_leaf_key(void)
{
	EC_KEY *ec = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
	EVP_PKEY *key = EVP_PKEY_new();

	if (ec && key && EC_KEY_generate_key(ec) == 1 && EVP_PKEY_set1_EC_KEY(key, ec) == 1) {
		EC_KEY_free(ec);
		return key;
	}
	EC_KEY_free(ec);
	EVP_PKEY_free(key);
	return NULL;
}

/* The extensions that all leaves share. */
static bool make_leaf_extensions(struct sbx_authority *a)
{
	static const struct {
		int nid;
		const char *value;
	} all[SBX_N_LEAF_EXTENSIONS] = {
		{ NID_basic_constraints, "critical,CA:FALSE" },
		{ NID_key_usage, "critical,digitalSignature" },
		{ NID_ext_key_usage, "serverAuth" },
		{ NID_authority_key_identifier, "keyid" },
	};
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, a->cert, NULL, NULL, NULL, 0);
	for (size_t i = 0; i < SBX_N_LEAF_EXTENSIONS; i++) {
		a->leaf_extensions[i] = X509V3_EXT_conf_nid(NULL, &ctx, all[i].nid, all[i].value);
		if (!a->leaf_extensions[i])
			return false;
	}
	return true;
}

int sbx_authority_init(struct sbx_authority *a, const struct sbx_http_rules *rules)
{
	a->key = EVP_EC_gen("P-256");
	a->leaf_key = new_leaf_key();
	return a->key && a->leaf_key && make_cert(a, rules) && make_leaf_extensions(a) ? 0 : -EIO;
}

void sbx_authority_fini(struct sbx_authority *a)
{
	X509_free(a->cert);
	EVP_PKEY_free(a->key);
	EVP_PKEY_free(a->leaf_key);
	for (size_t i = 0; i < SBX_N_LEAF_EXTENSIONS; i++)
		X509_EXTENSION_free(a->leaf_extensions[i]);
	*a = (struct sbx_authority){ 0 };
}

/* RFC 5280 section 4.2.1.6: the host's name; critical where the subject is empty. */
static bool add_host(X509 *cert, const char *host, bool critical)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();
	bool ok = names && name && text && ASN1_STRING_set(text, host, -1) == 1;

	if (ok)
		GENERAL_NAME_set0_value(name, GEN_DNS, text);
	else
		ASN1_IA5STRING_free(text);
	ok = ok && sk_GENERAL_NAME_push(names, name) > 0;
	if (!ok)
		GENERAL_NAME_free(name);
	ok = ok && X509_add1_ext_i2d(cert, NID_subject_alt_name, names, critical,
				     X509V3_ADD_DEFAULT) == 1;
	GENERAL_NAMES_free(names);
	return ok;
}

X509 *sbx_authority_mint(const struct sbx_authority *a, const char *host)
{
	bool fits = strlen(host) <= COMMON_NAME_MAX;
	SBX_CLEANUP(X509_freep) X509 *cert =
		new_cert(a->leaf_key, fits ? host : "", SBX_LEAF_HOURS);

	if (!cert || X509_set_issuer_name(cert, X509_get_subject_name(a->cert)) != 1)
		return NULL;
	for (size_t i = 0; i < SBX_N_LEAF_EXTENSIONS; i++)
		if (X509_add_ext(cert, a->leaf_extensions[i], -1) != 1)
			return NULL;
	if (!add_host(cert, host, !fits) || X509_sign(cert, a->key, EVP_sha256()) <= 0)
		return NULL;
	return sbx_steal_ptr(&cert);
}

/* Copies the bytes that were written to @bio. *ret is malloc'ed. */
static int take_bytes(BIO *bio, uint8_t **ret, size_t *ret_n)
{
	char *p;
	long n = BIO_get_mem_data(bio, &p);
	uint8_t *copy = n > 0 ? malloc((size_t)n) : NULL;

	if (!copy)
		return -EIO;
	memcpy(copy, p, (size_t)n);
	*ret = copy;
	*ret_n = (size_t)n;
	return 0;
}

int sbx_authority_pem(const struct sbx_authority *a, char **ret, size_t *ret_n)
{
	SBX_CLEANUP(BIO_freep) BIO *bio = BIO_new(BIO_s_mem());
	uint8_t *p = NULL;
	int r = bio && PEM_write_bio_X509(bio, a->cert) == 1 ? take_bytes(bio, &p, ret_n) : -EIO;

	if (r == 0)
		*ret = (char *)p;
	return r;
}

/* --- a store for Java --- */

/* Java takes a certificate for trusted if its bag has this attribute (with any key usage). */
#define ORACLE_TRUSTED_KEY_USAGE "2.16.840.1.113894.746875.1.1"
#define ANY_EXTENDED_KEY_USAGE	 "2.5.29.37.0"

/* The shape of a certificate (RFC 5280 section 4.1): SEQUENCE { SEQUENCE, SEQUENCE, BIT STRING } */
static bool is_certificate(const uint8_t *der, long n)
{
	static const int types[] = { V_ASN1_SEQUENCE, V_ASN1_SEQUENCE, V_ASN1_BIT_STRING };
	const uint8_t *p = der;
	ASN1_SEQUENCE_ANY *parts = d2i_ASN1_SEQUENCE_ANY(NULL, &p, n);
	bool ok = parts && p == der + n && sk_ASN1_TYPE_num(parts) == SBX_N_ELEMENTS(types);

	for (int i = 0; ok && i < (int)SBX_N_ELEMENTS(types); i++)
		ok = ASN1_TYPE_get(sk_ASN1_TYPE_value(parts, i)) == types[i];
	sk_ASN1_TYPE_pop_free(parts, ASN1_TYPE_free);
	return ok;
}

/* The certificate goes into its bag as it is. Reading 140 of them as X509 first would take 20 ms:
 * OpenSSL 3.0 makes a decoder for every key. */
static PKCS12_SAFEBAG *new_bag(const uint8_t *der, long n)
{
	ASN1_TYPE *any = d2i_ASN1_TYPE(NULL, &der, n);
	PKCS12_SAFEBAG *bag = any ? PKCS12_item_pack_safebag(any, ASN1_ITEM_rptr(ASN1_ANY),
							     NID_x509Certificate, NID_certBag) :
				    NULL;

	ASN1_TYPE_free(any);
	return bag;
}

static bool add_trusted(STACK_OF(PKCS12_SAFEBAG) *bags, const uint8_t *der, long n, int number,
			const ASN1_OBJECT *any)
{
	PKCS12_SAFEBAG *bag = new_bag(der, n);
	char alias[32];

	snprintf(alias, sizeof(alias), "sbx-%d", number);
	if (!bag || sk_PKCS12_SAFEBAG_push(bags, bag) <= 0) {
		PKCS12_SAFEBAG_free(bag);
		return false;
	}
	return PKCS12_add_friendlyname_utf8(bag, alias, -1) == 1 &&
	       PKCS12_add1_attr_by_txt(bag, ORACLE_TRUSTED_KEY_USAGE, V_ASN1_OBJECT,
				       (const uint8_t *)any, -1) == 1;
}

static bool add_own(STACK_OF(PKCS12_SAFEBAG) *bags, X509 *cert, const ASN1_OBJECT *any)
{
	uint8_t *der = NULL;
	int n = i2d_X509(cert, &der);
	bool ok = n > 0 && add_trusted(bags, der, n, 0, any);

	OPENSSL_free(der);
	return ok;
}

static bool add_bundle(STACK_OF(PKCS12_SAFEBAG) *bags, struct sbx_span bundle,
		       const ASN1_OBJECT *any)
{
	SBX_CLEANUP(BIO_freep) BIO *bio = BIO_new_mem_buf(bundle.p, (int)bundle.n);
	bool ok = bio != NULL;
	uint8_t *der = NULL;
	long n;

	for (int i = 1; ok && PEM_bytes_read_bio(&der, &n, NULL, PEM_STRING_X509, bio, NULL,
						 NULL) == 1; i++) {
		if (is_certificate(der, n))
			ok = add_trusted(bags, der, n, i, any);
		OPENSSL_free(der);
	}
	ERR_clear_error(); /* the end of the text is an error */
	return ok;
}

static void free_bags(STACK_OF(PKCS12_SAFEBAG) *bags)
{
	sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
}

static void free_safes(STACK_OF(PKCS7) *safes)
{
	sk_PKCS7_pop_free(safes, PKCS7_free);
}

SBX_DEFINE_CLEANUP(ASN1_OBJECT, ASN1_OBJECT_free);
SBX_DEFINE_CLEANUP(PKCS12, PKCS12_free);
SBX_DEFINE_CLEANUP(STACK_OF(PKCS12_SAFEBAG), free_bags);
SBX_DEFINE_CLEANUP(STACK_OF(PKCS7), free_safes);

int sbx_authority_java_store(const struct sbx_authority *a, struct sbx_span bundle, uint8_t **ret,
			     size_t *ret_n)
{
	SBX_CLEANUP(free_bagsp) STACK_OF(PKCS12_SAFEBAG) *bags = sk_PKCS12_SAFEBAG_new_null();
	SBX_CLEANUP(free_safesp) STACK_OF(PKCS7) *safes = NULL;
	SBX_CLEANUP(ASN1_OBJECT_freep) ASN1_OBJECT *any = OBJ_txt2obj(ANY_EXTENDED_KEY_USAGE, 1);
	SBX_CLEANUP(BIO_freep) BIO *bio = BIO_new(BIO_s_mem());
	SBX_CLEANUP(PKCS12_freep) PKCS12 *store = NULL;

	if (!any || !bio || !bags || !add_own(bags, a->cert, any) ||
	    !add_bundle(bags, bundle, any) || PKCS12_add_safe(&safes, bags, -1, 0, NULL) != 1)
		return -EIO;
	store = PKCS12_add_safes(safes, 0);
	if (!store || i2d_PKCS12_bio(bio, store) != 1)
		return -EIO;
	return take_bytes(bio, ret, ret_n);
}
