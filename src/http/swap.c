/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replaces strings in a stream.
 *
 * The strings, and their replacements, are settled when the swap is made; match.c finds them.
 * Bytes of a piece go to the sink from where they lie; its last bytes are held, and the next piece
 * first has its own beginning put behind them. A string is found at the same place however the
 * stream is cut: a decision falls only when all strings that begin at that place are complete or
 * excluded. Replaced bytes are not searched again.
 *
 * How much is held, a client sees from what arrives. Placeholders are no secret: where only they
 * are looked for, bytes are held only while they may be the beginning of one. Values are: a client
 * that lets a server send its guesses back would see which of them a value begins with, and have
 * it byte by byte. Where values are looked for, what is held depends on the length and on control
 * bytes alone (boundary()). So a client can only guess a value as a whole. Only the time that
 * match.c takes depends on the bytes: on the first two of a value, which its filter compares.
 *
 * All memory that may hold a value is wiped: the forms of values in blocks, the held bytes when the
 * swap is freed.
 */

#include "http/swap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/head.h"
#include "http/match.h"
#include "http/memory.h"
#include "http/secret_use.h"
#include "http/value_form.h"
#include "wire/http_field.h"

#define GROWTH_MAX (1u << 20) /* bytes that the values add to a request's body */
#define HELD_STEP  64	      /* bytes; what is held does not tell the length of a value */

enum {
	STRINGS_OF_REQUEST = 3, /* of each secret: its placeholder, two forms */
	STRINGS_OF_RESPONSE = 2 * SBX_N_VALUE_FORMS, /* of its value, and of the one before */
	MESSAGE_HEAD = 5,			     /* bytes: a flag, and the length */
};

/* Of a string: its replacement, or why it stops the stream. */
struct found {
	struct sbx_span put;
	const struct sbx_http_verdict *refusal;
};

struct sbx_swap {
	struct sbx_match match;
	struct found *found; /* of each string in `match` */
	bool has_values;     /* among the strings */
	bool has_control;    /* a string has a control byte */
	bool may_by_message; /* a message's end is the server's */
	bool by_message;     /* sbx_swap_set_type() */
	uint8_t n_head;	     /* of the message: bytes read of its head */
	uint32_t n_message;  /* and bytes that are left of it */
	struct sbx_http_block *memory;
	size_t n_held, n_hold;	     /* bytes held now, and at most */
	size_t n_grown, n_grown_max; /* bytes that replacements added; 0: no limit */
	uint8_t *held;		     /* in memory; twice n_hold */
};

/* --- making one --- */

static bool is_control(uint8_t b)
{
	return (b < ' ' && b != '\t') || b == 0x7f;
}

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
	for (i = 0; i < find.n; i++)
		s->has_control |= is_control(find.p[i]);
}

static enum sbx_value_form form_of(uint8_t body_form)
{
	return body_form == SBX_HTTP_FORM_JSON	     ? SBX_VALUE_JSON :
	       body_form == SBX_HTTP_FORM_URLENCODED ? SBX_VALUE_PERCENT :
						       SBX_VALUE_RAW;
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
		if (sbx_value_form_write(form_of(body_form), secret->value, &s->memory, &put) < 0)
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
	if (!v || sbx_value_form_write(form_of(body_form), sought, &s->memory, &find) < 0)
		return -ENOMEM;
	sbx_secret_use_detected(u, secret, "the body", v);
	s->has_values = true;
	add(s, sought, sbx_span(NULL, 0), v);
	add(s, find, sbx_span(NULL, 0), v);
	return 0;
}

/* Gives out @s when it is complete, and frees it when it is not. */
static int finish(struct sbx_swap *s, int r, struct sbx_swap **ret_swap)
{
	if (r == 0 && s->match.n) {
		s->n_hold = s->match.n_longest - 1;
		if (s->has_values)
			s->n_hold = (s->n_hold / HELD_STEP + 1) * HELD_STEP;
		s->held = sbx_http_memory_take(&s->memory, 2 * s->n_hold);
		r = s->held ? 0 : -ENOMEM;
	}
	if (r < 0 || !s->match.n)
		s = sbx_swap_free(s);
	if (r == 0)
		*ret_swap = s;
	return r;
}

