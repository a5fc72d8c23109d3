/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ClientHellos as programs send them (captures in the fuzz corpus), and malformed ones. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/tls_client_hello.h"

#define LIMIT (16384 + 5)
#define NAME  "pkg.example.org"

/* --- outcomes --- */

struct outcome {
	int result;
	size_t n_fed; /* when it was known */
	struct sbx_tls_hello h;
};

static struct outcome feed_in_pieces(const uint8_t *p, size_t n, size_t piece, size_t limit)
{
	struct outcome o = { .result = SBX_TLS_E_MORE };
	/* Each piece in memory of its own size, so that a sanitizer sees a read past it. */
	sbx_tls_hello_init(&o.h, limit);
	while (o.result == SBX_TLS_E_MORE && o.n_fed < n) {
		size_t k = piece < n - o.n_fed ? piece : n - o.n_fed;
		SBX_AUTO_FREE uint8_t *copy = malloc(k);

		assert_non_null(copy);
		memcpy(copy, p + o.n_fed, k);
		o.result = sbx_tls_hello_feed(&o.h, sbx_span(copy, k));
		o.n_fed += k;
	}
	return o;
}

static void assert_same(const struct outcome *a, const struct outcome *b)
{
	assert_int_equal(a->result, b->result);
	assert_int_equal(a->h.n_consumed, b->h.n_consumed);
	if (a->result == SBX_TLS_E_REJECT)
		assert_int_equal(a->h.reason, b->h.reason);
	if (a->result != 0)
		return;
	assert_string_equal(a->h.sni, b->h.sni);
	assert_int_equal(a->h.version_max, b->h.version_max);
	assert_int_equal(a->h.alpn_h2, b->h.alpn_h2);
	assert_int_equal(a->h.alpn_http11, b->h.alpn_http11);
	assert_int_equal(a->h.alpn_other, b->h.alpn_other);
}

/* Whole, in pieces of every size, cut in two at every place: one outcome. */
static struct outcome judge_limit(const uint8_t *p, size_t n, size_t limit)
{
	struct outcome whole = feed_in_pieces(p, n, n, limit);

	for (size_t piece = 1; piece <= 64 && piece < n; piece++) {
		struct outcome o = feed_in_pieces(p, n, piece, limit);

		assert_same(&whole, &o);
	}
	for (size_t at = 1; at < n; at++) {
		struct outcome o = { .n_fed = n };

		sbx_tls_hello_init(&o.h, limit);
		sbx_tls_hello_feed(&o.h, sbx_span(p, at));
		o.result = sbx_tls_hello_feed(&o.h, sbx_span(p + at, n - at));
		assert_same(&whole, &o);
	}
	return whole;
}

static struct outcome judge(const uint8_t *p, size_t n)
{
	return judge_limit(p, n, LIMIT);
}

static void assert_rejected(const uint8_t *p, size_t n, enum sbx_reason reason)
{
	struct outcome o = judge(p, n);

	assert_int_equal(o.result, SBX_TLS_E_REJECT);
	assert_string_equal(sbx_reason_str(o.h.reason), sbx_reason_str(reason));
	/* A verdict never changes. */
	assert_int_equal(sbx_tls_hello_feed(&o.h, sbx_span("x", 1)), SBX_TLS_E_REJECT);
}

/* --- making hellos --- */

#define HELLO_MAX 70000

struct hello {
	uint8_t message[HELLO_MAX]; /* the handshake message with its head */
	size_t n;
	size_t extensions_at; /* of their length field */
	uint8_t records[HELLO_MAX * 6];
	size_t n_records;
};

static struct hello hello; /* large; every test begins it anew */

static void put(const void *p, size_t n)
{
	assert_true(hello.n + n <= sizeof(hello.message));
	if (n)
		memcpy(hello.message + hello.n, p, n);
	hello.n += n;
}

