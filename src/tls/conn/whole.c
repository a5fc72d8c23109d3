/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests whose signature covers the body's hash (AWS Signature Version 4 without
 * x-amz-content-sha256). The body is hashed as it will be sent: if placeholders in it became
 * values, the head is rewritten once more with the new hash.
 */
#include "tls/conn/whole.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/text.h"
#include "http/swap.h"
#include "tls/conn/refusal.h"

SBX_DEFINE_CLEANUP(struct sbx_swap, sbx_swap_free);

struct sbx_whole *sbx_whole_free(struct sbx_whole *w)
{
	if (!w)
		return NULL;
	free(w->bytes);
	free(w);
	return NULL;
}

/* The span at the same place in the copy. */
static void move(struct sbx_span *s, const uint8_t *from, size_t n, const uint8_t *to)
{
	if (s->p >= from && s->p < from + n)
		s->p = to + (s->p - from);
}

int sbx_whole_new(const struct sbx_http_request *r, const uint8_t *p, size_t n,
		  struct sbx_whole **ret)
{
	struct sbx_whole *w = calloc(1, sizeof(*w));
	struct sbx_http_request *copy;

	if (!w)
		return -ENOMEM;
	w->bytes = malloc(n + 1);
	if (!w->bytes) {
		free(w);
		return -ENOMEM;
	}
	if (n) /* nothing may have no address */
		memcpy(w->bytes, p, n);
	w->request = *r;
	copy = &w->request;
	move(&copy->method, p, n, w->bytes);
	move(&copy->target, p, n, w->bytes);
	move(&copy->authority, p, n, w->bytes);
	move(&copy->upgrade_to, p, n, w->bytes);
	for (size_t i = 0; i < copy->n_headers; i++) {
		move(&copy->headers[i].name, p, n, w->bytes);
		move(&copy->headers[i].value, p, n, w->bytes);
	}
	*ret = w;
	return 0;
}

struct sbx_http_verdict sbx_whole_too_long(void)
{
	struct sbx_http_verdict v = { .reason = SBX_REASON_REQUEST_SIZE, .status = 413 };

	sbx_text_cut(v.text, sizeof(v.text),
		     "a request that is signed anew for AWS, and has no x-amz-content-sha256, can "
		     "have a body of at most %u bytes; let the client send that header",
		     SBX_WHOLE_MAX);
	return v;
}

struct sbx_http_verdict sbx_whole_too_many(void)
{
	struct sbx_http_verdict v = { .reason = SBX_REASON_RESOURCE, .status = 503 };

	sbx_text_cut(v.text, sizeof(v.text),
		     "the bodies of requests that are signed anew for AWS have more than %u bytes "
		     "together; send fewer at once, or let the client send "
		     "x-amz-content-sha256",
		     SBX_WHOLE_ALL_MAX);
	return v;
}

struct sink {
	uint8_t *p; /* heap */
	size_t n, n_max;
};

static int put(void *userdata, struct sbx_span data)
{
	struct sink *s = userdata;

	if (data.n > s->n_max - s->n)
		return -EFBIG;
	if (data.n)
		memcpy(s->p + s->n, data.p, data.n);
	s->n += data.n;
	return 0;
}

static bool out_of_memory(const struct sbx_conn *c, struct sbx_http_verdict *v)
{
	*v = sbx_refusal_verdict(c, SBX_REASON_RESOURCE, 503, "out of memory");
	return false;
}

static bool rewrite(const struct sbx_conn *c, struct sbx_whole *whole, struct sbx_span body,
		    struct sbx_http_rewritten *ret_w, struct sbx_http_verdict *ret_verdict)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	char hex[2 * SHA256_DIGEST_LENGTH + 1];
	bool ok;

	SHA256(body.p, body.n, digest);
	sbx_hex_lower(digest, sizeof(digest), hex);
	whole->request.body_hash = hex;
	whole->request.has_length = true;
	whole->request.length = body.n;
	ok = sbx_http_rewrite(&c->ctx->rules, c->entry, c->name, &whole->request, ret_w,
			      ret_verdict);
	whole->request.body_hash = NULL;
	if (ok)
		ret_w->request.body_hash = NULL;
	return ok;
}

/* @swap replaces what is in the body. False: @ret_verdict; the caller ends @ret. */
static bool swap_body(const struct sbx_conn *c, struct sbx_swap *swap, struct sbx_span body,
		      struct sink *ret, struct sbx_http_verdict *ret_verdict)
{
	int r;

	ret->n_max = SBX_WHOLE_MAX * 2; /* values may be longer than their placeholders */
	ret->p = malloc(ret->n_max);
	if (!ret->p)
		return out_of_memory(c, ret_verdict);
	r = sbx_swap_feed(swap, body, true, put, ret, ret_verdict);
	if (r == 0)
		return true;
	if (r == -EFBIG)
		*ret_verdict = sbx_whole_too_long();
	else if (r < 0)
		return out_of_memory(c, ret_verdict);
	return false;
}

static bool is_same(const struct sink *s, struct sbx_span body)
{
	return s->n == body.n && (!body.n || memcmp(s->p, body.p, body.n) == 0);
}

static void sink_fini(struct sink *s)
{
	if (s->p)
		explicit_bzero(s->p, s->n);
	free(s->p);
	s->p = NULL;
}

bool sbx_whole_rewrite(const struct sbx_conn *c, struct sbx_whole *whole, struct sbx_span body,
		       struct sbx_http_rewritten *ret_w, uint8_t **ret_body, size_t *ret_n,
		       struct sbx_http_verdict *ret_verdict)
{
	SBX_CLEANUP(sbx_swap_freep) struct sbx_swap *swap = NULL;
	struct sink swapped = { 0 };
	bool ok;

	*ret_body = NULL;
	*ret_n = body.n;
	if (!rewrite(c, whole, body, ret_w, ret_verdict))
		return false;
	if (sbx_swap_new_request(&c->ctx->rules, ret_w, c->name, &swap) < 0)
		ok = out_of_memory(c, ret_verdict);
	else
		ok = !swap || swap_body(c, swap, body, &swapped, ret_verdict);
	if (ok && (!swap || is_same(&swapped, body))) {
		sink_fini(&swapped);
		return true;
	}
	sbx_http_rewritten_fini(ret_w);
	if (!ok || !rewrite(c, whole, sbx_span(swapped.p, swapped.n), ret_w, ret_verdict)) {
		sink_fini(&swapped);
		return false;
	}
	*ret_body = swapped.p;
	*ret_n = swapped.n;
	return true;
}