static struct sbx_swap *swap_new(size_t n_strings)
{
	struct sbx_swap *s = calloc(1, sizeof(*s));
	struct sbx_span *v;

	if (!s)
		return NULL;
	v = (void *)sbx_http_memory_take(&s->memory, n_strings * sizeof(*v));
	s->found = (void *)sbx_http_memory_take(&s->memory, n_strings * sizeof(*s->found));
	if (!v || !s->found)
		return sbx_swap_free(s);
	sbx_match_init(&s->match, v, n_strings);
	return s;
}

int sbx_swap_new_request(const struct sbx_http_rules *rules, const struct sbx_http_rewritten *w,
			 const char *host, struct sbx_swap **ret_swap)
{
	const struct sbx_http_header *type =
		sbx_http_head_find(&w->request, sbx_span_str("content-type"));
	struct sbx_secret_use u;
	struct sbx_swap *s;
	int r = 0;

	*ret_swap = NULL;
	if (!rules->n_secrets)
		return 0;
	s = swap_new(rules->n_secrets * STRINGS_OF_REQUEST);
	if (!s)
		return -ENOMEM;
	s->n_grown_max = GROWTH_MAX;
	s->may_by_message = true; /* who cuts a placeholder gets no value */
	if (type)
		sbx_swap_set_type(s, type->value);
	sbx_secret_use_init(&u, host, &w->request);
	for (size_t i = 0; i < rules->n_secrets && r == 0; i++) {
		r = add_placeholder(s, &u, &rules->secrets[i], w->in_body >> i & 1, w->body_form);
		if (r == 0)
			r = add_detected(s, &u, &rules->secrets[i], w->body_form);
	}
	return finish(s, r, ret_swap);
}

int sbx_swap_new_trailer(const struct sbx_http_rules *rules, const char *host, bool tls,
			 struct sbx_swap **ret_swap)
{
	const struct sbx_http_rewritten nothing = {
		.request = { .tls = tls, .target = sbx_span_str("/") },
	};

	return sbx_swap_new_request(rules, &nothing, host, ret_swap);
}

/* A value that @secret has, or had, in all its forms. 0 or -ENOMEM. */
static int add_value(struct sbx_swap *s, const struct sbx_http_secret *secret)
{
	struct sbx_span sought = sbx_secret_use_sought(secret);
	int r = 0;

	if (!sought.n)
		return 0;
	s->has_values = true;
	for (enum sbx_value_form form = 0; form < SBX_N_VALUE_FORMS && r == 0; form++) {
		struct sbx_span find, put = secret->placeholder;

		r = sbx_value_form_write(form, sought, &s->memory, &find);
		if (r == 0 && sbx_value_form_is_base64(form)) /* so that a length may stay */
			r = sbx_value_form_write(form, put, &s->memory, &put);
		if (r == 0)
			add(s, find, put, NULL);
	}
	return r;
}

/* Can a client have the value put among bytes of its own? If they come back, these could have a
 * message end within the value. */
static bool is_put_into_bytes(const struct sbx_http_secret *secret)
{
	return secret->inject == SBX_HTTP_INJECT_PLACEHOLDER &&
	       (secret->in & (SBX_HTTP_IN_QUERY | SBX_HTTP_IN_BODY));
}

int sbx_swap_new_response(const struct sbx_http_rules *rules, const char *host,
			  struct sbx_swap **ret_swap)
{
	struct sbx_swap *s = NULL;
	int r = 0;