static void put_u8(unsigned v)
{
	put(&(uint8_t){ (uint8_t)v }, 1);
}

static void put_u16(unsigned v)
{
	put_u8(v >> 8);
	put_u8(v & 0xff);
}

static void begin(void)
{
	memset(&hello, 0, sizeof(hello));
	put("\1\0\0\0\3\3", 6);
	put("0123456789abcdef0123456789abcdef", 32);
	put_u8(32);
	put("0123456789abcdef0123456789abcdef", 32);
	put("\0\4\x13\1\x13\2", 6);
	put("\1\0", 2);
	hello.extensions_at = hello.n;
	put_u16(0);
}

static void extension(unsigned type, const void *p, size_t n)
{
	put_u16(type);
	put_u16((unsigned)n);
	put(p, n);
}

static void server_name_n(const void *name, size_t n)
{
	put_u16(0);
	put_u16((unsigned)n + 5);
	put_u16((unsigned)n + 3);
	put_u8(0);
	put_u16((unsigned)n);
	put(name, n);
}

static void server_name(const char *name)
{
	server_name_n(name, strlen(name));
}

static void fix_lengths(void)
{
	size_t n = hello.n - 4, e = hello.n - hello.extensions_at - 2;

	hello.message[1] = (uint8_t)(n >> 16);
	hello.message[2] = (uint8_t)(n >> 8);
	hello.message[3] = (uint8_t)n;
	hello.message[hello.extensions_at] = (uint8_t)(e >> 8);
	hello.message[hello.extensions_at + 1] = (uint8_t)e;
}

/* Cut the message into records of @fragment bytes. */
static void records(size_t fragment)
{
	hello.n_records = 0;
	for (size_t at = 0; at < hello.n; at += fragment) {
		size_t k = fragment < hello.n - at ? fragment : hello.n - at;
		uint8_t *r = hello.records + hello.n_records;

		memcpy(r, "\x16\3\1", 3);
		r[3] = (uint8_t)(k >> 8);
		r[4] = (uint8_t)k;
		memcpy(r + 5, hello.message + at, k);
		hello.n_records += 5 + k;
	}
}

static void end(void)
{
	fix_lengths();
	records(16384);
}

static void assert_hello_rejected(enum sbx_reason reason)
{
	assert_rejected(hello.records, hello.n_records, reason);
}

static void simple(void)
{
	begin();
	server_name(NAME);
	end();
}

/* --- tests --- */

static void test_fields(void **state)
{
	struct outcome o;

	(void)state;
	begin();
	extension(0x3a3a, NULL, 0); /* GREASE */
	server_name("PKG.Example.Org.");
	extension(16, "\0\x0f\2h2\x08http/1.1\2h3", 17);
	extension(43, "\6\x2a\x2a\3\4\3\3", 7);
	extension(51, "key share", 9);
	extension(0xdada, "\0", 1);
	end();
	o = judge(hello.records, hello.n_records);
	assert_int_equal(o.result, 0);
	assert_string_equal(o.h.sni, NAME);
	assert_int_equal(o.h.version_max, 0x0304);
	assert_true(o.h.alpn_h2 && o.h.alpn_http11 && o.h.alpn_other);
	assert_int_equal(o.h.n_consumed, hello.n_records);

	simple();
	o = judge(hello.records, hello.n_records);
	assert_int_equal(o.result, 0);
	assert_int_equal(o.h.version_max, 0x0303);
	assert_false(o.h.alpn_h2 || o.h.alpn_http11 || o.h.alpn_other);
	begin();
	server_name(NAME);
	extension(16, "\0\2\1x", 4); /* the shortest protocol */
	end();
	assert_true(judge(hello.records, hello.n_records).h.alpn_other);
	simple();
	o = judge(hello.records, hello.n_records);
	assert_int_equal(sbx_tls_hello_feed(&o.h, sbx_span("more", 4)), 0);
	assert_int_equal(o.h.n_consumed, hello.n_records);
}

