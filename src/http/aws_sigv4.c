/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signs requests for AWS with keys that the client does not have.
 *
 * The client signs with placeholders, so its signature is worth nothing; but the form of its header
 * says how the request is to be signed: the scope, and the names of the signed headers. The
 * signature is computed anew over the request as it will be sent:
 *
 *   canonical request = METHOD, path, query, each signed header, their names, the body's hash
 *   string to sign    = algorithm, date, scope, SHA-256 of the canonical request
 *   signature         = HMAC-SHA-256 of it, with a key made from secret, date, region and service
 *
 * The head is sent before the body is known, so the body's hash must be in the head
 * (x-amz-content-sha256, or there is no body). Bodies whose chunks are signed one by one are
 * refused, because the chunks' signatures are the client's.
 *
 * The canonical request is hashed while it is made and never kept. The path is written as services
 * do it: each segment encoded twice, but once for S3.
 */

#include "http/aws_sigv4.h"

#include <errno.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "http/encode.h"
#include "http/path.h"
#include "http/verdict.h"
#include "wire/http_field.h"

#define ALGORITHM  "AWS4-HMAC-SHA256"
#define PARAMS_MAX 256 /* parameters of a query */
#define N_HEX	   (2 * SHA256_DIGEST_LENGTH)

/* --- hashes --- */

static void add(SHA2_CTX *c, struct sbx_span s)
{
	if (s.n)
		SHA256Update(c, s.p, s.n);
}

static void add_text(SHA2_CTX *c, const char *s)
{
	add(c, sbx_span_str(s));
}

struct hmac {
	SHA2_CTX inner, outer;
};

/* RFC 2104 */
static void hmac_begin(struct hmac *h, struct sbx_span key)
{
	uint8_t block[SHA256_BLOCK_LENGTH] = { 0 };

	if (key.n > sizeof(block)) {
		SHA256Init(&h->inner);
		add(&h->inner, key);
		SHA256Final(block, &h->inner);
	} else if (key.n) {
		memcpy(block, key.p, key.n);
	}
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36;
	SHA256Init(&h->inner);
	add(&h->inner, sbx_span(block, sizeof(block)));
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36 ^ 0x5c;
	SHA256Init(&h->outer);
	add(&h->outer, sbx_span(block, sizeof(block)));
	explicit_bzero(block, sizeof(block));
}

static void hmac_end(struct hmac *h, uint8_t digest[SHA256_DIGEST_LENGTH])
{
	SHA256Final(digest, &h->inner);
	add(&h->outer, sbx_span(digest, SHA256_DIGEST_LENGTH));
	SHA256Final(digest, &h->outer);
	explicit_bzero(h, sizeof(*h));
}

/* digest = HMAC(digest, text) */
static void hmac_next(uint8_t digest[SHA256_DIGEST_LENGTH], struct sbx_span text)
{
	struct hmac h;

	hmac_begin(&h, sbx_span(digest, SHA256_DIGEST_LENGTH));
	add(&h.inner, text);
	hmac_end(&h, digest);
}

/* --- the client's header --- */

static bool skip(struct sbx_span *s, const char *text)
{
	size_t n = strlen(text);

	if (s->n < n || memcmp(s->p, text, n) != 0)
		return false;
	*s = sbx_span(s->p + n, s->n - n);
	return true;
}

/* The bytes up to @end, which is skipped. false: there is none, or nothing before it. */
static bool cut(struct sbx_span *s, char end, struct sbx_span *ret)
{
	return sbx_span_cut(s, end, ret) && ret->n;
}

static bool parse_credential(struct sbx_span s, struct sbx_aws_authorization *a)
{
	static const char end[] = "aws4_request";

	if (!cut(&s, '/', &a->id))
		return false;
	a->scope = s;
	return cut(&s, '/', &a->date) && cut(&s, '/', &a->region) && cut(&s, '/', &a->service) &&
	       sbx_http_same(s, sbx_span(end, sizeof(end) - 1));
}