	*ret_swap = NULL;
	for (size_t i = 0; i < rules->n_secrets && r == 0; i++) {
		struct sbx_http_secret secret = rules->secrets[i];

		if (!sbx_http_secret_is_for(&secret, host))
			continue;
		if (!s) {
			s = swap_new(rules->n_secrets * STRINGS_OF_RESPONSE);
			if (!s)
				return -ENOMEM;
			s->may_by_message = true;
		}
		s->may_by_message &= !is_put_into_bytes(&secret);
		r = add_value(s, &secret);
		/* A server may have kept the value before, which may still be good. */
		secret.value = secret.before;
		if (r == 0)
			r = add_value(s, &secret);
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

/* Where the held bytes and @in behind them are settled up to. Every string that begins before it
 * is complete or excluded, so that nothing depends on what a value begins with: the bytes behind it
 * are as many as a string can have, or it lies behind a control byte, which no string has. */
static size_t boundary(const struct sbx_swap *s, struct sbx_span in, bool end)
{
	size_t n = s->n_held + in.n, until = n > s->n_hold ? n - s->n_hold : 0, i = in.n;

	/* Of placeholders any beginning may be seen: settle() stops where one is cut off. */
	if (end || !s->has_values)
		return n;
	if (s->has_control)
		return until;
	while (s->n_held + i > until && i > 0 && !is_control(in.p[i - 1]))
		i--;
	return i > 0 && s->n_held + i > until ? s->n_held + i : until;
}

/* Settles the held bytes, up to *until, with the beginning of @in behind them; takes from @in what
 * was used, and *until is in what is left. All of @in may become held bytes. */
static int settle_held(const struct feed *f, struct sbx_span *in, size_t *until, bool end)
{
	struct sbx_swap *s = f->s;
	size_t before = s->n_held, n = in->n < s->n_hold ? in->n : s->n_hold, settled;
	size_t to = *until < before ? *until : before;
	bool is_all = n == in->n;
	int r;

	if (n)
		memcpy(s->held + before, in->p, n);
	r = settle(f, sbx_span(s->held, before + n), to, end && is_all, &settled);
	if (r)
		return r;
	*until = *until > settled ? *until - settled : 0;
	if (settled < before) { /* so these are all bytes there are */
		assert(is_all && before + n - settled <= 2 * s->n_hold);
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

static int feed_part(const struct feed *f, struct sbx_span in, bool end)
{
	struct sbx_swap *s = f->s;
	size_t until = boundary(s, in, end), settled;
	int r;

	if (s->n_held) {
		r = settle_held(f, &in, &until, end);
		if (r || s->n_held)
			return r;
	}
	if (!in.n)
		return 0;
	r = settle(f, in, until < in.n ? until : in.n, end, &settled);
	if (r)
		return r;
	s->n_held = in.n - settled;
	assert(s->n_held <= s->n_hold);
	if (s->n_held)
		memcpy(s->held, in.p + settled, s->n_held);
	return 0;
}

/* The bytes of @in up to the end of the message, if it ends there (*ret_end). Bytes that are no
 * message are the last one. */
static size_t take_message(struct sbx_swap *s, struct sbx_span in, bool *ret_end)
{
	size_t n = 0;

	while (n < in.n && s->n_head < MESSAGE_HEAD) {
		uint8_t b = in.p[n++];

		if (s->n_head == 0 && b > 1) {
			s->by_message = false;
			break;
		}
		s->n_message = s->n_head++ == 0 ? 0 : s->n_message << 8 | b;
	}
	*ret_end = s->by_message && s->n_head == MESSAGE_HEAD && s->n_message <= in.n - n;
	if (!*ret_end) {
		if (s->by_message && s->n_head == MESSAGE_HEAD)
			s->n_message -= (uint32_t)(in.n - n);
		return in.n;
	}
	n += s->n_message;
	s->n_head = 0;
	return n;
}

void sbx_swap_set_type(struct sbx_swap *s, struct sbx_span type)
{
	static const char grpc[] = "application/grpc";
	const size_t n = sizeof(grpc) - 1;

	s->by_message =
		s->may_by_message && type.n >= n && sbx_http_equal(sbx_span(type.p, n), grpc);
}

int sbx_swap_feed(struct sbx_swap *s, struct sbx_span in, bool end, sbx_swap_sink *sink,
		  void *userdata, struct sbx_http_verdict *ret_verdict)
{
	const struct feed f = { s, sink, userdata, ret_verdict };

	while (s->by_message && in.n) {
		bool is_end;
		size_t n = take_message(s, in, &is_end);
		int r;

		if (!is_end)
			break;
		r = feed_part(&f, sbx_span(in.p, n), true);
		if (r)
			return r;
		in = sbx_span(in.p + n, in.n - n);
	}
	return feed_part(&f, in, end);
}

static int drop(void *userdata, struct sbx_span out)
{
	(void)userdata;
	(void)out;
	return 0;
}

int sbx_swap_search(struct sbx_swap *s, struct sbx_span in, struct sbx_http_verdict *ret_verdict)
{
	return sbx_swap_feed(s, in, true, drop, NULL, ret_verdict);
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