static void test_prefixes_need_more(void **state)
{
	(void)state;
	simple();
	for (size_t n = 0; n < hello.n_records; n++)
		assert_int_equal(feed_in_pieces(hello.records, n, n, LIMIT).result, SBX_TLS_E_MORE);
}

static void test_any_records(void **state)
{
	(void)state;
	simple();
	for (size_t fragment = 1; fragment <= hello.n; fragment++) {
		struct outcome o;

		records(fragment);
		/* Bytes behind the last record belong to the next flight. */
		memcpy(hello.records + hello.n_records, "\x14\3\3\0\1\1", 6);
		o = fragment < 4 ? judge(hello.records, hello.n_records + 6)
				 : feed_in_pieces(hello.records, hello.n_records + 6, 7, LIMIT);
		assert_int_equal(o.result, 0);
		assert_string_equal(o.h.sni, NAME);
		assert_int_equal(o.h.n_consumed, hello.n_records);
	}
}

static void test_real(void **state)
{
	static const struct {
		const char *file;
		int result;
		uint16_t version;
		bool h2;
	} captures[] = {
		{ "openssl-tls13", 0, 0x0304, false },
		{ "openssl-tls12", 0, 0x0303, true },
		{ "openssl-split", 0, 0x0304, false },
		{ "curl", 0, 0x0304, true },
		{ "curl-http1", 0, 0x0304, false },
		{ "git", 0, 0x0304, true },
		{ "python", 0, 0x0304, false },
		{ "node", 0, 0x0304, false },
		{ "java", 0, 0x0304, false },
		{ "openssl-no-sni", SBX_TLS_E_REJECT, 0, false },
		{ "wget", SBX_TLS_E_REJECT, 0, false },
		{ "python-ip", SBX_TLS_E_REJECT, 0, false },
	};
	const char *srcdir = getenv("SBX_SRCDIR");

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(captures); i++) {
		char path[4096];
		static uint8_t buf[LIMIT];
		struct outcome o;
		size_t n;
		FILE *f;

		snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/tls_client_hello/real-%s",
			 srcdir ? srcdir : ".", captures[i].file);
		f = fopen(path, "re");
		assert_non_null(f);
		n = fread(buf, 1, sizeof(buf), f);
		fclose(f);
		o = judge(buf, n);
		assert_int_equal(o.result, captures[i].result);
		if (o.result) {
			assert_int_equal(o.h.reason, SBX_REASON_SNI_ABSENT);
			continue;
		}
		assert_string_equal(o.h.sni, NAME);
		assert_int_equal(o.h.version_max, captures[i].version);
		assert_int_equal(o.h.alpn_h2, captures[i].h2);
		assert_int_equal(o.h.n_consumed, n);
	}
}

