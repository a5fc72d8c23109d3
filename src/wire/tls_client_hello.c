/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the server's name out of a TLS client's first message, before a byte of it is sent on.
 *
 * There are two layers, both fed in pieces. The record layer (RFC 8446 section 5.1) strips the
 * headers: a sender may cut the message into records of any size down to one byte, and evades a
 * filter that reads only the first record. The message layer is a table of states. Each state takes
 * a known number of bytes, gathers them in buf or skips them, and then decides on the next state.
 * The bytes are taken off body_left on entry, so a length that does not fit is refused at once, and
 * the message must end exactly with its last extension.
 *
 * Only server_name, ALPN and supported_versions are gathered. Other extensions are skipped, so the
 * work is linear in the bytes for any pieces, and the struct is all the memory.
 *
 * The same machine reads a second ClientHello (sbx_tls_watch_next). In TLS 1.3 a server may ask for
 * it (HelloRetryRequest), and then uses the name in it. After the first hello only a second hello,
 * CCS and alerts come in the clear. Application data means that no second hello comes, unless early
 * data was offered: a server that asks for a second hello skips early data. A client that offered
 * 1.3 may get TLS 1.2. Then the next handshake record of a resumed session is short and has random
 * bytes; one in 256 begins like a hello. Few of those state a length that a server accepts, and
 * application data follows them.
 *
 * Encrypted data is not read. A server that serves other names than the one in the SNI (domain
 * fronting) cannot be seen without terminating TLS.
 */

#include "wire/tls_client_hello.h"

#include <assert.h>
#include <string.h>

#define RECORD_CCS	       20
#define RECORD_ALERT	       21
#define RECORD_HANDSHAKE       22
#define RECORD_DATA	       23
#define RECORD_HEAD_LEN	       5
#define RECORD_PROTECTED_MAX   (RECORD_FRAGMENT_MAX + 2048u) /* RFC 5246 section 6.2.3 */
#define RECORD_FRAGMENT_MAX    16384u
#define HANDSHAKE_HEAD_LEN     4
#define HANDSHAKE_CLIENT_HELLO 1
#define SERVERS_HELLO_MAX      131396u /* OpenSSL's limit, the largest: servers refuse longer
				        * ones */
#define VERSION_TLS13	       0x0304u

/* IANA "TLS ExtensionType Values". */
enum {
	EXT_SERVER_NAME = 0,
	EXT_ALPN = 16,
	EXT_EARLY_DATA = 42,
	EXT_SUPPORTED_VERSIONS = 43,
	EXT_ECH = 0xfe0d,
	EXT_ESNI = 0xffce, /* draft-ietf-tls-esni up to 06 */
};

/* In the order of the message. */
enum state {
	ST_TYPE = 0,
	ST_LENGTH,
	ST_VERSION,
	ST_RANDOM,
	ST_SESSION_LEN,
	ST_SESSION,
	ST_CIPHERS_LEN,
	ST_CIPHERS,
	ST_COMPRESSION_LEN,
	ST_COMPRESSION,
	ST_EXTENSIONS_LEN,
	ST_EXT_HEAD,
	ST_EXT_PASS,
	ST_EXT_READ,
	N_READING,
	ST_DONE = N_READING, /* results are valid; no byte is looked at any more */
	ST_REJECTED,	     /* reason is set; no byte is looked at any more */
};

static void reject(struct sbx_tls_hello *h, enum sbx_reason reason)
{
	h->state = ST_REJECTED;
	h->reason = reason;
}

static void malformed(struct sbx_tls_hello *h)
{
	reject(h, SBX_REASON_TLS_MALFORMED);
}

/* Go to the state @next, which takes @n bytes of the message. */
static void take(struct sbx_tls_hello *h, enum state next, size_t n)
{
	if (n > h->body_left) {
		malformed(h);
		return;
	}
	h->state = (uint8_t)next;
	h->body_left -= n;
	h->want = n;
	h->have = 0;
}

static uint16_t gathered_u16(const struct sbx_tls_hello *h, size_t at)
{
	return (uint16_t)(h->buf[at] << 8 | h->buf[at + 1]);
}

