/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads what a server sends on an HTTP/1 connection: heads, and the data in chunked bodies.
 *
 * The server is not trusted, but it cannot hide a request: at worst, two readers disagree about the
 * end of a response, and the next response is another's. So a response has one length, in one form,
 * and a response with two is refused. The grammar is that of http_head.c: CRLF only, no folding, no
 * space before a colon. Servers are met that leave out the space before an empty phrase, and that
 * give a 204 a length; these pass.
 *
 * A head is parsed when its empty line is there. Before that, only its first bytes and its line
 * ends are looked at, so that a server of another protocol is refused at once, and a head that
 * comes byte by byte costs little.
 */

#include "wire/http_reply.h"

#include <string.h>

#include "wire/http_field.h"


static const char version_text[] = "HTTP/1.";
#define N_VERSION (sizeof(version_text) - 1)

/* Cuts the first line, without its CRLF, off @in. false: there is no CRLF. */
static bool next_line(struct sbx_span *in, struct sbx_span *ret_line)
{
	const uint8_t *crlf = in->n ? memmem(in->p, in->n, "\r\n", 2) : NULL;
	size_t n;

	if (!crlf)
		return false;
	n = (size_t)(crlf - in->p);
	*ret_line = sbx_span(in->p, n);
	*in = sbx_span(in->p + n + 2, in->n - n - 2);
	return true;
}

size_t sbx_http_head_fields(struct sbx_span head, struct sbx_http_header *v, size_t n_max)
{
	struct sbx_http_header f;
	struct sbx_span line;
	size_t n = 0;

	if (!next_line(&head, &line))
		return 0;
	while (next_line(&head, &line) && line.n) {
		if (!sbx_http_field_split(line, &f))
			continue;
		if (n == n_max)
			return n_max + 1;
		v[n++] = f;
	}
	return n;
}

/* Everything that the fields of one head say about the framing. */
struct framing {
	bool chunked, has_length, close, keep_alive;
	uint64_t length;
};

static bool on_length(struct framing *f, struct sbx_span value)
{
	if (f->has_length || !sbx_http_length_parse(value, &f->length))
		return false;
	f->has_length = true;
	return true;
}

/* A connection option that names a field which frames the message would take it away from the next
 * reader. Upgrade may be named: servers offer protocols in that way. */
static bool on_connection(struct framing *f, struct sbx_span value)
{
	struct sbx_span option;

	while (sbx_http_list_next(&value, &option)) {
		switch (sbx_http_field_lookup(option)) {
		case SBX_HTTP_FIELD_CONTENT_LENGTH:
		case SBX_HTTP_FIELD_TRANSFER_ENCODING:
		case SBX_HTTP_FIELD_DISGUISED:
			return false;
		default:
			break;
		}
		f->close |= sbx_http_equal(option, "close");
		f->keep_alive |= sbx_http_equal(option, "keep-alive");
	}
	return true;
}

static bool on_field(struct framing *f, struct sbx_span line)
{
	struct sbx_http_header field;

	if (!sbx_http_field_split(line, &field) ||
	    (field.value.n && !sbx_http_all(field.value, SBX_HTTP_VALUE)))
		return false;
	switch (sbx_http_field_lookup(field.name)) {
	case SBX_HTTP_FIELD_CONTENT_LENGTH:
		return on_length(f, field.value);
	case SBX_HTTP_FIELD_TRANSFER_ENCODING:
		if (f->chunked || !sbx_http_equal(field.value, "chunked"))
			return false;
		f->chunked = true;
		return true;
	case SBX_HTTP_FIELD_CONNECTION:
		return on_connection(f, field.value);
	default:
		return true;
	}
}