/* Not TLS, or not a ClientHello: refused with the byte that shows it. */
static void test_earliest_byte(void **state)
{
	static const struct {
		const char *bytes;
		size_t n; /* the last one is the wrong one */
		bool is_tls;
	} streams[] = {
		{ "G", 1, false },	     /* HTTP */
		{ "S", 1, false },	     /* SSH */
		{ "\x80", 1, false },	     /* SSLv2 */
		{ "\x13", 1, false },	     /* no type of a record */
		{ "\x18", 1, false },	     /* a heartbeat */
		{ "\x15\3", 2, true },	     /* an alert */
		{ "\x14\3", 2, true },	     /* CCS */
		{ "\x17\3", 2, true },	     /* application data */
		{ "\x15\2", 2, false },
		{ "\x16\2", 2, false },	     /* another major version */
		{ "\x16\3\1\0\0", 5, true }, /* an empty fragment */
		{ "\x16\3\1\x41", 4, true }, /* over 2^14 */
		{ "\x16\3\1\x40\1", 5, true },
		{ "\x16\3\1\0\x20\2", 6, true },	     /* a ServerHello */
		{ "\x16\3\1\0\1\1\x15", 7, true },	     /* an alert between fragments */
		{ "\x16\3\1\0\1\1\x16\3\1\0\0", 11, true } /* an empty one between fragments */
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(streams); i++) {
		const uint8_t *p = (const uint8_t *)streams[i].bytes;
		size_t n = streams[i].n;

		assert_int_equal(feed_in_pieces(p, n - 1, n, LIMIT).result, SBX_TLS_E_MORE);
		assert_rejected(p, n, SBX_REASON_TLS_MALFORMED);
		assert_int_equal(feed_in_pieces(p, n, n, LIMIT).h.is_tls, streams[i].is_tls);
	}
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		size_t n;
		enum sbx_reason reason;
	} names[] = {
		{ "", 0, SBX_REASON_TLS_MALFORMED },
		{ ".", 1, SBX_REASON_TLS_MALFORMED },
		{ "a..b", 4, SBX_REASON_TLS_MALFORMED },
		{ "pkg.example.org\0", 16, SBX_REASON_TLS_MALFORMED },
		{ "pkg.example.org\0.evil.net", 25, SBX_REASON_TLS_MALFORMED },
		{ "pkg.example.org\n", 16, SBX_REASON_TLS_MALFORMED },
		{ "pkg.example.org:443", 19, SBX_REASON_TLS_MALFORMED },
		{ "m\xc3\xbcnster.example", 16, SBX_REASON_TLS_MALFORMED },
		{ "::1", 3, SBX_REASON_TLS_MALFORMED },
		{ "192.0.2.1", 9, SBX_REASON_SNI_MISMATCH },
		{ "0x7f.1", 6, SBX_REASON_SNI_MISMATCH },
		{ "2130706433", 10, SBX_REASON_SNI_MISMATCH },
	};
	char longest[SBX_HOSTNAME_MAX + 3];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		begin();
		server_name_n(names[i].name, names[i].n);
		end();
		assert_hello_rejected(names[i].reason);
	}

	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = i % 2 ? '.' : 'a';
	begin();
	server_name_n(longest, SBX_HOSTNAME_MAX);
	end();
	assert_int_equal(judge(hello.records, hello.n_records).result, 0);
	begin();
	server_name_n(longest, SBX_HOSTNAME_MAX + 2);
	end();
	assert_hello_rejected(SBX_REASON_TLS_MALFORMED);
}

static void test_one_name(void **state)
{
	static const char two[] = "\0\x0a\0\0\2a.\0\0\2b.";
	static const char other[] = "\0\x0a\0\0\2a.\1\0\2b.";

	(void)state;
	begin();
	end();
	assert_hello_rejected(SBX_REASON_SNI_ABSENT);

	begin();
	hello.n = hello.extensions_at; /* no extensions at all, as SSL 3 could */
	hello.message[3] = (uint8_t)(hello.n - 4);
	records(16384);
	assert_hello_rejected(SBX_REASON_SNI_ABSENT);

	begin();
	server_name(NAME);
	extension(51, "x", 1);
	server_name(NAME);
	end();
	assert_hello_rejected(SBX_REASON_SNI_DUPLICATE);

	begin();
	extension(0, two, sizeof(two) - 1);
	end();
	assert_hello_rejected(SBX_REASON_SNI_DUPLICATE);

	begin();
	extension(0, other, sizeof(other) - 1);
	end();
	assert_hello_rejected(SBX_REASON_TLS_MALFORMED);

	begin();
	extension(0, "\0\5\1\0\2a.", 7); /* a name of another type */
	end();
	assert_hello_rejected(SBX_REASON_TLS_MALFORMED);
}

static void test_ech(void **state)
{
	(void)state;
	begin();
	server_name(NAME);
	extension(0xfe0d, "\0", 1);
	end();
	assert_hello_rejected(SBX_REASON_ECH);
	begin();
	extension(0xffce, "\0", 1);
	server_name(NAME);
	end();
	assert_hello_rejected(SBX_REASON_ECH);
}