static void finish(struct sbx_tls_hello *h)
{
	/* Nothing may follow a ClientHello before the server has answered it. */
	if (h->record_left)
		malformed(h);
	else if (!h->sni_seen)
		reject(h, SBX_REASON_SNI_ABSENT);
	else
		h->state = ST_DONE;
}

static void next_extension(struct sbx_tls_hello *h)
{
	if (h->body_left)
		take(h, ST_EXT_HEAD, 4);
	else
		finish(h);
}

/* --- the states: what each does when its bytes have come --- */

static void on_type(struct sbx_tls_hello *h)
{
	if (h->buf[0] == HANDSHAKE_CLIENT_HELLO)
		take(h, ST_LENGTH, 3);
	else
		malformed(h);
}

static void on_length(struct sbx_tls_hello *h)
{
	size_t n = (size_t)h->buf[0] << 16 | gathered_u16(h, 1);

	if (n > h->limit - h->n_consumed) {
		reject(h, SBX_REASON_OVERSIZED);
		return;
	}
	h->body_left = n;
	take(h, ST_VERSION, 2);
}

static void on_version(struct sbx_tls_hello *h)
{
	h->version_max = gathered_u16(h, 0);
	if (h->version_max >> 8 == 3)
		take(h, ST_RANDOM, 32);
	else
		malformed(h);
}

static void on_random(struct sbx_tls_hello *h)
{
	take(h, ST_SESSION_LEN, 1);
}

static void on_session_len(struct sbx_tls_hello *h)
{
	if (h->buf[0] <= 32)
		take(h, ST_SESSION, h->buf[0]);
	else
		malformed(h);
}

static void on_session(struct sbx_tls_hello *h)
{
	take(h, ST_CIPHERS_LEN, 2);
}

static void on_ciphers_len(struct sbx_tls_hello *h)
{
	size_t n = gathered_u16(h, 0);

	if (n >= 2 && n % 2 == 0)
		take(h, ST_CIPHERS, n);
	else
		malformed(h);
}

static void on_ciphers(struct sbx_tls_hello *h)
{
	take(h, ST_COMPRESSION_LEN, 1);
}

static void on_compression_len(struct sbx_tls_hello *h)
{
	if (h->buf[0])
		take(h, ST_COMPRESSION, h->buf[0]);
	else
		malformed(h);
}

static void on_compression(struct sbx_tls_hello *h)
{
	/* Before TLS 1.3 a hello could end here. */
	if (h->body_left)
		take(h, ST_EXTENSIONS_LEN, 2);
	else
		finish(h);
}

static void on_extensions_len(struct sbx_tls_hello *h)
{
	if (gathered_u16(h, 0) == h->body_left)
		next_extension(h);
	else
		malformed(h);
}

/* RFC 8446 section 4.2: no type twice. false: refused. */
static bool note_type(struct sbx_tls_hello *h, uint16_t type)
{
	for (size_t i = 0; i < h->n_types; i++) {
		if (h->types[i] != type)
			continue;
		reject(h, type == EXT_SERVER_NAME ? SBX_REASON_SNI_DUPLICATE
						  : SBX_REASON_TLS_MALFORMED);
		return false;
	}
	if (h->n_types == SBX_TLS_EXTENSIONS_MAX) {
		reject(h, SBX_REASON_OVERSIZED);
		return false;
	}
	h->types[h->n_types++] = type;
	return true;
}

static void on_ext_head(struct sbx_tls_hello *h)
{
	uint16_t type = gathered_u16(h, 0);
	size_t n = gathered_u16(h, 2);
	bool is_read =
		type == EXT_SERVER_NAME || type == EXT_ALPN || type == EXT_SUPPORTED_VERSIONS;

	if (type == EXT_ECH || type == EXT_ESNI) {
		reject(h, SBX_REASON_ECH);
		return;
	}
	if (!note_type(h, type))
		return;
	h->ext_type = type;
	h->early_data |= type == EXT_EARLY_DATA;
	if (n > h->body_left)
		malformed(h);
	else if (is_read && n > sizeof(h->buf))
		reject(h, SBX_REASON_OVERSIZED);
	else
		take(h, is_read ? ST_EXT_READ : ST_EXT_PASS, n);
}

