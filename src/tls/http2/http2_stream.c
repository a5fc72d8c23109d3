/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Streams of HTTP/2: heads as they are collected, bytes on their way, and the end of a stream. */
#include "tls/http2/http2.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define BYTES_MIN  4096
#define HEAD_MIN   1024
#define FIELDS_MIN 16

/* --- heads --- */

void sbx_http2_head_reset(struct sbx_http2_head *head)
{
	if (head->p)
		explicit_bzero(head->p, head->n_max);
	free(head->p);
	free(head->fields);
	*head = (struct sbx_http2_head){ 0 };
}

static int reserve(struct sbx_http2_head *head, size_t n)
{
	if (head->n + n > head->n_max) {
		size_t n_max = head->n_max ? head->n_max : HEAD_MIN;
		uint8_t *p;

		while (n_max < head->n + n)
			n_max *= 2;
		p = malloc(n_max);
		if (!p)
			return -ENOMEM;
		if (head->p) { /* a response's head may have a value in it */
			memcpy(p, head->p, head->n);
			explicit_bzero(head->p, head->n_max);
		}
		free(head->p);
		head->p = p;
		head->n_max = n_max;
	}
	if (head->n_fields == head->n_fields_max) {
		size_t n_max = head->n_fields_max ? head->n_fields_max * 2 : FIELDS_MIN;
		struct sbx_http2_field *fields = realloc(head->fields, n_max * sizeof(*fields));

		if (!fields)
			return -ENOMEM;
		head->fields = fields;
		head->n_fields_max = n_max;
	}
	return 0;
}

int sbx_http2_head_add(struct sbx_http2_head *head, struct sbx_span name, struct sbx_span value,
		       size_t n_max)
{
	struct sbx_http2_field *f;

	if (head->too_long || head->n + name.n + value.n > n_max ||
	    head->n_fields >= SBX_HTTP_HEADERS_MAX) {
		head->too_long = true;
		return 0;
	}
	if (reserve(head, name.n + value.n) < 0)
		return -ENOMEM;
	f = &head->fields[head->n_fields++];
	f->name = (uint32_t)head->n;
	f->n_name = (uint32_t)name.n;
	memcpy(head->p + head->n, name.p, name.n);
	head->n += name.n;
	f->value = (uint32_t)head->n;
	f->n_value = (uint32_t)value.n;
	if (value.n)
		memcpy(head->p + head->n, value.p, value.n);
	head->n += value.n;
	return 0;
}

struct sbx_span sbx_http2_name(const struct sbx_http2_head *head, size_t i)
{
	return sbx_span(head->p + head->fields[i].name, head->fields[i].n_name);
}

struct sbx_span sbx_http2_value(const struct sbx_http2_head *head, size_t i)
{
	return sbx_span(head->p + head->fields[i].value, head->fields[i].n_value);
}

/* --- bytes --- */

static void bytes_fini(struct sbx_http2_bytes *b)
{
	if (b->p)
		explicit_bzero(b->p, b->n_max);
	free(b->p);
	sbx_http2_head_reset(&b->trailer);
	*b = (struct sbx_http2_bytes){ 0 };
}

int sbx_http2_bytes_put(void *bytes, struct sbx_span data)
{
	struct sbx_http2_bytes *b = bytes;
	size_t left = b->n - b->at, n_max = b->n_max ? b->n_max : BYTES_MIN;
	uint8_t *p;

	if (!data.n)
		return 0;
	if (b->at && b->n + data.n > b->n_max) {
		memmove(b->p, b->p + b->at, left);
		b->at = 0;
		b->n = left;
	}
	if (b->n + data.n > b->n_max) {
		while (n_max < left + data.n)
			n_max *= 2;
		p = malloc(n_max);
		if (!p)
			return -ENOMEM;
		if (b->p) {
			memcpy(p, b->p, b->n);
			explicit_bzero(b->p, b->n_max);
		}
		free(b->p);
		b->p = p;
		b->n_max = n_max;
	}
	memcpy(b->p + b->n, data.p, data.n);
	b->n += data.n;
	return 0;
}

/* @n bytes went to the other session: their sender may send as many more. */
static void pay_window(struct sbx_http2_stream *s, bool down, size_t n)
{
	struct sbx_http2_bytes *b = down ? &s->down : &s->up;
	nghttp2_session *from = down ? s->h->up : s->h->down;
	int32_t id = down ? s->up_id : s->down_id;

	if (b->at == b->n || n > b->n_owed)
		n = b->n_owed;
	b->n_owed -= n;
	if (!n || !from)
		return;
	nghttp2_session_consume_connection(from, n);
	if (down ? s->up_open : s->down_open)
		nghttp2_session_consume_stream(from, id, n);
}

