/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_CONN_CONN_H
#define SBX_TLS_CONN_CONN_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/request.h"
#include "ipc/messages.h"
#include "tls/conn/context.h"
#include "tls/conn/side.h"

/*
 * One connection of the sandbox to a terminated host, with its connection to the server. The list
 * in the context owns it.
 *
 *   HANDSHAKES  entered with TLS_FLOW. The client's hello says which protocols it speaks; with them
 *               the server is asked; then the client gets the server's choice. A server that fails
 *               (no TLS, a certificate that is not trusted) is noted in `broken`: each request is
 *               answered with 502.   -> SERVING. Gone: the client's handshake fails, timeout
 *   SERVING     requests and responses (a room for each protocol).
 *               -> LINGERING: the last response is written. Gone: reset, idle
 *   LINGERING   our end is sent; what the client still sends is thrown away until it closes: a
 *               close with unread bytes would send a RST that can overtake the response. -> gone
 */
enum sbx_conn_state { SBX_CONN_HANDSHAKES = 0, SBX_CONN_SERVING, SBX_CONN_LINGERING };

struct sbx_conn {
	struct sbx_tls_context *ctx;
	struct sbx_conn *prev, *next;
	uint32_t flow; /* the broker's number */
	const struct sbx_http_entry *entry; /* of the rules, or the next */
	struct sbx_http_entry live;	    /* of a live rule, which came with the flow */
	char *live_text;		    /* heap: of its spans */
	struct sbx_addr addr;
	uint16_t port;
	bool tls;
	bool echo; /* the self-test's: there is no server, and it counts as TLS */
	char name[SBX_HOSTNAME_MAX + 1];
	/* The Host that the server gets: the one spelling of the name that was judged, with the
	 * port if it is not the scheme's own. */
	char authority[SBX_HOSTNAME_MAX + 16];
	uint8_t state; /* enum sbx_conn_state */
	bool has_hello, asked, answered; /* the client's hello was read; the server was asked, and
					  * has answered or failed */
	bool offers_h2, offers_http1;
	bool h2; /* the protocol of both sides */
	struct sbx_side client, server;
	struct sbx_http_verdict broken; /* reason UNKNOWN: the server is good */
	struct event timer;
	struct event turn; /* gives it another turn in the loop's next round */
	const struct sbx_protocol *protocol; /* of SERVING */
	void *http;			     /* the protocol's state; it frees it */
};

/* May the flow be judged by the live rule that came with it? The name must be one of the rules'
 * live names, and neither an entry nor a secret may be for it: the live rule could lift them. */
bool sbx_conn_may_be_live(const struct sbx_tls_context *ctx, const struct sbx_msg_tls_flow *flow);
/* Takes over @fds: the client's socket and the server's. 0: the connection lives, or has ended and
 * the broker was told. -ENOMEM, or -EBADMSG (the text of a live rule): there is none, and the
 * broker was not told; @fds are closed. */
int sbx_conn_new(struct sbx_tls_context *ctx, const struct sbx_msg_tls_flow *flow,
		 const int fds_take[2]);
/* Ends it: both sides are closed, and then the broker is told. */
void sbx_conn_free(struct sbx_conn *c);
/* The same with a RST to the client: a message was cut. */
void sbx_conn_abort(struct sbx_conn *c);
/* The broker's TLS_CUT: ends the flow's connection with a RST to both sides. Nothing happens if it
 * has ended. */
void sbx_conn_cut(struct sbx_tls_context *ctx, uint32_t flow);
/* Everything is written to the client: waits for it to close. */
void sbx_conn_linger(struct sbx_conn *c);
/* The server ended before it was asked (it may want a client certificate): its side is closed, and
 * the reason is in c->broken. */
void sbx_conn_break(struct sbx_conn *c);
/* Another turn for the connection, after the others. */
void sbx_conn_again(struct sbx_conn *c);

#define SBX_CONN_ASKED_MAX 160 /* bytes of sbx_http_request_text() that are kept */

/* Tells the broker of a refused request. @request: sbx_http_request_text(); "" unknown. */
void sbx_conn_report(struct sbx_conn *c, const struct sbx_http_verdict *v, const char *request);

/* The callbacks of the SSL_CTX that towards clients and servers use. */
int sbx_conn_on_hello(SSL *ssl, int *al, void *userdata);
int sbx_conn_on_alpn(SSL *ssl, const uint8_t **out, uint8_t *n_out, const uint8_t *in,
		     unsigned int n_in, void *userdata);
int sbx_conn_on_session(SSL *ssl, SSL_SESSION *session);

/* A protocol, in a room above this one. */
struct sbx_protocol {
	int (*begin)(struct sbx_conn *c); /* 0 or -errno; c->http may be half made */
	void (*end)(void *http);	  /* accepts NULL */
	bool (*pump)(struct sbx_conn *c); /* a turn. False: the connection is gone or lingers, and
					   * must not be touched */
};

#endif