/* RFC 6066 section 3: a list of one host_name; no other type of name was ever defined. */
static void read_server_name(struct sbx_tls_hello *h, struct sbx_reader *r)
{
	size_t n_list = sbx_read_u16(r);
	uint8_t type = sbx_read_u8(r);
	struct sbx_span name = sbx_read_bytes(r, sbx_read_u16(r));
	int e;

	if (r->failed || n_list != r->n - 2 || type != 0) {
		malformed(h);
		return;
	}
	if (r->pos < r->n) {
		reject(h, r->p[r->pos] == 0 ? SBX_REASON_SNI_DUPLICATE : SBX_REASON_TLS_MALFORMED);
		return;
	}
	e = sbx_hostname_normalise((const char *)name.p, name.n, h->sni);
	if (e == SBX_HOSTNAME_E_ADDRESS)
		reject(h, SBX_REASON_SNI_MISMATCH);
	else if (e)
		malformed(h);
	h->sni_seen = true;
}

static bool span_is(struct sbx_span s, const char *text)
{
	return s.n == strlen(text) && !memcmp(s.p, text, s.n);
}

/* RFC 7301 section 3.1. */
static void read_alpn(struct sbx_tls_hello *h, struct sbx_reader *r)
{
	size_t n_list = sbx_read_u16(r);

	if (r->failed || n_list != r->n - 2 || n_list < 2) {
		malformed(h);
		return;
	}
	while (!r->failed && r->pos < r->n) {
		struct sbx_span name = sbx_read_bytes(r, sbx_read_u8(r));

		if (r->failed || !name.n)
			malformed(h);
		else if (span_is(name, "h2"))
			h->alpn_h2 = true;
		else if (span_is(name, "http/1.1"))
			h->alpn_http11 = true;
		else
			h->alpn_other = true;
	}
}

/* RFC 8701. */
static bool is_grease(uint16_t v)
{
	return (v & 0x0f0f) == 0x0a0a && v >> 8 == (v & 0xff);
}

/* RFC 8446 section 4.2.1. Drafts of TLS 1.3 are 0x7f00 and more, or private numbers. */
static void read_versions(struct sbx_tls_hello *h, struct sbx_reader *r)
{
	size_t n_list = sbx_read_u8(r);
	uint16_t max = 0;

	if (r->failed || n_list != r->n - 1 || n_list < 2 || n_list % 2) {
		malformed(h);
		return;
	}
	while (r->pos < r->n) {
		uint16_t v = sbx_read_u16(r);

		if (v >> 8 != 3)
			v = is_grease(v) ? 0 : VERSION_TLS13;
		if (v > max)
			max = v;
	}
	h->version_max = max;
}

static void on_ext_read(struct sbx_tls_hello *h)
{
	struct sbx_reader r = sbx_reader(sbx_span(h->buf, h->want));

	if (h->ext_type == EXT_SERVER_NAME)
		read_server_name(h, &r);
	else if (h->ext_type == EXT_ALPN)
		read_alpn(h, &r);
	else
		read_versions(h, &r);
	if (h->state != ST_REJECTED)
		next_extension(h);
}

static const struct {
	bool pass; /* the bytes are not gathered in buf */
	void (*done)(struct sbx_tls_hello *h);
} states[N_READING] = {
	[ST_TYPE] = { false, on_type },
	[ST_LENGTH] = { false, on_length },
	[ST_VERSION] = { false, on_version },
	[ST_RANDOM] = { true, on_random },
	[ST_SESSION_LEN] = { false, on_session_len },
	[ST_SESSION] = { true, on_session },
	[ST_CIPHERS_LEN] = { false, on_ciphers_len },
	[ST_CIPHERS] = { true, on_ciphers },
	[ST_COMPRESSION_LEN] = { false, on_compression_len },
	[ST_COMPRESSION] = { true, on_compression },
	[ST_EXTENSIONS_LEN] = { false, on_extensions_len },
	[ST_EXT_HEAD] = { false, on_ext_head },
	[ST_EXT_PASS] = { true, next_extension },
	[ST_EXT_READ] = { false, on_ext_read },
};

