/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_WIRE_TLS_CLIENT_HELLO_H
#define SBX_WIRE_TLS_CLIENT_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hostname.h"
#include "base/reason.h"
#include "base/span.h"

/*
 * The first flight of a TLS client (RFC 8446 section 4.1.2, RFC 5246 section 7.4.1.2), read as far
 * as is needed to know which server it names. Fed in pieces of any size, keeps no copy of what it
 * was fed (the caller does, to forward it), runs in time linear in the bytes and in fixed memory.
 * The bytes are hostile. PURE.
 */

enum {
	SBX_TLS_E_MORE = 1, /* not complete yet */
	SBX_TLS_E_REJECT,   /* deny; see .reason. Every later feed says the same */
};

#define SBX_TLS_EXTENSIONS_MAX 64 /* extensions of one hello; more: oversized */
/* Bytes of an extension that we read (server_name, ALPN, supported_versions); more: oversized. */
#define SBX_TLS_EXT_READ_MAX 512

struct sbx_tls_hello {
	/* Results, valid once feed returned 0. */
	char sni[SBX_HOSTNAME_MAX + 1]; /* the one host_name, normalised */
	/* The largest of supported_versions, else legacy_version. 0x0304 is TLS 1.3; drafts of it
	 * and unknown versions count as TLS 1.3. */
	uint16_t version_max;
	bool alpn_h2, alpn_http11, alpn_other; /* offered protocols; all false: no ALPN */
	bool early_data;   /* offered: records of application data may come before a second hello */
	size_t n_consumed; /* bytes of the stream up to the end of the ClientHello's last record */

	/* Valid once feed returned SBX_TLS_E_REJECT: TLS_MALFORMED, SNI_ABSENT, SNI_DUPLICATE,
	 * SNI_MISMATCH (the name reads as an IPv4 address), ECH or OVERSIZED. */
	enum sbx_reason reason;
	/* Valid with `reason`: the stream began as a TLS record does, so a server may take it for a
	 * hello. */
	bool is_tls;

	/* Private. */
	uint8_t state;
	uint8_t record_type;
	bool sni_seen;
	uint8_t n_record_head; /* bytes of the record header seen, 0..4 */
	uint16_t record_left;  /* bytes of the record's fragment to come */
	size_t limit;
	size_t want, have; /* bytes the present state takes, and has */
	size_t body_left;  /* bytes of the message that no state has claimed yet */
	uint16_t ext_type;
	uint16_t n_types;
	uint16_t types[SBX_TLS_EXTENSIONS_MAX];
	uint8_t buf[SBX_TLS_EXT_READ_MAX];
};

/* @limit_bytes bounds the stream up to the end of the ClientHello, record headers included. */
void sbx_tls_hello_init(struct sbx_tls_hello *h, size_t limit_bytes);

/*
 * Judge the next bytes of the stream; bytes after the ClientHello's last record are not looked at.
 * 0: complete, results valid (stays so: later feeds return 0 and look at nothing).
 * SBX_TLS_E_MORE, SBX_TLS_E_REJECT. The outcome does not depend on how the stream was cut, and a
 * reject comes with the first byte that shows it.
 *
 * Refused: anything but handshake records and one ClientHello that fills its records exactly; empty
 * fragments; lengths that do not add up; an extension given twice; a server_name that is absent,
 * not exactly one host_name, an address or no host name (NUL and control bytes included);
 * encrypted_client_hello (also as GREASE: it cannot be told apart) and its predecessor ESNI.
 */
int sbx_tls_hello_feed(struct sbx_tls_hello *h, struct sbx_span bytes);

/*
 * The bytes that a client sends after its first ClientHello, as long as a second hello may come
 * unencrypted. A server that asks for a second hello (HelloRetryRequest, RFC 8446 section 4.1.4)
 * takes the name from it. We do not see the server's request.
 */
enum {
	SBX_TLS_WATCH_OVER = 0, /* no second hello can come: later bytes need no look */
	SBX_TLS_WATCH_MORE,	/* not known yet */
	SBX_TLS_WATCH_HELLO,	/* a second hello was read: judge .hello by .result */
	SBX_TLS_WATCH_REJECT,	/* bytes that no TLS client sends there */
};

struct sbx_tls_watch {
	struct sbx_tls_hello hello; /* valid with SBX_TLS_WATCH_HELLO */
	int result;		    /* of sbx_tls_hello_feed(): 0 or SBX_TLS_E_REJECT */

	/* Private. */
	size_t limit;
	size_t pass;	 /* bytes to come of a record that is of no interest */
	size_t n_fed;	 /* bytes of a second hello that were looked at */
	bool early_data; /* offered: application data does not exclude a second hello */
};

/* May a server ask for a second hello after @first? */
bool sbx_tls_watch_needed(const struct sbx_tls_hello *first);

/* @first was read to its end: accepted, or rejected with SNI_ABSENT. @limit_bytes bounds the second
 * as in sbx_tls_hello_init(). */
void sbx_tls_watch_init(struct sbx_tls_watch *w, const struct sbx_tls_hello *first,
			size_t limit_bytes);

/*
 * Judge the bytes after the first hello's last record. The first *ret_n of them may be carried. The
 * caller shows the rest (at most the limit and a few bytes) again, with more behind it. Returns
 * SBX_TLS_WATCH_*; after any but MORE it is not called again.
 */
int sbx_tls_watch_next(struct sbx_tls_watch *w, struct sbx_span bytes, size_t *ret_n);

/* RFC 8446 section 6: the alerts that a refused client gets. */
enum sbx_tls_alert {
	SBX_TLS_ALERT_ACCESS_DENIED = 49,
	SBX_TLS_ALERT_DECODE_ERROR = 50,
	SBX_TLS_ALERT_INTERNAL_ERROR = 80,
	SBX_TLS_ALERT_UNRECOGNIZED_NAME = 112,
};

#define SBX_TLS_ALERT_LEN 7

/* A fatal alert as one plaintext record. */
void sbx_tls_alert_write(enum sbx_tls_alert alert, uint8_t ret_record[SBX_TLS_ALERT_LEN]);

#endif