bool sbx_aws_parse(struct sbx_span value, struct sbx_aws_authorization *ret)
{
	struct sbx_aws_authorization a = { 0 };
	bool has_signature = false;
	struct sbx_span part;

	if (!skip(&value, ALGORITHM " "))
		return false;
	while (sbx_http_list_next(&value, &part)) {
		if (skip(&part, "Credential=")) {
			if (a.id.n || !parse_credential(part, &a))
				return false;
		} else if (skip(&part, "SignedHeaders=")) {
			if (a.signed_headers.n)
				return false;
			a.signed_headers = part;
		} else if (skip(&part, "Signature=")) {
			has_signature = true;
		} else {
			return false;
		}
	}
	if (!a.id.n || !a.signed_headers.n || !has_signature)
		return false;
	*ret = a;
	return true;
}

/* --- the canonical request --- */

struct signing {
	const struct sbx_aws_authorization *a;
	const char *host;
	const struct sbx_http_request *r;
	struct sbx_http_block **memory;
	const char **ret_why;
	SHA2_CTX hash; /* of the canonical request */
};

static int unfit(const struct signing *s, const char *why)
{
	*s->ret_why = why;
	return -EINVAL;
}

/* Encodes all but the slashes. NULL: out of memory. */
static uint8_t *encode_path(const struct signing *s, struct sbx_span path, size_t *ret_n)
{
	uint8_t *p = sbx_http_memory_take(s->memory, 3 * path.n + 1);
	size_t n = 0;

	for (size_t i = 0; p && i < path.n; i++) {
		if (path.p[i] == '/')
			p[n++] = '/';
		else
			n += sbx_http_percent_encode(sbx_span(path.p + i, 1), p + n);
	}
	*ret_n = n;
	return p;
}

static int add_path(struct signing *s, struct sbx_span path)
{
	static const char s3[] = "s3";
	uint8_t *p = sbx_http_memory_take(s->memory, path.n + 1);
	size_t n = p ? sbx_http_percent_decode(path, false, p, NULL) : 0;

	p = p ? encode_path(s, sbx_span(p, n), &n) : NULL;
	if (p && !(s->a->service.n >= 2 && !memcmp(s->a->service.p, s3, 2)))
		p = encode_path(s, sbx_span(p, n), &n);
	if (!p)
		return -ENOMEM;
	add(&s->hash, sbx_span(p, n));
	add_text(&s->hash, "\n");
	return 0;
}

struct param {
	struct sbx_span name, value; /* encoded anew */
};

