/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replaces strings in a stream.
 *
 * The strings, and their replacements, are settled when the swap is made; match.c finds them.
 * Bytes of a piece go to the sink from where they lie. Only when a piece ends within what may be a
 * string, its beginning is held: at most one byte less than the longest string. The next piece
 * first has its own beginning put behind the held bytes, as far as a string that begins in them can
 * reach, and the strings that begin in the held bytes are settled there.
 *
 * So a string is found at the same place however the stream is cut: a decision falls only when all
 * strings that begin at that place are complete or excluded. Replaced bytes are not searched again.
 *
 * All memory that may hold a value is wiped: the forms of values in blocks, the held bytes when the
 * swap is freed.
 */

#include "http/swap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/encode.h"
#include "http/match.h"
#include "http/memory.h"
#include "http/secret_use.h"

#define FORMS_MAX 8 /* strings that one secret adds at most */
#define GROWTH_MAX (1u << 20) /* bytes that the values add to a request's body */

static_assert(FORMS_MAX * SBX_HTTP_SECRETS_MAX <= SBX_MATCH_NEEDLES_MAX, "all strings fit");

struct sbx_swap {
	struct sbx_match match;
	/* Of each string in `match`: what it becomes, or why it stops the stream. */
	struct {
		struct sbx_span put;
		const struct sbx_http_verdict *refusal;
	} found[SBX_MATCH_NEEDLES_MAX];
	struct sbx_http_block *memory;
	size_t n_held, n_held_max;
	size_t n_grown, n_grown_max; /* bytes that replacements added; 0: no limit */
	uint8_t *held; /* in memory; two longest strings fit */
};

/* --- making one --- */

/* Adds a string, but not twice. */
static void add(struct sbx_swap *s, struct sbx_span find, struct sbx_span put,
		const struct sbx_http_verdict *refusal)
{
	size_t i;

	for (i = 0; i < s->match.n; i++)
		if (sbx_http_same(s->match.v[i], find))
			return;
	i = sbx_match_add(&s->match, find);
	s->found[i].put = put;
	s->found[i].refusal = refusal;
}

/* The ways to write a value. */
enum way {
	RAW = 0,
	JSON,
	JSON_SLASH,
	PERCENT,
	BASE64, /* and with one and two bytes before it, as in Basic credentials */
	BASE64_1,
	BASE64_2,
	N_WAYS,
};
static_assert(N_WAYS + 1 <= FORMS_MAX, "each way is a string, and the value before");

static size_t write_way(enum way way, struct sbx_span value, uint8_t *out)
{
	return way == PERCENT ? sbx_http_percent_encode(value, out) :
				sbx_http_json_escape(value, way == JSON_SLASH, out);
}

/* The digits of base64 that are all the value's, if @n_before bytes stand before it. */
static int write_base64(struct sbx_swap *s, size_t n_before, struct sbx_span value,
			struct sbx_span *ret)
{
	size_t n = n_before + value.n, first = (n_before * 8 + 5) / 6;
	uint8_t *plain = sbx_http_memory_take(&s->memory, n);
	uint8_t *p = plain ? sbx_http_memory_take(&s->memory, (n + 2) / 3 * 4) : NULL;

	if (!p)
		return -ENOMEM;
	assert(n >= value.n); /* plain has n bytes */
	memcpy(plain + n_before, value.p, value.n);
	sbx_http_base64_encode(sbx_span(plain, n), p);
	*ret = sbx_span(p + first, n * 8 / 6 - first);
	return 0;
}

/* *ret borrows from @value, or from the swap's memory. 0 or -ENOMEM. */
static int write_value(struct sbx_swap *s, enum way way, struct sbx_span value,
		       struct sbx_span *ret)
{
	size_t n;
	uint8_t *p;

