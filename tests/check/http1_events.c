/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints what the parsers of src/wire read: for http1_differential.py.
 *
 * stdin: records of a byte (0: a client's bytes, 1: a server's, 2: a server's that answers HEAD), a
 * u32 length in network byte order, and the bytes, after which the peer ends. stdout: a line of
 * JSON for each, a list of messages. Texts are hexadecimal. "end" is the offset behind a message;
 * REFUSED or MISSING: so is the rest of its body.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/check/records.h"
#include "wire/http_head.h"
#include "wire/http_reply.h"

#define LIMIT	  16384 /* bytes of a head */
#define LINES_MAX 512
#define REFUSED	  (-1)
#define MISSING	  (-2)

/* A message's body, put together. */
struct data {
	uint8_t p[RECORD_MAX];
	size_t n;
};

static struct data data;

static void print_hex(struct sbx_span s)
{
	putchar('"');
	for (size_t i = 0; i < s.n; i++)
		printf("%02x", s.p[i]);
	putchar('"');
}

static void print_fields(struct sbx_span head)
{
	static struct sbx_http_header lines[LINES_MAX];
	size_t n = sbx_http_head_fields(head, lines, LINES_MAX);

	printf("\"fields\": [");
	for (size_t i = 0; i < n && i < LINES_MAX; i++) {
		printf("%s[", i ? ", " : "");
		print_hex(lines[i].name);
		printf(", ");
		print_hex(lines[i].value);
		putchar(']');
	}
	printf("]");
}

static void print_end(long end)
{
	printf(", \"body\": ");
	print_hex(sbx_span(data.p, data.n));
	printf(", \"end\": %ld}", end);
}

static void add(struct sbx_span s)
{
	if (s.n)
		memcpy(data.p + data.n, s.p, s.n);
	data.n += s.n;
}

/* The data of a chunked body. *ret_n: the bytes read. 0: it is complete. */
static int read_chunks(struct sbx_http_body *b, struct sbx_span in, size_t *ret_n)
{
	size_t n = 1;
	int r = SBX_HTTP_E_MORE;

	*ret_n = 0;
	while (r == SBX_HTTP_E_MORE && n && *ret_n < in.n) {
		struct sbx_span part;

		r = sbx_http_chunked_next(b, sbx_span(in.p + *ret_n, in.n - *ret_n), &part, &n);
		*ret_n += n;
		add(part);
	}
	return r;
}

/* --- a client's bytes --- */

static void print_request(const struct sbx_http_event *e, struct sbx_span buffer)
{
	printf("{\"method\": ");
	print_hex(e->method);
	printf(", \"target\": ");
	print_hex(e->target);
	printf(", \"minor\": %d, ", e->version_minor);
	print_fields(sbx_span(buffer.p, e->n));
}

static void read_requests(struct sbx_span in)
{
	struct sbx_http_judge j;
	struct sbx_http_event e;
	struct sbx_http_body chunks;
	bool open = false, chunked = false;
	size_t at = 0, n;
	int r;

	sbx_http_judge_init(&j, LIMIT, false);
	while ((r = sbx_http_judge_next(&j, sbx_span(in.p + at, in.n - at), &e)) == 0) {
		struct sbx_span bytes = sbx_span(in.p + at, e.n);

		at += e.n;
		if (e.kind == SBX_HTTP_HEAD) {
			print_request(&e, bytes);
			open = true;
			data.n = 0;
			chunked = e.framing == SBX_HTTP_FRAMING_CHUNKED;
			sbx_http_body_init(&chunks, SBX_HTTP_FRAMING_CHUNKED, 0);
		} else if (chunked) {
			read_chunks(&chunks, bytes, &n);
		} else {
			add(bytes);
		}
		if (sbx_http_judge_idle(&j)) {
			print_end((long)at);
			printf("%s", at < in.n ? ", " : "");
			open = false;
		}
	}
	if (open)
		print_end(r == SBX_HTTP_E_MORE ? MISSING : REFUSED);
	else if (at < in.n)
		printf("null");
}

/* --- a server's bytes --- */

static long read_body(const struct sbx_http_reply *r, struct sbx_span in)
{
	struct sbx_http_body chunks;
	size_t n;
	int e;

	switch (r->framing) {
	case SBX_HTTP_REPLY_CHUNKED:
		sbx_http_body_init(&chunks, SBX_HTTP_FRAMING_CHUNKED, 0);
		e = read_chunks(&chunks, in, &n);
		return e == 0 ? (long)n : e == SBX_HTTP_E_MORE ? MISSING : REFUSED;
	case SBX_HTTP_REPLY_LENGTH:
		n = r->length < in.n ? (size_t)r->length : in.n;
		add(sbx_span(in.p, n));
		return n == r->length ? (long)n : MISSING;
	case SBX_HTTP_REPLY_CLOSE:
		add(in);
		return (long)in.n;
	default:
		return 0;
	}
}

/* The first message, which may be an interim one. */
static void read_reply(struct sbx_span in, bool to_head)
{
	struct sbx_http_reply r;
	long n;

	data.n = 0;
	if (sbx_http_reply_parse(in, to_head, &r) != 0) {
		printf("null");
		return;
	}
	printf("{\"status\": %d, \"minor\": %d, \"reason\": ", r.status, r.version_minor);
	print_hex(r.reason);
	printf(", ");
	print_fields(sbx_span(in.p, r.n));
	n = read_body(&r, sbx_span(in.p + r.n, in.n - r.n));
	print_end(n < 0 ? n : (long)r.n + n);
}

int main(void)
{
	struct sbx_span record;
	uint8_t kind;

	while (next_record(&kind, &record)) {
		/* of its size, so that a sanitizer sees a read behind it */
		uint8_t *copy = malloc(record.n + 1);

		if (!copy)
			return 1;
		memcpy(copy, record.p, record.n);
		printf("[");
		if (kind == 0)
			read_requests(sbx_span(copy, record.n));
		else
			read_reply(sbx_span(copy, record.n), kind == 2);
		printf("]\n");
		free(copy);
	}
	return 0;
}