/* --- the record layer --- */

/* One byte of a record header. Each byte is judged at once, so that plain HTTP, SSH or an SSLv2
 * hello is refused with its first byte and not waited for. */
static void record_head_byte(struct sbx_tls_hello *h, uint8_t b)
{
	bool ok = true;

	switch (h->n_record_head++) {
	case 0:
		h->record_type = b;
		/* In a first record of another type the next byte tells whether the stream is
		 * TLS at all. */
		ok = b == RECORD_HANDSHAKE ||
		     (h->n_consumed == 1 && b >= RECORD_CCS && b <= RECORD_DATA);
		break;
	case 1:
		ok = b == 3; /* the minor version must be ignored, RFC 8446 section 5.1 */
		h->is_tls |= ok;
		ok = ok && h->record_type == RECORD_HANDSHAKE;
		break;
	case 3:
		ok = b <= RECORD_FRAGMENT_MAX >> 8;
		h->record_left = (uint16_t)(b << 8);
		break;
	case 4:
		h->record_left |= b;
		h->n_record_head = 0;
		ok = h->record_left > 0 && h->record_left <= RECORD_FRAGMENT_MAX;
		break;
	}
	if (!ok)
		malformed(h);
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Bytes of the message: as many as the present state still takes and the record holds. */
static size_t message_bytes(struct sbx_tls_hello *h, struct sbx_span bytes)
{
	size_t n = min(min(bytes.n, h->record_left), h->want - h->have);

	n = min(n, h->limit - h->n_consumed);
	if (!states[h->state].pass) {
		assert(n <= sizeof(h->buf) - h->have);
		memcpy(h->buf + h->have, bytes.p, n);
	}
	h->have += n;
	h->record_left -= (uint16_t)n;
	h->n_consumed += n;
	/* A state may take nothing, as an empty extension does. */
	while (h->state < N_READING && h->have == h->want)
		states[h->state].done(h);
	return n;
}

void sbx_tls_hello_init(struct sbx_tls_hello *h, size_t limit_bytes)
{
	*h = (struct sbx_tls_hello){ .limit = limit_bytes, .body_left = HANDSHAKE_HEAD_LEN };
	take(h, ST_TYPE, 1);
}

int sbx_tls_hello_feed(struct sbx_tls_hello *h, struct sbx_span bytes)
{
	size_t pos = 0;

	while (h->state < N_READING && h->n_consumed < h->limit && pos < bytes.n) {
		if (h->record_left && !h->n_record_head) {
			pos += message_bytes(h, sbx_span(bytes.p + pos, bytes.n - pos));
		} else {
			h->n_consumed++;
			record_head_byte(h, bytes.p[pos++]);
		}
	}
	if (h->state < N_READING && h->n_consumed == h->limit)
		reject(h, SBX_REASON_OVERSIZED);
	if (h->state == ST_DONE)
		return 0;
	return h->state == ST_REJECTED ? SBX_TLS_E_REJECT : SBX_TLS_E_MORE;
}

/* --- behind the first hello --- */

void sbx_tls_watch_init(struct sbx_tls_watch *w, const struct sbx_tls_hello *first,
			size_t limit_bytes)
{
	*w = (struct sbx_tls_watch){ .limit = limit_bytes, .early_data = first->early_data };
}

bool sbx_tls_watch_needed(const struct sbx_tls_hello *first)
{
	return first->version_max >= VERSION_TLS13;
}

/* Did application data come in the place of the rest of a hello? Then it was no hello: the session
 * is resumed. */
static bool is_resumed(const struct sbx_tls_watch *w, struct sbx_span bytes)
{
	return !w->early_data && w->hello.n_record_head == 1 &&
	       bytes.p[w->hello.n_consumed - 1] == RECORD_DATA;
}

static int read_another(struct sbx_tls_watch *w, struct sbx_span bytes)
{
	if (!w->n_fed)
		sbx_tls_hello_init(&w->hello, w->limit);
	w->result = sbx_tls_hello_feed(&w->hello, sbx_span(bytes.p + w->n_fed, bytes.n - w->n_fed));
	w->n_fed = bytes.n;
	if (w->result == SBX_TLS_E_MORE)
		return SBX_TLS_WATCH_MORE;
	return w->result != 0 && is_resumed(w, bytes) ? SBX_TLS_WATCH_OVER : SBX_TLS_WATCH_HELLO;
}

/* A handshake record begins at @bytes, with @n bytes of fragment. */
static int read_handshake(struct sbx_tls_watch *w, struct sbx_span bytes, size_t n)
{
	const uint8_t *p = bytes.p + RECORD_HEAD_LEN;
	size_t n_hello;

	if (p[0] != HANDSHAKE_CLIENT_HELLO)
		return SBX_TLS_WATCH_OVER;
	if (n < HANDSHAKE_HEAD_LEN) /* too short for a record of random bytes: a hello */
		return read_another(w, bytes);
	if (bytes.n < RECORD_HEAD_LEN + HANDSHAKE_HEAD_LEN)
		return SBX_TLS_WATCH_MORE;
	n_hello = (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
	if (n_hello > SERVERS_HELLO_MAX)
		return SBX_TLS_WATCH_OVER;
	/* The hello would be longer than the limit. It is no hello if application data follows the
	 * record. */
	if (n_hello > w->limit && n_hello > n && !w->early_data) {
		if (bytes.n <= RECORD_HEAD_LEN + n)
			return SBX_TLS_WATCH_MORE;
		if (bytes.p[RECORD_HEAD_LEN + n] == RECORD_DATA)
			return SBX_TLS_WATCH_OVER;
	}
	return read_another(w, bytes);
}

/* A record begins at @bytes. *ret_n: its size, if it passes and others may follow. */
static int judge_record(struct sbx_tls_watch *w, struct sbx_span bytes, size_t *ret_n)
{
	size_t n;

	*ret_n = 0;
	if (bytes.n < RECORD_HEAD_LEN + 1) /* the header, and the type of a handshake message */
		return SBX_TLS_WATCH_MORE;
	n = (size_t)bytes.p[3] << 8 | bytes.p[4];
	if (bytes.p[1] != 3 || n == 0 || n > RECORD_PROTECTED_MAX)
		return SBX_TLS_WATCH_REJECT;
	switch (bytes.p[0]) {
	case RECORD_HANDSHAKE:
		return read_handshake(w, bytes, n);
	case RECORD_DATA:
		if (!w->early_data)
			return SBX_TLS_WATCH_OVER;
		break;
	case RECORD_CCS:
	case RECORD_ALERT:
		break;
	default:
		return SBX_TLS_WATCH_REJECT;
	}
	*ret_n = RECORD_HEAD_LEN + n;
	return SBX_TLS_WATCH_MORE;
}

int sbx_tls_watch_next(struct sbx_tls_watch *w, struct sbx_span bytes, size_t *ret_n)
{
	size_t pos = 0;
	int r;

	for (;;) {
		size_t n = min(w->pass, bytes.n - pos);

		pos += n;
		w->pass -= n;
		*ret_n = pos;
		if (pos == bytes.n)
			return SBX_TLS_WATCH_MORE;
		r = judge_record(w, sbx_span(bytes.p + pos, bytes.n - pos), &w->pass);
		if (r != SBX_TLS_WATCH_MORE || !w->pass)
			return r;
	}
}

void sbx_tls_alert_write(enum sbx_tls_alert alert, uint8_t ret_record[SBX_TLS_ALERT_LEN])
{
	/* An alert record of TLS 1.2, two bytes: fatal, and what for (RFC 8446 section 6). */
	const uint8_t record[SBX_TLS_ALERT_LEN] = { 21, 3, 3, 0, 2, 2, (uint8_t)alert };

	memcpy(ret_record, record, sizeof(record));
}
