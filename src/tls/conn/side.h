/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_CONN_SIDE_H
#define SBX_TLS_CONN_SIDE_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/*
 * One socket of a connection, with TLS or without, and the bytes that wait to be written to it.
 * Events are edge-triggered: `readable` stays set until a call would block. An event of room to
 * write gives the connection a turn, which writes what waits.
 */

enum sbx_io {
	SBX_IO_ON = 0, /* bytes moved */
	SBX_IO_WAIT,   /* until the socket is ready */
	SBX_IO_EOF,    /* the peer's orderly end */
	SBX_IO_CUT,    /* the end without TLS's close_notify: the last bytes may be missing */
	SBX_IO_FAILED, /* reset, or broken TLS */
};

struct sbx_side {
	int fd; /* owned; -1: closed */
	SSL *ssl; /* owned; NULL: plain */
	struct event ev;
	bool readable;
	bool shut;	/* our end was sent */
	bool at_end;	/* the peer's end was read */
	bool shared;	/* the broker has the socket too: a close alone does not end it */
	bool holds;	/* the kernel may hold back the last bytes: sbx_side_push() */
	uint8_t *first; /* heap: bytes that were read from fd before */
	size_t first_at, n_first;
	uint8_t *out; /* heap: to be written */
	size_t out_at, n_out, n_out_max;
	uint64_t n_read, n_written; /* of the protocol above TLS */
};

/* Takes over @fd, which is made non-blocking, and watches it: @callback gets every event. 0 or
 * -errno. */
int sbx_side_init(struct sbx_side *s, struct event_base *base, int fd_take,
		  event_callback_fn callback, void *userdata);
/* Copies bytes that were read from fd already: they are read first. 0 or -ENOMEM. */
int sbx_side_preload(struct sbx_side *s, struct sbx_span first);
/* Puts TLS on top; takes over @ssl. 0 or -ENOMEM (then @ssl is freed). */
int sbx_side_start_tls(struct sbx_side *s, SSL *ssl_take);
void sbx_side_fini(struct sbx_side *s);
void sbx_side_note(struct sbx_side *s, short what); /* an event's flags */

/* Carries the handshake on: ON, it is done; WAIT; FAILED. */
enum sbx_io sbx_side_handshake(struct sbx_side *s);
/* Reads at most @n bytes. */
enum sbx_io sbx_side_read(struct sbx_side *s, void *p, size_t n, size_t *ret_n);
/* Queues bytes; nothing is written before sbx_side_flush(). 0 or -ENOMEM. */
int sbx_side_queue(struct sbx_side *s, struct sbx_span bytes);
/* Bytes that wait. */
static inline size_t sbx_side_waiting(const struct sbx_side *s)
{
	return s->n_out - s->out_at;
}
/* Throws away what waits. */
void sbx_side_unqueue(struct sbx_side *s);
/* Writes what waits: ON, nothing waits any more; WAIT; FAILED. */
enum sbx_io sbx_side_flush(struct sbx_side *s);
/* Writes @bytes at once as far as that goes, and queues the rest: for bytes that nothing takes
 * back. ON, WAIT (some were queued), FAILED. */
enum sbx_io sbx_side_write(struct sbx_side *s, struct sbx_span bytes);
/* At the end of a turn: what the kernel holds back leaves. */
void sbx_side_push(struct sbx_side *s);
/* Sends our end of the stream. The caller has flushed all bytes that were queued. */
void sbx_side_shutdown(struct sbx_side *s);

#endif