	*ret = value;
	if (way == RAW)
		return 0;
	if (way >= BASE64)
		return write_base64(s, way - BASE64, value, ret);
	n = write_way(way, value, NULL);
	p = sbx_http_memory_take(&s->memory, n);
	if (!p)
		return -ENOMEM;
	write_way(way, value, p);
	*ret = sbx_span(p, n);
	return 0;
}

static enum way way_of(uint8_t body_form)
{
	return body_form == SBX_HTTP_FORM_JSON	     ? JSON :
	       body_form == SBX_HTTP_FORM_URLENCODED ? PERCENT :
						       RAW;
}

/* Room for a verdict that lives as long as the swap. */
static struct sbx_http_verdict *take_verdict(struct sbx_swap *s)
{
	return (struct sbx_http_verdict *)(void *)sbx_http_memory_take(
		&s->memory, sizeof(struct sbx_http_verdict));
}

static int add_placeholder(struct sbx_swap *s, const struct sbx_secret_use *u,
			   const struct sbx_http_secret *secret, bool replaced, uint8_t body_form)
{
	struct sbx_span put = { 0 };
	struct sbx_http_verdict *v = NULL;

	if (replaced) {
		if (write_value(s, way_of(body_form), secret->value, &put) < 0)
			return -ENOMEM;
	} else {
		v = take_verdict(s);
		if (!v)
			return -ENOMEM;
		if (sbx_secret_use_judge(u, secret, SBX_HTTP_IN_BODY, "the body", v))
			sbx_http_refuse(v, SBX_REASON_SECRET_MISDIRECTED, 403,
					"the placeholder of secret '%.*s' was in the body of a "
					"request to %s",
					SBX_HTTP_SPAN_ARGS(secret->name), u->host);
	}
	add(s, secret->placeholder, put, v);
	return 0;
}

/* The value, raw and in the form of the body. */
static int add_detected(struct sbx_swap *s, const struct sbx_secret_use *u,
			const struct sbx_http_secret *secret, uint8_t body_form)
{
	struct sbx_span sought = sbx_secret_use_sought(secret), find;
	struct sbx_http_verdict *v;

	if (!secret->detect || !sought.n)
		return 0;
	v = take_verdict(s);
	if (!v || write_value(s, way_of(body_form), sought, &find) < 0)
		return -ENOMEM;
	sbx_secret_use_detected(u, secret, "the body", v);
	add(s, sought, sbx_span(NULL, 0), v);
	add(s, find, sbx_span(NULL, 0), v);
	return 0;
}

/* Gives out @s when it is complete, and frees it when it is not. */
static int finish(struct sbx_swap *s, int r, struct sbx_swap **ret_swap)
{
	if (r == 0 && s->match.n) {
		s->n_held_max = 2 * s->match.n_longest;
		s->held = sbx_http_memory_take(&s->memory, s->n_held_max);
		r = s->held ? 0 : -ENOMEM;
	}
	if (r < 0 || !s->match.n)
		s = sbx_swap_free(s);
	if (r == 0)
		*ret_swap = s;
	return r;
}

static struct sbx_swap *swap_new(void)
{
	struct sbx_swap *s = calloc(1, sizeof(*s));

	if (s)
		sbx_match_init(&s->match);
	return s;
}

int sbx_swap_new_request(const struct sbx_http_rules *rules, const struct sbx_http_rewritten *w,
			 const char *host, struct sbx_swap **ret_swap)
{
	struct sbx_secret_use u;
	struct sbx_swap *s;
	int r = 0;

	*ret_swap = NULL;
	if (!rules->n_secrets)
		return 0;
	s = swap_new();
	if (!s)
		return -ENOMEM;
	s->n_grown_max = GROWTH_MAX;
	sbx_secret_use_init(&u, host, w->request.tls, w->request.method, w->request.target);
	for (size_t i = 0; i < rules->n_secrets && r == 0; i++) {
		r = add_placeholder(s, &u, &rules->secrets[i], w->in_body >> i & 1, w->body_form);
		if (r == 0)
			r = add_detected(s, &u, &rules->secrets[i], w->body_form);
	}
	return finish(s, r, ret_swap);
}