/* "HTTP/1.x NNN[ phrase]", RFC 9112 section 4. */
static bool parse_status_line(struct sbx_span line, struct sbx_http_reply *r)
{
	const size_t n_status = N_VERSION + 1 + 1 + 3;
	const uint8_t *digits = line.p + N_VERSION + 2;

	if (line.n < n_status || memcmp(line.p, version_text, N_VERSION))
		return false;
	if ((line.p[N_VERSION] != '0' && line.p[N_VERSION] != '1') || line.p[N_VERSION + 1] != ' ')
		return false;
	r->version_minor = line.p[N_VERSION] - '0';
	r->status = 0;
	for (size_t i = 0; i < 3; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return false;
		r->status = r->status * 10 + (digits[i] - '0');
	}
	if (r->status < 100 || (line.n > n_status && line.p[n_status] != ' '))
		return false;
	r->reason = line.n > n_status ? sbx_span(line.p + n_status + 1, line.n - n_status - 1) :
					sbx_span(line.p + n_status, 0);
	return !r->reason.n || sbx_http_all(r->reason, SBX_HTTP_VALUE);
}

/* RFC 9112 section 6.3. false: the head contradicts itself. */
static bool decide(const struct framing *f, bool to_head, struct sbx_http_reply *r)
{
	bool interim = r->status < 200;
	bool states_body = f->chunked || (f->has_length && f->length);

	if (f->chunked && (f->has_length || r->version_minor == 0))
		return false;
	if (interim && states_body)
		return false;
	r->has_length = f->has_length;
	r->length = f->length;
	r->keeps = !f->close && (r->version_minor > 0 || f->keep_alive);
	if (r->status == 101)
		r->framing = SBX_HTTP_REPLY_SWITCH;
	else if (interim || r->status == 204 || r->status == 304 || to_head)
		r->framing = SBX_HTTP_REPLY_NONE;
	else if (f->chunked)
		r->framing = SBX_HTTP_REPLY_CHUNKED;
	else
		r->framing = f->has_length ? SBX_HTTP_REPLY_LENGTH : SBX_HTTP_REPLY_CLOSE;
	/* A body may follow although there should be none: it must not be read as a response. */
	if (r->framing == SBX_HTTP_REPLY_CLOSE || r->framing == SBX_HTTP_REPLY_SWITCH ||
	    (r->status == 204 && states_body))
		r->keeps = false;
	return true;
}

/* Can a whole head still begin with these bytes? */
static bool may_begin(struct sbx_span in)
{
	const uint8_t *p = in.p, *end = in.p + in.n;

	if (memcmp(in.p, version_text, in.n < N_VERSION ? in.n : N_VERSION))
		return false;
	while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
		if (p[-1] != '\r')
			return false;
		p++;
	}
	return true;
}

int sbx_http_reply_parse(struct sbx_span in, bool to_head, struct sbx_http_reply *ret)
{
	struct sbx_http_reply r = { 0 };
	struct framing f = { 0 };
	const uint8_t *end;
	struct sbx_span line, rest;

	if (!in.n)
		return SBX_HTTP_E_MORE;
	end = memmem(in.p, in.n, "\r\n\r\n", 4);
	if (!end)
		return may_begin(in) ? SBX_HTTP_E_MORE : SBX_HTTP_E_REJECT;
	r.n = (size_t)(end - in.p) + 4;
	rest = sbx_span(in.p, r.n);
	if (!next_line(&rest, &line) || !parse_status_line(line, &r))
		return SBX_HTTP_E_REJECT;
	while (next_line(&rest, &line) && line.n)
		if (!on_field(&f, line))
			return SBX_HTTP_E_REJECT;
	if (!decide(&f, to_head, &r))
		return SBX_HTTP_E_REJECT;
	*ret = r;
	return 0;
}

int sbx_http_chunked_next(struct sbx_http_body *b, struct sbx_span in, struct sbx_span *ret_data,
			  size_t *ret_n)
{
	size_t pos = 0, n;
	int r = sbx_http_body_feed(b, sbx_span(NULL, 0), &n);

	*ret_data = sbx_span(NULL, 0);
	while (r == SBX_HTTP_E_MORE && pos < in.n) {
		uint64_t run = sbx_http_body_opaque(b);

		if (run) {
			n = run < in.n - pos ? (size_t)run : in.n - pos;
			*ret_data = sbx_span(in.p + pos, n);
			sbx_http_body_skip(b, n);
			pos += n;
			break;
		}
		r = sbx_http_body_feed(b, sbx_span(in.p + pos, 1), &n);
		pos += n;
	}
	*ret_n = pos;
	return r;
}