static int submit_trailer(nghttp2_session *session, int32_t id, const struct sbx_http2_head *head)
{
	nghttp2_nv nv[SBX_HTTP_HEADERS_MAX];
	for (size_t i = 0; i < head->n_fields; i++) {
		nv[i] = sbx_http2_nv(sbx_http2_name(head, i), sbx_http2_value(head, i),
				     NGHTTP2_NV_FLAG_NONE);
	}
	return nghttp2_submit_trailer(session, id, nv, head->n_fields);
}

static ssize_t provide(nghttp2_session *session, int32_t id, uint8_t *out, size_t n_out,
		       uint32_t *flags, struct sbx_http2_stream *s, bool down)
{
	struct sbx_http2_bytes *b = down ? &s->down : &s->up;
	size_t n = b->n - b->at < n_out ? b->n - b->at : n_out;

	if (!n && !b->end) {
		b->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (n)
		memcpy(out, b->p + b->at, n);
	b->at += n;
	if (b->at == b->n)
		b->at = b->n = 0;
	pay_window(s, down, n);
	if (!b->n && b->end) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (b->has_trailer) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			if (submit_trailer(session, id, &b->trailer) != 0)
				return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		}
	}
	return (ssize_t)n;
}

static ssize_t provide_up(nghttp2_session *session, int32_t id, uint8_t *out, size_t n_out,
			  uint32_t *flags, nghttp2_data_source *source, void *userdata)
{
	(void)userdata;
	return provide(session, id, out, n_out, flags, source->ptr, false);
}

static ssize_t provide_down(nghttp2_session *session, int32_t id, uint8_t *out, size_t n_out,
			    uint32_t *flags, nghttp2_data_source *source, void *userdata)
{
	(void)userdata;
	return provide(session, id, out, n_out, flags, source->ptr, true);
}

nghttp2_data_provider sbx_http2_provider(struct sbx_http2_stream *s, bool down)
{
	return (nghttp2_data_provider){ .source = { .ptr = s },
					.read_callback = down ? provide_down : provide_up };
}

void sbx_http2_wake(struct sbx_http2_stream *s, bool down)
{
	struct sbx_http2_bytes *b = down ? &s->down : &s->up;

	if (!b->deferred)
		return;
	b->deferred = false;
	if (down)
		nghttp2_session_resume_data(s->h->down, s->down_id);
	else if (s->up_id >= 0 && !s->h->lost)
		nghttp2_session_resume_data(s->h->up, s->up_id);
}

/* --- life --- */

struct sbx_http2_stream *sbx_http2_stream_new(struct sbx_http2 *h, int32_t down_id)
{
	struct sbx_http2_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->h = h;
	s->down_id = down_id;
	s->up_id = -1;
	s->down_open = true;
	s->next = h->first;
	if (h->first)
		h->first->prev = s;
	h->first = s;
	h->n_streams++;
	return s;
}

void sbx_http2_stream_free(struct sbx_http2_stream *s)
{
	*(s->prev ? &s->prev->next : &s->h->first) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->h->n_streams--;
	s->h->c->ctx->n_whole -= s->n_whole;
	sbx_http2_head_reset(&s->head);
	bytes_fini(&s->up);
	bytes_fini(&s->down);
	sbx_swap_free(s->request_swap);
	sbx_swap_free(s->reply_swap);
	sbx_whole_free(s->whole);
	free(s);
}

/* Bytes that will not be sent any more are taken off the sender's connection window all the same,
 * or the window would shrink with every stream that is given up. */
static void settle(struct sbx_http2_stream *s, bool down)
{
	struct sbx_http2_bytes *b = down ? &s->down : &s->up;

	b->at = b->n = 0;
	pay_window(s, down, b->n_owed);
}

void sbx_http2_stream_closed(struct sbx_http2_stream *s, bool down, uint32_t error)
{
	*(down ? &s->down_open : &s->up_open) = false;
	settle(s, down);
	if (down && s->up_open && (error != NGHTTP2_NO_ERROR || !s->down.end))
		nghttp2_submit_rst_stream(s->h->up, NGHTTP2_FLAG_NONE, s->up_id,
					  error ? error : NGHTTP2_CANCEL);
	/* The server's stream ended before its response did. */
	if (!down && s->down_open && !s->refused && !s->down.end)
		nghttp2_submit_rst_stream(s->h->down, NGHTTP2_FLAG_NONE, s->down_id,
					  error ? error : NGHTTP2_INTERNAL_ERROR);
	if (s->down_open || s->up_open)
		return;
	settle(s, true);
	settle(s, false);
	nghttp2_session_set_stream_user_data(s->h->down, s->down_id, NULL);
	if (s->h->up && s->up_id >= 0)
		nghttp2_session_set_stream_user_data(s->h->up, s->up_id, NULL);
	sbx_http2_stream_free(s);
}