static bool is_for_host(const struct sbx_http_secret *secret, const char *host)
{
	for (size_t i = 0; i < secret->hosts.n; i++)
		if (sbx_http_host_matches(secret->hosts.v[i], host))
			return true;
	return false;
}

int sbx_swap_new_response(const struct sbx_http_rules *rules, const char *host,
			  struct sbx_swap **ret_swap)
{
	struct sbx_swap *s = NULL;
	int r = 0;

	*ret_swap = NULL;
	for (size_t i = 0; i < rules->n_secrets && r == 0; i++) {
		const struct sbx_http_secret *secret = &rules->secrets[i];
		struct sbx_span sought = sbx_secret_use_sought(secret);
		struct sbx_http_secret old;

		if (!sought.n || !is_for_host(secret, host))
			continue;
		if (!s)
			s = swap_new();
		if (!s)
			return -ENOMEM;
		for (enum way way = RAW; way < N_WAYS && r == 0; way++) {
			struct sbx_span find, put = secret->placeholder;

			r = write_value(s, way, sought, &find);
			if (r == 0 && way >= BASE64) /* so that a length may stay */
				r = write_value(s, way, put, &put);
			if (r == 0)
				add(s, find, put, NULL);
		}
		/* A server may have kept the value before, which may still be good. */
		old = *secret;
		old.value = secret->before;
		sought = sbx_secret_use_sought(&old);
		if (sought.n)
			add(s, sought, secret->placeholder, NULL);
	}
	return s ? finish(s, r, ret_swap) : 0;
}

struct sbx_swap *sbx_swap_free(struct sbx_swap *s)
{
	if (s)
		sbx_http_memory_free(&s->memory);
	free(s);
	return NULL;
}

bool sbx_swap_keeps_length(const struct sbx_swap *s)
{
	for (size_t i = 0; i < s->match.n; i++)
		if (!s->found[i].refusal && s->found[i].put.n != s->match.v[i].n)
			return false;
	return true;
}

/* --- the stream --- */

/* One call of sbx_swap_feed(). */
struct feed {
	struct sbx_swap *s;
	sbx_swap_sink *sink;
	void *userdata;
	struct sbx_http_verdict *v;
};

static int give(const struct feed *f, struct sbx_span out)
{
	return out.n ? f->sink(f->userdata, out) : 0;
}

/* A short body of placeholders must not become a very long one. */
static bool has_grown(const struct feed *f, size_t n_put, size_t n_found)
{
	f->s->n_grown += n_put > n_found ? n_put - n_found : 0;
	if (!f->s->n_grown_max || f->s->n_grown <= f->s->n_grown_max)
		return false;
	sbx_http_refuse(f->v, SBX_REASON_OVERSIZED, 413,
			"a request's body is too long with its secrets in it; send fewer "
			"placeholders");
	return true;
}

/* Gives out what @bytes become, as far as strings that begin before @until are concerned. *ret_n
 * bytes are settled: up to @until at least, or up to a string that is cut off. */
static int settle(const struct feed *f, struct sbx_span bytes, size_t until, bool end,
		  size_t *ret_n)
{
	const struct sbx_match *m = &f->s->match;
	size_t done = 0;

	for (;;) {
		size_t pos = until, needle = 0;
		enum sbx_match_result found =
			sbx_match_next(m, bytes, done, until, end, &pos, &needle);
		int r;

		if (found == SBX_MATCH_NONE)
			pos = until > done ? until : done;
		r = give(f, sbx_span(bytes.p + done, pos - done));
		*ret_n = pos;
		if (r || found != SBX_MATCH_FOUND)
			return r;
		if (f->s->found[needle].refusal) {
			*f->v = *f->s->found[needle].refusal;
			return SBX_SWAP_E_REFUSED;
		}
		if (has_grown(f, f->s->found[needle].put.n, m->v[needle].n))
			return SBX_SWAP_E_REFUSED;
		r = give(f, f->s->found[needle].put);
		if (r)
			return r;
		done = pos + m->v[needle].n;
	}
}