static void test_extension_bodies(void **state)
{
	static const struct {
		unsigned type;
		const char *body;
		size_t n;
	} bodies[] = {
		{ 0, "", 0 },
		{ 0, "\0", 1 },
		{ 0, "\0\0", 2 },
		{ 0, "\0\4\0\0\2a", 6 },
		{ 0, "\0\4\0\0\1ab", 7 },
		{ 0, "\0\5\0\0\1a", 6 },
		{ 16, "", 0 },
		{ 16, "\0\0", 2 },
		{ 16, "\0\1\0", 3 },
		{ 16, "\0\3\3h2", 5 },
		{ 16, "\0\4\2h2", 5 },
		{ 16, "\0\4\2h2\0", 6 },
		{ 43, "", 0 },
		{ 43, "\0", 1 },
		{ 43, "\1\3", 2 },
		{ 43, "\3\3\4\3", 4 },
		{ 43, "\2\3\4\3", 4 },
		{ 43, "\4\3\4", 3 },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(bodies); i++) {
		begin();
		if (bodies[i].type)
			server_name(NAME);
		extension(bodies[i].type, bodies[i].body, bodies[i].n);
		end();
		assert_hello_rejected(SBX_REASON_TLS_MALFORMED);
	}

	begin();
	server_name(NAME);
	extension(23, NULL, 0);
	extension(23, NULL, 0);
	end();
	assert_hello_rejected(SBX_REASON_TLS_MALFORMED);
}

/* Every length field one too small or too large. */
static void test_lengths_add_up(void **state)
{
	static const size_t at[] = { 3, 38, 72, 77, 80, 84, 86, 89 };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(at); i++) {
		for (int d = -1; d <= 1; d += 2) {
			struct outcome o;

			simple();
			hello.message[at[i]] = (uint8_t)(hello.message[at[i]] + d);
			records(16384);
			/* Nothing follows, so a message said to be longer is waited for. */
			o = judge(hello.records, hello.n_records);
			assert_int_not_equal(o.result, 0);
			if (o.result == SBX_TLS_E_REJECT)
				assert_int_equal(o.h.reason, SBX_REASON_TLS_MALFORMED);
			else
				assert_true(at[i] == 3 && d == 1);
		}
	}

	simple();
	put_u8(0); /* a byte behind the message, in its record */
	records(16384);
	assert_hello_rejected(SBX_REASON_TLS_MALFORMED);
}

/* The fields before the extensions, see begin() for where they are. */
static void test_fixed_fields(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} fields[] = {
		{ 4, 2 },	       /* legacy_version 2.3 */
		{ 4, 4 },  { 38, 33 }, /* session id: 32 at most */
		{ 72, 0 },	       /* no cipher suites */
		{ 72, 3 },	       /* half a cipher suite */
		{ 77, 0 },	       /* no compression methods */
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(fields); i++) {
		struct outcome o;

		simple();
		hello.message[fields[i].at] = fields[i].value;
		records(16384);
		o = feed_in_pieces(hello.records, hello.n_records, 1, LIMIT);
		assert_int_equal(o.result, SBX_TLS_E_REJECT);
		assert_int_equal(o.n_fed, 5 + fields[i].at + (fields[i].at == 4 ? 2 : 1));
		assert_hello_rejected(SBX_REASON_TLS_MALFORMED);
	}
}