static int compare(struct sbx_span a, struct sbx_span b)
{
	int c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int compare_params(const void *a, const void *b)
{
	const struct param *x = a, *y = b;
	int c = compare(x->name, y->name);

	return c ? c : compare(x->value, y->value);
}

/* Decodes and encodes @in, so that there is one spelling. false: out of memory. */
static bool encode_again(const struct signing *s, struct sbx_span in, struct sbx_span *ret)
{
	uint8_t *plain = sbx_http_memory_take(s->memory, in.n + 1);
	size_t n = plain ? sbx_http_percent_decode(in, false, plain, NULL) : 0;
	uint8_t *p = sbx_http_memory_take(s->memory, 3 * n + 1);

	if (!plain || !p)
		return false;
	*ret = sbx_span(p, sbx_http_percent_encode(sbx_span(plain, n), p));
	return true;
}

static int add_query(struct signing *s, struct sbx_span query)
{
	struct param v[PARAMS_MAX];
	size_t n = 0;

	while (query.n) {
		const uint8_t *end = memchr(query.p, '&', query.n);
		size_t n_param = end ? (size_t)(end - query.p) : query.n;
		const uint8_t *equals = n_param ? memchr(query.p, '=', n_param) : NULL;
		size_t n_name = equals ? (size_t)(equals - query.p) : n_param;
		size_t n_value = equals ? n_param - n_name - 1 : 0;

		if (n_param && n == PARAMS_MAX)
			return unfit(s, "its query has too many parameters");
		if (n_param &&
		    (!encode_again(s, sbx_span(query.p, n_name), &v[n].name) ||
		     !encode_again(s, sbx_span(query.p + n_param - n_value, n_value), &v[n].value)))
			return -ENOMEM;
		n += n_param > 0;
		n_param += end != NULL;
		query = sbx_span(query.p + n_param, query.n - n_param);
	}
	if (n)
		qsort(v, n, sizeof(v[0]), compare_params);
	for (size_t i = 0; i < n; i++) {
		add_text(&s->hash, i ? "&" : "");
		add(&s->hash, v[i].name);
		add_text(&s->hash, "=");
		add(&s->hash, v[i].value);
	}
	add_text(&s->hash, "\n");
	return 0;
}

/* A value with one space for each run of spaces. */
static void add_value(SHA2_CTX *c, struct sbx_span value)
{
	for (size_t i = 0; i < value.n; i++)
		if (value.p[i] != ' ' || value.p[i - (i > 0)] != ' ' || i == 0)
			add(c, sbx_span(value.p + i, 1));
}

/* The values of all headers of the name, or the one that the protocol's writer will make. */
static int add_values(struct signing *s, struct sbx_span name)
{
	char digits[24];
	size_t n = 0, i = sizeof(digits);

	if (sbx_http_equal(name, "host")) {
		if (s->r->authority.n)
			add(&s->hash, s->r->authority);
		else
			add_text(&s->hash, s->host);
		return 0;
	}
	if (sbx_http_equal(name, "content-length") && s->r->has_length) {
		uint64_t length = s->r->length;

		do
			digits[--i] = (char)('0' + length % 10);
		while (length /= 10);
		add(&s->hash, sbx_span(digits + i, sizeof(digits) - i));
		return 0;
	}
	for (i = 0; i < s->r->n_headers; i++) {
		if (!sbx_http_same_name(s->r->headers[i].name, name))
			continue;
		add_text(&s->hash, n++ ? "," : "");
		add_value(&s->hash, s->r->headers[i].value);
	}
	return n ? 0 : unfit(s, "a signed header is not in it");
}

static int add_headers(struct signing *s)
{
	struct sbx_span rest = s->a->signed_headers;
	bool has_host = false;

	while (rest.n) {
		struct sbx_span name;
		int r;

		sbx_span_cut(&rest, ';', &name);
		add(&s->hash, name);
		add_text(&s->hash, ":");
		r = add_values(s, name);
		if (r < 0)
			return r;
		add_text(&s->hash, "\n");
		has_host |= sbx_http_equal(name, "host");
	}
	if (!has_host)
		return unfit(s, "its host is not signed");
	add_text(&s->hash, "\n");
	add(&s->hash, s->a->signed_headers);
	add_text(&s->hash, "\n");
	return 0;
}

static struct sbx_span header(const struct sbx_http_request *r, const char *name)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (sbx_http_equal(r->headers[i].name, name))
			return r->headers[i].value;
	return sbx_span(NULL, 0);
}

static int add_body_hash(struct signing *s)
{
	static const char empty[] = "e3b0c44298fc1c149afbf4c8996fb924"
				    "27ae41e4649b934ca495991b7852b855";
	static const char signed_chunks[] = "STREAMING-AWS4-HMAC-SHA256";
	const size_t n = sizeof(signed_chunks) - 1;
	struct sbx_span hash = header(s->r, "x-amz-content-sha256");

	if (hash.n >= n && !memcmp(hash.p, signed_chunks, n))
		return unfit(s, "the chunks of its body are signed one by one");
	if (!hash.n && s->r->body_hash)
		hash = sbx_span_str(s->r->body_hash);
	if (!hash.n && s->r->has_body && !(s->r->has_length && !s->r->length))
		return unfit(s, "it has a body, and no x-amz-content-sha256");
	add(&s->hash, hash.n ? hash : sbx_span(empty, sizeof(empty) - 1));
	return 0;
}

