/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A connection of src/tls that speaks HTTP/2 (tls_world.h): frames and bytes of a client and a
 * server, cut anywhere, with ends, resets, and peers that do not read. The output is decoded by
 * a reader of our own, in which every frame and every field block must be whole. No value of
 * another host's secret is in a field or a body towards the server, and no value of the host's own
 * towards the client, but in a body with a content coding, which sbx-tls does not look into.
 */
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tls/tls_world.h"

#define STREAMS_MAX 256

struct reader {
	nghttp2_hd_inflater *inflater;
	uint8_t *block; /* heap: a field block in several frames */
	size_t n_block;
	const char *const *forbidden;
	struct {
		struct tls_world_output data;
		bool coded;
	} streams[STREAMS_MAX];
};

static bool has(struct sbx_span s, const char *text)
{
	return s.n && memmem(s.p, s.n, text, strlen(text));
}

static void check_clean(const struct reader *r, struct sbx_span s)
{
	for (const char *const *f = r->forbidden; *f; f++)
		CHECK(!has(s, *f));
}

static void append(struct tls_world_output *o, struct sbx_span s)
{
	uint8_t *p = realloc(o->p, o->n + s.n + 1);

	CHECK(p);
	memcpy(p + o->n, s.p, s.n);
	o->p = p;
	o->n += s.n;
}

/* --- field blocks --- */

static void read_field(struct reader *r, uint32_t stream, const nghttp2_nv *nv)
{
	struct sbx_span name = sbx_span(nv->name, nv->namelen);
	struct sbx_span value = sbx_span(nv->value, nv->valuelen);

	check_clean(r, name);
	check_clean(r, value);
	if (name.n == 16 && memcmp(name.p, "content-encoding", 16) == 0 && stream < STREAMS_MAX)
		r->streams[stream].coded = true;
}

static void read_block(struct reader *r, uint32_t stream)
{
	struct sbx_span in = sbx_span(r->block, r->n_block);
	int flags = 0;

	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		nghttp2_nv nv;
		ssize_t n = nghttp2_hd_inflate_hd2(r->inflater, &nv, &flags, in.p, in.n, 1);

		CHECK(n >= 0);
		in = sbx_span(in.p + n, in.n - (size_t)n);
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			read_field(r, stream, &nv);
		else
			CHECK(n > 0 || flags & NGHTTP2_HD_INFLATE_FINAL);
	}
	nghttp2_hd_inflate_end_headers(r->inflater);
	free(r->block);
	r->block = NULL;
	r->n_block = 0;
}

/* --- frames --- */

static void read_headers(struct reader *r, uint8_t type, uint8_t flags, uint32_t stream,
			 struct sbx_span payload)
{
	struct tls_world_output block = { .p = r->block, .n = r->n_block };

	if (type == NGHTTP2_HEADERS) {
		CHECK(!block.n && !(flags & NGHTTP2_FLAG_PADDED));
		if (flags & NGHTTP2_FLAG_PRIORITY)
			payload = sbx_span(payload.p + 5, payload.n - 5);
	}
	append(&block, payload);
	r->block = block.p;
	r->n_block = block.n;
	if (flags & NGHTTP2_FLAG_END_HEADERS)
		read_block(r, stream);
}

static void read_data(struct reader *r, uint8_t flags, uint32_t stream, struct sbx_span payload)
{
	CHECK(!(flags & NGHTTP2_FLAG_PADDED));
	if (stream < STREAMS_MAX && payload.n)
		append(&r->streams[stream].data, payload);
}

/* Reads whole frames; the last may be cut. */
static void read_frames(struct reader *r, struct sbx_span in)
{
	while (in.n >= 9) {
		size_t n = (size_t)in.p[0] << 16 | (size_t)in.p[1] << 8 | in.p[2];
		uint32_t stream = (uint32_t)(in.p[5] & 0x7f) << 24 | (uint32_t)in.p[6] << 16 |
				  (uint32_t)in.p[7] << 8 | in.p[8];
		struct sbx_span payload;

		CHECK(n <= 16384);
		if (n > in.n - 9)
			break;
		payload = sbx_span(in.p + 9, n);
		CHECK(!r->n_block || in.p[3] == NGHTTP2_CONTINUATION);
		if (in.p[3] == NGHTTP2_HEADERS || in.p[3] == NGHTTP2_CONTINUATION)
			read_headers(r, in.p[3], in.p[4], stream, payload);
		else if (in.p[3] == NGHTTP2_DATA)
			read_data(r, in.p[4], stream, payload);
		in = sbx_span(in.p + 9 + n, in.n - 9 - n);
	}
}

static void check_output(struct sbx_span in, const char *const *forbidden)
{
	struct reader *r = calloc(1, sizeof(*r));

	CHECK(r && nghttp2_hd_inflate_new(&r->inflater) == 0);
	r->forbidden = forbidden;
	read_frames(r, in);
	for (size_t i = 0; i < STREAMS_MAX; i++) {
		if (!r->streams[i].coded)
			check_clean(r, sbx_span(r->streams[i].data.p, r->streams[i].data.n));
		free(r->streams[i].data.p);
	}
	nghttp2_hd_inflate_del(r->inflater);
	free(r->block);
	free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const foreign[] = { TLS_WORLD_VALUE_TWO, NULL },
				 *const ours[] = { TLS_WORLD_VALUE_ONE, TLS_WORLD_VALUE_THREE,
						   TLS_WORLD_AWS_KEY, NULL },
				 *const none[] = { NULL };
	static const char preface[] = NGHTTP2_CLIENT_MAGIC;
	const size_t n_preface = sizeof(preface) - 1;
	struct tls_world w = { .is_h2 = true };
	bool open;

	tls_world_run(&w, sbx_span(data, size));
	open = w.flags & TLS_WORLD_OPEN;
	check_output(sbx_span(w.to_client.p, w.to_client.n), open ? none : ours);
	if (w.to_server.n >= n_preface) {
		CHECK(memcmp(w.to_server.p, preface, n_preface) == 0);
		check_output(sbx_span(w.to_server.p + n_preface, w.to_server.n - n_preface),
			     open ? none : foreign);
	}
	tls_world_fini(&w);
	return 0;
}