static void test_limits(void **state)
{
	static uint8_t zeros[LIMIT];
	size_t n;

	(void)state;
	for (size_t fragment = 1; fragment <= 16384; fragment *= 128) {
		simple();
		records(fragment);
		n = hello.n_records;
		assert_int_equal(judge_limit(hello.records, n, n).result, 0);
		for (size_t limit = 0; limit < n; limit++) {
			struct outcome o = feed_in_pieces(hello.records, n, 50, limit);

			assert_int_equal(o.result, SBX_TLS_E_REJECT);
			assert_int_equal(o.h.reason, SBX_REASON_OVERSIZED);
			assert_true(o.h.n_consumed <= limit);
		}
	}

	/* The announced length is enough to refuse. */
	assert_rejected((const uint8_t *)"\x16\3\1\x40\0\1\1\0\0", 9, SBX_REASON_OVERSIZED);

	begin();
	server_name(NAME);
	extension(51, zeros, 16000);
	end();
	assert_int_equal(feed_in_pieces(hello.records, hello.n_records, 1000, LIMIT).result, 0);

	for (unsigned n_more = SBX_TLS_EXTENSIONS_MAX - 1; n_more <= SBX_TLS_EXTENSIONS_MAX;
	     n_more++) {
		begin();
		server_name(NAME);
		for (unsigned i = 0; i < n_more; i++)
			extension(0x1000 + i, NULL, 0);
		end();
		if (n_more < SBX_TLS_EXTENSIONS_MAX)
			assert_int_equal(judge(hello.records, hello.n_records).result, 0);
		else
			assert_hello_rejected(SBX_REASON_OVERSIZED);
	}

	for (size_t more = 0; more < 2; more++) {
		size_t body = SBX_TLS_EXT_READ_MAX + more;

		begin();
		server_name(NAME);
		put_u16(16);
		put_u16((unsigned)body);
		put_u16((unsigned)body - 2);
		put_u8(254);
		put(zeros, 254);
		put_u8((unsigned)body - 2 - 255 - 1);
		put(zeros, body - 2 - 255 - 1);
		end();
		if (!more)
			assert_int_equal(judge(hello.records, hello.n_records).result, 0);
		else
			assert_hello_rejected(SBX_REASON_OVERSIZED);
	}
}

/* --- behind the first hello --- */

/* Watch @p behind @first: whole, and cut in two at every place. *ret_good: bytes that were let go
 * without a hello. */
static int watch(const struct sbx_tls_hello *first, const uint8_t *p, size_t n, size_t limit,
		 struct sbx_tls_watch *w, size_t *ret_good)
{
	int whole, r;

	sbx_tls_watch_init(w, first, limit);
	whole = sbx_tls_watch_next(w, sbx_span(p, n), ret_good);
	for (size_t at = 0; at <= n; at++) {
		struct sbx_tls_watch cut;
		size_t good, more = 0;

		sbx_tls_watch_init(&cut, first, limit);
		r = sbx_tls_watch_next(&cut, sbx_span(p, at), &good);
		if (r == SBX_TLS_WATCH_MORE)
			r = sbx_tls_watch_next(&cut, sbx_span(p + good, n - good), &more);
		assert_int_equal(r, whole);
		if (r == SBX_TLS_WATCH_MORE)
			assert_int_equal(good + more, *ret_good);
		if (r != SBX_TLS_WATCH_HELLO)
			continue;
		assert_int_equal(good + more, *ret_good);
		assert_int_equal(cut.result, w->result);
		assert_string_equal(cut.hello.sni, w->hello.sni);
	}
	return whole;
}

static struct sbx_tls_hello first_hello(bool early_data, const char *versions, size_t n)
{
	struct outcome o;

	begin();
	server_name(NAME);
	if (early_data)
		extension(42, NULL, 0);
	extension(43, versions, n);
	end();
	o = judge(hello.records, hello.n_records);
	assert_int_equal(o.result, 0);
	assert_int_equal(o.h.early_data, early_data);
	return o.h;
}

/* @before, then a hello for @name in records of @fragment bytes. */
static size_t second_flight(const char *before, size_t n, const char *name, size_t fragment,
			    uint8_t *out)
{
	begin();
	server_name(name);
	fix_lengths();
	records(fragment);
	memcpy(out, before, n);
	memcpy(out + n, hello.records, hello.n_records);
	return n + hello.n_records;
}

