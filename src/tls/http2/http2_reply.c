/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Responses of HTTP/2, from the server to the client; values become placeholders again. A body is
 * searched whatever its content-encoding says: the server that sends a value back can say anything.
 */
#include "tls/http2/http2.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/http_field.h"

static bool is(struct sbx_span s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

/* The response's status; 0: the head has none, it is a trailer. */
static int status_of(const struct sbx_http2_head *head)
{
	for (size_t i = 0; i < head->n_fields; i++) {
		struct sbx_span v = sbx_http2_value(head, i);

		if (is(sbx_http2_name(head, i), ":status") && v.n == 3)
			return (v.p[0] - '0') * 100 + (v.p[1] - '0') * 10 + (v.p[2] - '0');
	}
	return 0;
}

/* Can the client's body be another one than the server's? Of a trailer (@status 0) it was. */
static bool is_changed(const struct sbx_http2_stream *s, int status, bool end)
{
	bool has_body = status == 0 || (status >= 200 && status != 304 && !end && !s->is_head);

	return has_body && !sbx_swap_keeps_length(s->reply_swap);
}

/* Replaces the head's values by placeholders. A length or digest that may not hold is left out, and
 * so is a name with a value in it. 0 or -ENOMEM. */
static int swap_head(struct sbx_http2_stream *s, bool changed)
{
	struct sbx_http2_head swapped = { 0 };
	int e = 0;

	for (size_t i = 0; i < s->head.n_fields && e == 0; i++) {
		struct sbx_span name = sbx_http2_name(&s->head, i);
		struct sbx_span value = sbx_http2_value(&s->head, i);
		char *text = NULL;
		size_t n = 0;

		if (is(name, "content-type"))
			sbx_swap_set_type(s->reply_swap, value);
		if ((changed && sbx_http_describes_bytes(name)) ||
		    sbx_swap_is_in_name(s->reply_swap, name))
			continue;
		e = sbx_swap_text(s->reply_swap, value, &text, &n);
		if (e == 0)
			e = sbx_http2_head_add(&swapped, name,
					       text ? sbx_span(text, n) : value, SIZE_MAX);
		free(text);
	}
	sbx_http2_head_reset(&s->head);
	s->head = swapped;
	return e;
}

static size_t fill(const struct sbx_http2_head *head, nghttp2_nv nv[SBX_HTTP_HEADERS_MAX])
{
	for (size_t i = 0; i < head->n_fields; i++) {
		nv[i] = sbx_http2_nv(sbx_http2_name(head, i), sbx_http2_value(head, i),
				     NGHTTP2_NV_FLAG_NONE);
	}
	return head->n_fields;
}

static int submit(struct sbx_http2_stream *s, int status, bool end)
{
	nghttp2_nv nv[SBX_HTTP_HEADERS_MAX];
	nghttp2_data_provider provider = sbx_http2_provider(s, true);
	size_t n = fill(&s->head, nv);

	if (status < 200 && s->h->n_interim++ >= SBX_HTTP2_INTERIM_MAX)
		return 0;
	if (status < 200)
		return nghttp2_submit_headers(s->h->down, NGHTTP2_FLAG_NONE, s->down_id, NULL, nv,
					      n, NULL) == 0 ? 0 : -ENOMEM;
	s->replied = true;
	if (end)
		s->down.end = true;
	return nghttp2_submit_response(s->h->down, s->down_id, nv, n, end ? NULL : &provider) == 0 ?
		       0 :
		       -ENOMEM;
}

int sbx_http2_on_reply(struct sbx_http2_stream *s, bool end)
{
	int status = status_of(&s->head), e = 0;

	if (s->refused || !s->down_open) {
		sbx_http2_head_reset(&s->head);
		return 0;
	}
	if (s->head.too_long) {
		sbx_http2_fail(s, SBX_REASON_UPSTREAM_FAILED, 502,
			       "the head of the server's response is too long");
		return 0;
	}
	if (status && status < 100) { /* RFC 9110 section 15; nghttp2 takes it for a final one */
		sbx_http2_fail(s, SBX_REASON_UPSTREAM_FAILED, 502,
			       "the server's response is not well-formed HTTP/2");
		return 0;
	}
	if (status == 401)
		sbx_tls_ask_again(s->h->c->ctx, s->h->c->name);
	if (s->reply_swap)
		e = swap_head(s, is_changed(s, status, end));
	if (e < 0)
		return e;
	if (status) {
		e = submit(s, status, end);
		sbx_http2_head_reset(&s->head);
		return e;
	}
	if (!s->replied) /* nghttp2 refuses a trailer before a response */
		return -EBADMSG;
	s->down.has_trailer = s->head.n_fields > 0;
	s->down.trailer = s->head;
	s->head = (struct sbx_http2_head){ 0 };
	return 0;
}

int sbx_http2_on_reply_data(struct sbx_http2_stream *s, struct sbx_span data)
{
	struct sbx_http_verdict v;
	int e;

	s->down.n_owed += data.n;
	if (s->refused || !s->down_open) {
		nghttp2_session_consume(s->h->up, s->up_id, data.n);
		s->down.n_owed -= data.n;
		return 0;
	}
	e = s->reply_swap ? sbx_swap_feed(s->reply_swap, data, false, sbx_http2_bytes_put,
					  &s->down, &v) :
			    sbx_http2_bytes_put(&s->down, data);
	sbx_http2_wake(s, true);
	return e;
}

int sbx_http2_on_reply_end(struct sbx_http2_stream *s)
{
	struct sbx_http_verdict v;
	int e = 0;

	if (s->refused)
		return 0;
	if (s->reply_swap)
		e = sbx_swap_feed(s->reply_swap, sbx_span("", 0), true, sbx_http2_bytes_put,
				  &s->down, &v);
	if (e < 0)
		return e;
	s->down.end = true;
	sbx_http2_wake(s, true);
	return 0;
}