static int canonical_request(struct signing *s, char hex[N_HEX + 1])
{
	struct sbx_span target = s->r->target, path = target, query = { 0 };
	const uint8_t *mark = target.n ? memchr(target.p, '?', target.n) : NULL;
	uint8_t digest[SHA256_DIGEST_LENGTH];
	int r;

	if (mark) {
		path.n = (size_t)(mark - target.p);
		query = sbx_span(mark + 1, target.n - path.n - 1);
	}
	SHA256Init(&s->hash);
	add(&s->hash, s->r->method);
	add_text(&s->hash, "\n");
	r = add_path(s, path);
	r = r < 0 ? r : add_query(s, query);
	r = r < 0 ? r : add_headers(s);
	r = r < 0 ? r : add_body_hash(s);
	if (r < 0)
		return r;
	SHA256Final(digest, &s->hash);
	sbx_hex_lower(digest, sizeof(digest), hex);
	return 0;
}

/* --- the signature --- */

static void sign(const struct signing *s, struct sbx_span secret, struct sbx_span date,
		 const char request[N_HEX + 1], char hex[N_HEX + 1])
{
	uint8_t key[SHA256_DIGEST_LENGTH];
	uint8_t first[SHA256_BLOCK_LENGTH] = "AWS4";
	struct hmac h;

	/* sbx_aws_sign() bounds the secret. */
	if (secret.n <= sizeof(first) - 4)
		memcpy(first + 4, secret.p, secret.n);
	hmac_begin(&h, sbx_span(first, 4 + secret.n));
	add(&h.inner, s->a->date);
	hmac_end(&h, key);
	hmac_next(key, s->a->region);
	hmac_next(key, s->a->service);
	hmac_next(key, sbx_span_str("aws4_request"));
	hmac_begin(&h, sbx_span(key, sizeof(key)));
	add_text(&h.inner, ALGORITHM "\n");
	add(&h.inner, date);
	add_text(&h.inner, "\n");
	add(&h.inner, s->a->scope);
	add_text(&h.inner, "\n");
	add(&h.inner, sbx_span(request, N_HEX));
	hmac_end(&h, key);
	sbx_hex_lower(key, sizeof(key), hex);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(first, sizeof(first));
}

/* The header's new value. */
static int write_header(const struct signing *s, struct sbx_span id, const char hex[N_HEX + 1],
			struct sbx_span *ret)
{
	const struct sbx_span parts[] = {
		sbx_span_str(ALGORITHM " Credential="),
		id,
		sbx_span_str("/"),
		s->a->scope,
		sbx_span_str(", SignedHeaders="),
		s->a->signed_headers,
		sbx_span_str(", Signature="),
		sbx_span(hex, N_HEX),
	};
	const size_t n_parts = sizeof(parts) / sizeof(parts[0]);
	size_t n = 0;
	uint8_t *p;

	for (size_t i = 0; i < n_parts; i++)
		n += parts[i].n;
	p = sbx_http_memory_take(s->memory, n);
	if (!p)
		return -ENOMEM;
	*ret = sbx_span(p, n);
	for (size_t i = 0; i < n_parts; i++) {
		if (parts[i].n <= n)
			memcpy(p, parts[i].p, parts[i].n);
		p += parts[i].n;
		n -= parts[i].n;
	}
	return 0;
}

int sbx_aws_sign(const struct sbx_aws_authorization *a, const char *host,
		 const struct sbx_http_request *r, struct sbx_span key,
		 struct sbx_http_block **memory, struct sbx_span *ret, const char **ret_why)
{
	struct signing s = { .a = a, .host = host, .r = r, .memory = memory, .ret_why = ret_why };
	struct sbx_span id, secret = key, date = header(r, "x-amz-date");
	char request[N_HEX + 1], hex[N_HEX + 1];
	char path[SBX_HTTP_PATH_MAX + 1];
	struct sbx_span query;
	int e;

	if (!cut(&secret, ':', &id) || !secret.n || secret.n > SHA256_BLOCK_LENGTH - 4)
		return unfit(&s, "the secret's value is not ACCESSKEYID:SECRETKEY");
	if (!date.n)
		return unfit(&s, "it has no x-amz-date");
	if (sbx_http_path_canonical(r->target, path, &query, ret_why))
		return -EINVAL;
	e = canonical_request(&s, request);
	if (e < 0)
		return e;
	sign(&s, secret, date, request, hex);
	return write_header(&s, id, hex, ret);
}