#define CCS  "\x14\3\3\0\1\1"
#define DATA "\x17\3\3\0\3abc"

static void test_second_hello(void **state)
{
	struct sbx_tls_hello first = first_hello(false, "\2\3\4", 3),
			     early = first_hello(true, "\2\3\4", 3);
	static uint8_t out[HELLO_MAX];
	struct sbx_tls_watch w;
	size_t n, good;

	(void)state;
	assert_true(sbx_tls_watch_needed(&first));
	for (size_t fragment = 1; fragment < 200; fragment += 1 + fragment / 2) {
		n = second_flight(CCS, 6, "other.example.org", fragment, out);
		assert_int_equal(watch(&first, out, n, LIMIT, &w, &good), SBX_TLS_WATCH_HELLO);
		assert_int_equal(w.result, 0);
		assert_string_equal(w.hello.sni, "other.example.org");
		assert_int_equal(good, 6);
	}
	/* Data before the hello is skipped if the client offered early data; otherwise it ends the
	 * search. */
	n = second_flight(DATA DATA, 16, NAME, 50, out);
	assert_int_equal(watch(&early, out, n, LIMIT, &w, &good), SBX_TLS_WATCH_HELLO);
	assert_int_equal(good, 16);
	assert_int_equal(watch(&first, out, n, LIMIT, &w, &good), SBX_TLS_WATCH_OVER);
	/* One past the limit. */
	n = second_flight("", 0, NAME, 50, out);
	assert_int_equal(watch(&first, out, n, n, &w, &good), SBX_TLS_WATCH_HELLO);
	assert_int_equal(w.result, 0);
	assert_int_equal(watch(&first, out, n, n - 1, &w, &good), SBX_TLS_WATCH_HELLO);
	assert_int_equal(w.result, SBX_TLS_E_REJECT);
	assert_int_equal(w.hello.reason, SBX_REASON_OVERSIZED);
}

/* A client that offers only a draft of TLS 1.3 may be asked for another hello as well. */
static void test_versions(void **state)
{
	static const struct {
		const char *list;
		size_t n;
		bool needed;
	} lists[] = {
		{ "\2\3\4", 3, true },
		{ "\2\3\5", 3, true },
		{ "\2\x7f\x1c", 3, true },		 /* draft 28 */
		{ "\2\x7f\x01", 3, true },
		{ "\4\x7f\x17\3\3", 5, true },
		{ "\4\3\3\x7f\x17", 5, true },
		{ "\2\xfb\x17", 3, true },		 /* a private number */
		{ "\2\x7e\2", 3, true },
		{ "\2\x7f\x7f", 3, true },
		{ "\4\x0a\x0a\3\3", 5, false },	 /* GREASE */
		{ "\4\xfa\xfa\3\3", 5, false },
		{ "\4\x1a\x0a\3\3", 5, true },	 /* none */
		{ "\4\xfa\xfb\3\3", 5, true },
		{ "\4\3\3\3\2", 5, false },
		{ "\2\3\0", 3, false },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(lists); i++) {
		struct sbx_tls_hello first = first_hello(false, lists[i].list, lists[i].n);

		if (sbx_tls_watch_needed(&first) != lists[i].needed)
			fail_msg("list %zu", i);
	}
}

