/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints what nghttp2, with its own settings, reads of stream 1: for http2_differential.py.
 *
 * stdin: records of a byte (0: a client's bytes, 1: a server's, to a GET), a u32 length in network
 * byte order, and the bytes. stdout: a line of JSON for each. Texts are hexadecimal. "why": nghttp2
 * reset the stream or refused the connection, or the peer reset it; or null.
 */
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "tests/check/records.h"

#define TEXT_MAX (1u << 18)

/* A list of blocks of fields, or a body, as it is printed. */
struct text {
	char p[TEXT_MAX];
	size_t n;
};

enum part { HEAD, INTERIM, TRAILER, BODY, N_PARTS };
static struct text parts[N_PARTS];
static bool has_head, has_trailer, ended, refused, reset;

static void put(enum part part, const char *s)
{
	struct text *t = &parts[part];
	size_t n = strlen(s);

	if (n >= sizeof(t->p) - t->n)
		abort();
	memcpy(t->p + t->n, s, n + 1);
	t->n += n;
}

static void put_hex(enum part part, const uint8_t *p, size_t n)
{
	struct text *t = &parts[part];

	if (2 * n >= sizeof(t->p) - t->n)
		abort();
	sbx_hex_lower(p, n, t->p + t->n);
	t->n += 2 * n;
}

static void clear(enum part part)
{
	parts[part].n = 0;
	parts[part].p[0] = '\0';
}

static enum part part_of(const nghttp2_frame *frame)
{
	switch (frame->headers.cat) {
	case NGHTTP2_HCAT_REQUEST:
	case NGHTTP2_HCAT_RESPONSE:
		return HEAD;
	default:
		return TRAILER;
	}
}

/* --- nghttp2's calls --- */

static bool is_ours(const nghttp2_frame *frame)
{
	return frame->hd.type == NGHTTP2_HEADERS && frame->hd.stream_id == 1;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
		     void *userdata)
{
	enum part part = part_of(frame);

	(void)session;
	(void)flags;
	(void)userdata;
	if (!is_ours(frame))
		return 0;
	put(part, parts[part].n ? ", [\"" : "[\"");
	put_hex(part, name, n_name);
	put(part, "\", \"");
	put_hex(part, value, n_value);
	put(part, "\"]");
	return 0;
}

/* An interim response has the category of the final one, or of a trailer: its status says it. */
static void end_block(const nghttp2_frame *frame)
{
	static const char interim[] = "[\"3a737461747573\", \"31"; /* :status, 1 */
	enum part part = part_of(frame);

	if (!strncmp(parts[part].p, interim, sizeof(interim) - 1)) {
		put(INTERIM, parts[INTERIM].n ? ", [" : "[");
		put(INTERIM, parts[part].p);
		put(INTERIM, "]");
		clear(part);
	} else if (part == TRAILER && !has_head) {
		parts[HEAD] = parts[TRAILER];
		clear(TRAILER);
		has_head = true;
	} else {
		has_head |= part == HEAD;
		has_trailer |= part == TRAILER;
	}
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
	(void)session;
	(void)userdata;
	if (is_ours(frame))
		end_block(frame);
	if (frame->hd.stream_id == 1 && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
	    (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
		ended = true;
	if (frame->hd.stream_id == 1 && frame->hd.type == NGHTTP2_RST_STREAM)
		reset = true;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *p,
		   size_t n, void *userdata)
{
	(void)session;
	(void)flags;
	(void)userdata;
	if (stream == 1)
		put_hex(BODY, p, n);
	return 0;
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
	(void)session;
	(void)userdata;
	refused |= frame->hd.type == NGHTTP2_GOAWAY ||
		   (frame->hd.type == NGHTTP2_RST_STREAM && frame->hd.stream_id == 1);
	return 0;
}

/* --- a record --- */

static nghttp2_session *new_session(bool server)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session = NULL;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		abort();
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
	if ((server ? nghttp2_session_server_new(&session, callbacks, NULL) :
		      nghttp2_session_client_new(&session, callbacks, NULL)) != 0 ||
	    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0) != 0)
		abort();
	nghttp2_session_callbacks_del(callbacks);
	return session;
}

static void ask(nghttp2_session *session)
{
#define FIELD(name, value)                                                                         \
	{ (uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1,              \
	  NGHTTP2_NV_FLAG_NONE }
	const nghttp2_nv fields[] = {
		FIELD(":method", "GET"),
		FIELD(":scheme", "https"),
		FIELD(":authority", "api.example"),
		FIELD(":path", "/"),
	};

	if (nghttp2_submit_request(session, NULL, fields, SBX_N_ELEMENTS(fields), NULL, NULL) != 1)
		abort();
}

static void send_all(nghttp2_session *session)
{
	const uint8_t *p;

	while (nghttp2_session_mem_send(session, &p) > 0)
		;
}

static void read_record(bool server, struct sbx_span in)
{
	nghttp2_session *session = new_session(server);

	for (enum part part = HEAD; part < N_PARTS; part++)
		clear(part);
	has_head = has_trailer = ended = refused = reset = false;
	if (!server)
		ask(session);
	send_all(session);
	if (nghttp2_session_mem_recv(session, in.p, in.n) < 0)
		refused = true;
	send_all(session);
	nghttp2_session_del(session);
	printf("{\"has_head\": %d, \"fields\": [%s], \"interim\": [%s], \"has_trailer\": %d, "
	       "\"trailer\": [%s], \"body\": \"%s\", \"ended\": %d, \"why\": %s}\n",
	       has_head, parts[HEAD].p, parts[INTERIM].p, has_trailer, parts[TRAILER].p,
	       parts[BODY].p, ended,
	       refused ? "\"refused\"" :
	       reset   ? "\"reset\"" :
			 "null");
}

int main(void)
{
	struct sbx_span record;
	uint8_t kind;

	while (next_record(&kind, &record))
		read_record(kind == 0, record);
	return 0;
}
