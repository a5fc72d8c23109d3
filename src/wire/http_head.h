/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_WIRE_HTTP_HEAD_H
#define SBX_WIRE_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/hostname.h"
#include "base/reason.h"
#include "base/span.h"
#include "wire/http_body.h"

/*
 * The client's direction of an HTTP/1 connection (RFC 9112), judged request by request. The caller
 * sees every head before it carries a byte of it, and every body is measured exactly, so that no
 * request can hide in another's body. A request that two servers could read differently is refused.
 * PURE; the bytes are hostile.
 *
 * The caller keeps a buffer of the bytes that it received and has not carried, and calls
 * sbx_http_judge_next() with all of it:
 *   0                   an event: it covers the first event.n bytes. The caller carries or drops
 *                       them and removes them from its buffer before the next call
 *   SBX_HTTP_E_MORE     call again with the same bytes and more after them
 *   SBX_HTTP_E_REJECT   deny for judge.reason; no byte in the buffer may be carried
 * The buffer holds the limit given to init; a longer head is rejected.
 */

enum sbx_http_event_kind {
	SBX_HTTP_HEAD = 0, /* a complete request head, fields below */
	SBX_HTTP_BODY, /* bytes of the last head's body, framing included; n is at least 1 */
};

struct sbx_http_event {
	enum sbx_http_event_kind kind;
	size_t n; /* bytes of the buffer that the event covers */

	/* HEAD only. The spans borrow from the buffer. */
	struct sbx_span method, target;	 /* as sent */
	uint8_t version_minor;		 /* HTTP/1.x: 0 or 1 */
	/* Normalised name, or an address as formatted by base. Loose: "" if the request
	 * names none. */
	char host[SBX_HOSTNAME_MAX + 1];
	struct sbx_addr host_addr;	 /* the address when Host is one, else family 0 */
	uint16_t host_port;		 /* as given; 0: none given */
	enum sbx_http_framing framing;
	uint64_t content_length; /* FRAMING_LENGTH */
	bool upgrade;		 /* loose only: it asks to leave HTTP/1 */
};

struct sbx_http_judge {
	/* Valid once next returned SBX_HTTP_E_REJECT: HTTP_MALFORMED, HOST_ABSENT, HOST_DUPLICATE,
	 * HOST_MISMATCH (target and Host disagree), HTTP_UPGRADE or OVERSIZED. */
	enum sbx_reason reason;
	bool is_http; /* valid with `reason`: a server may take these bytes for HTTP/1 */

	bool over_tls; /* for the caller to set: absolute targets are https, their port 443 */

	/* Private. */
	bool loose;
	uint8_t state;
	bool cr; /* the byte before scanned was a CR */
	size_t limit;
	size_t scanned; /* bytes of the buffer that were looked at, from the start of the head */
	size_t line;	/* where the current line began */
	size_t n_method, n_target; /* "METHOD SP TARGET SP ..."; n_method 0: no request line yet */
	uint8_t version_minor;
	bool host_seen, target_seen, length_seen, chunked, upgrade;
	uint64_t content_length;
	struct sbx_http_authority {
		char host[SBX_HOSTNAME_MAX + 1];
		struct sbx_addr addr;
		uint16_t port;
	} host, target; /* of the Host field; of a target in absolute form */
	struct sbx_http_body body;
};

#define SBX_HTTP_METHOD_MAX 32

/* @limit_bytes bounds each head. @loose: the flow need not be HTTP/1 with a Host. A request that
 * names no host, or asks to leave HTTP/1 (but not CONNECT and HTTP/2's preface), is an event like
 * any other, so that a name in it is seen. */
void sbx_http_judge_init(struct sbx_http_judge *j, size_t limit_bytes, bool loose);

/* See above. Results and byte counts do not depend on how the stream was cut; only the sizes of
 * BODY events do. */
int sbx_http_judge_next(struct sbx_http_judge *j, struct sbx_span buffer,
			struct sbx_http_event *ret_event);

/* The number of next bytes (after the last event) that are opaque body data and may be spliced
 * unseen; 0 while a head or chunk framing is due. */
uint64_t sbx_http_judge_opaque(const struct sbx_http_judge *j);
/* The caller carried the next @n bytes itself; @n <= sbx_http_judge_opaque(). */
void sbx_http_judge_skip(struct sbx_http_judge *j, uint64_t n);
/* Is the judge between requests? Then no part of a head was seen and no body is due, so an EOF is
 * clean (if the caller's buffer is empty). */
bool sbx_http_judge_idle(const struct sbx_http_judge *j);

#endif