static void test_behind_the_first(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		int early, result;
	} streams[] = {
		{ CCS CCS, 12, false, SBX_TLS_WATCH_MORE },
		{ "\x15\3\3\0\2\1\0", 7, false, SBX_TLS_WATCH_MORE },
		{ CCS DATA, 14, false, SBX_TLS_WATCH_OVER },
		{ CCS DATA DATA, 22, true, SBX_TLS_WATCH_MORE },
		{ "\x16\3\3\0\4\x10\0\0\0", 9, false, SBX_TLS_WATCH_OVER }, /* TLS 1.2: a key */
		/* random bytes that begin as a hello does: too long for one, or followed by data */
		{ CCS "\x16\3\3\0\5\1\2\1\x45x", 16, false, SBX_TLS_WATCH_OVER },
		{ CCS "\x16\3\3\0\5\1\0\1\x44\3" DATA, 24, false, SBX_TLS_WATCH_OVER },
		{ CCS "\x16\3\3\0\5\1\1\0\0x" DATA, 24, false, SBX_TLS_WATCH_OVER },
		{ CCS "\x16\3\3\0\5\1\1\0\0x", 16, false, SBX_TLS_WATCH_MORE },
		{ CCS "\x16\3\3\0\5\1\1\0\0x" CCS, 22, false, SBX_TLS_WATCH_HELLO },
		{ CCS "\x16\3\3\0\5\1\1\0\0x" DATA, 24, true, SBX_TLS_WATCH_HELLO },
		{ CCS "\x16\3\3\0\5\1\0\1\x44\3" DATA, 24, true, SBX_TLS_WATCH_HELLO },
		{ CCS "\x16\3\3\0\5\1\0\1\x44\3" CCS, 22, false, SBX_TLS_WATCH_HELLO },
		{ "\x16\3\3\0\6\1\0\1\x44xx", 11, false, SBX_TLS_WATCH_HELLO },
		{ "\x16\3\3\0\3\1\2\1", 8, false, SBX_TLS_WATCH_MORE },
		{ "\x16\3\3\0\0\1", 6, false, SBX_TLS_WATCH_REJECT },
		{ "\x14\3\3\0\0" CCS, 11, false, SBX_TLS_WATCH_REJECT },
		{ "\x18\3\3\0\1x", 6, false, SBX_TLS_WATCH_REJECT }, /* a heartbeat */
		{ "GET / HTTP", 10, false, SBX_TLS_WATCH_REJECT },
		{ "\x17\3\3\xff\xff\0", 6, true, SBX_TLS_WATCH_REJECT },
	};
	struct sbx_tls_hello old = first_hello(false, "\2\3\3", 3),
			     first[] = { first_hello(false, "\2\3\4", 3),
					 first_hello(true, "\2\3\4", 3) };

	(void)state;
	assert_false(sbx_tls_watch_needed(&old));
	for (size_t i = 0; i < SBX_N_ELEMENTS(streams); i++) {
		struct sbx_tls_watch w;
		size_t good;

		assert_int_equal(watch(&first[streams[i].early], (const uint8_t *)streams[i].bytes,
				       streams[i].n, LIMIT, &w, &good),
				 streams[i].result);
		if (streams[i].result == SBX_TLS_WATCH_HELLO)
			assert_int_equal(w.result, SBX_TLS_E_REJECT);
	}
}

static void test_alert(void **state)
{
	uint8_t r[SBX_TLS_ALERT_LEN];

	(void)state;
	sbx_tls_alert_write(SBX_TLS_ALERT_ACCESS_DENIED, r);
	assert_memory_equal(r, "\x15\3\3\0\2\2\x31", 7);
	sbx_tls_alert_write(SBX_TLS_ALERT_UNRECOGNIZED_NAME, r);
	assert_memory_equal(r, "\x15\3\3\0\2\2\x70", 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_prefixes_need_more),
		cmocka_unit_test(test_any_records),
		cmocka_unit_test(test_real),
		cmocka_unit_test(test_earliest_byte),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_one_name),
		cmocka_unit_test(test_ech),
		cmocka_unit_test(test_extension_bodies),
		cmocka_unit_test(test_lengths_add_up),
		cmocka_unit_test(test_fixed_fields),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_versions), cmocka_unit_test(test_second_hello),
		cmocka_unit_test(test_behind_the_first),
		cmocka_unit_test(test_alert),
	};

	return cmocka_run_group_tests_name("tls_client_hello", tests, NULL, NULL);
}