/* Settles the held bytes with the beginning of @in behind them; takes from @in what was used. All
 * of @in may become held bytes. */
static int settle_held(const struct feed *f, struct sbx_span *in, bool end)
{
	struct sbx_swap *s = f->s;
	size_t before = s->n_held, n = s->match.n_longest - 1, settled;
	bool is_all = in->n <= n;
	int r;

	n = is_all ? in->n : n;
	assert(n <= s->n_held_max - before);
	if (n)
		memcpy(s->held + before, in->p, n);
	r = settle(f, sbx_span(s->held, before + n), before, end && is_all, &settled);
	if (r)
		return r;
	if (settled < before) { /* cut off: so these are all bytes there are */
		assert(is_all);
		s->n_held = before + n - settled;
		memmove(s->held, s->held + settled, s->n_held);
	} else {
		n = settled - before;
		s->n_held = 0;
	}
	if (n) /* an empty piece may have no address */
		*in = sbx_span(in->p + n, in->n - n);
	return 0;
}

int sbx_swap_feed(struct sbx_swap *s, struct sbx_span in, bool end, sbx_swap_sink *sink,
		  void *userdata, struct sbx_http_verdict *ret_verdict)
{
	const struct feed f = { s, sink, userdata, ret_verdict };
	size_t settled;
	int r;

	if (s->n_held) {
		r = settle_held(&f, &in, end);
		if (r || s->n_held)
			return r;
	}
	if (!in.n)
		return 0;
	r = settle(&f, in, in.n, end, &settled);
	if (r)
		return r;
	s->n_held = in.n - settled;
	assert(s->n_held < s->match.n_longest);
	if (s->n_held)
		memcpy(s->held, in.p + settled, s->n_held);
	return 0;
}

/* --- one string --- */

/* Writes @in with its strings replaced; with @out NULL counts. */
static size_t write_text(const struct sbx_swap *s, struct sbx_span in, char *out, size_t n_max,
			 bool *ret_changed)
{
	size_t done = 0, n = 0;

	*ret_changed = false;
	for (;;) {
		size_t pos = in.n, needle = 0;
		bool found = sbx_match_next(&s->match, in, done, in.n, true, &pos, &needle) ==
			     SBX_MATCH_FOUND;
		struct sbx_span put = found ? s->found[needle].put : sbx_span(NULL, 0);

		pos = found ? pos : in.n;
		if (out && pos > done && pos - done <= n_max - n)
			memcpy(out + n, in.p + done, pos - done);
		n += pos - done;
		if (!found)
			return n;
		if (out && put.n && put.n <= n_max - n)
			memcpy(out + n, put.p, put.n);
		n += put.n;
		done = pos + s->match.v[needle].n;
		*ret_changed = true;
	}
}

int sbx_swap_text(const struct sbx_swap *s, struct sbx_span in, char **ret, size_t *ret_n)
{
	bool changed = false;
	size_t n = 0;
	char *p;

	*ret = NULL;
	*ret_n = in.n;
	if (s && in.n)
		n = write_text(s, in, NULL, 0, &changed);
	if (!changed)
		return 0;
	p = malloc(n ? n : 1);
	if (!p)
		return -ENOMEM;
	*ret_n = write_text(s, in, p, n, &changed);
	*ret = p;
	return 0;
}

bool sbx_swap_is_in_name(const struct sbx_swap *s, struct sbx_span name)
{
	for (size_t i = 0; i < s->match.n; i++) {
		struct sbx_span v = s->match.v[i];

		for (size_t at = 0; at + v.n <= name.n; at++)
			if (sbx_http_same_name(sbx_span(name.p + at, v.n), v))
				return true;
	}
	return false;
}
