/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A connection's life: made, its two handshakes, given turns, ended.
 *
 * The client is asked first for its protocols, then the server, then the client gets an answer. So
 * both sides speak the same protocol, and nothing is translated: what a client sends in HTTP/2 is
 * sent on in HTTP/2, with its trailers and its flow control.
 *
 * The name of the server's certificate is the pinned name, never one that the client sent.
 */
#include "tls/conn/conn.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "tls/cert/own_certificate.h"
#include "tls/conn/contexts.h"


#define LINGER_S 2
#define THROWN_AWAY_READS 16 /* in one turn */

/* --- life --- */

static void set_timer(struct sbx_conn *c, uint32_t ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000L };

	if (ms)
		event_add(&c->timer, &tv);
	else
		event_del(&c->timer);
}

static void send_done(const struct sbx_conn *c)
{
	const struct sbx_msg_tls_done m = {
		.flow = c->flow,
		.bytes_out = c->client.n_read,
		.bytes_in = c->client.n_written,
	};
	uint8_t packet[64];
	ssize_t n = sbx_msg_encode_tls_done(&m, packet, sizeof(packet));

	if (n > 0)
		sbx_tls_send(c->ctx, packet, (size_t)n);
}

void sbx_conn_free(struct sbx_conn *c)
{
	*(c->prev ? &c->prev->next : &c->ctx->first) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->ctx->n_conns--;
	event_del(&c->timer);
	event_del(&c->turn);
	if (c->protocol)
		c->protocol->end(c->http);
	sbx_side_fini(&c->client);
	sbx_side_fini(&c->server);
	send_done(c);
	sbx_http_entry_fini(&c->live);
	free(c->live_text);
	free(c);
}

static void set_reset(const struct sbx_side *s)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	if (s->fd >= 0)
		setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void sbx_conn_abort(struct sbx_conn *c)
{
	set_reset(&c->client);
	sbx_conn_free(c);
}

void sbx_conn_cut(struct sbx_tls_context *ctx, uint32_t flow)
{
	struct sbx_conn *c = ctx->first;

	while (c && c->flow != flow)
		c = c->next;
	if (!c)
		return;
	set_reset(&c->server);
	sbx_conn_abort(c);
}

void sbx_conn_linger(struct sbx_conn *c)
{
	sbx_side_shutdown(&c->client);
	sbx_side_fini(&c->server);
	c->state = SBX_CONN_LINGERING;
	set_timer(c, LINGER_S * 1000);
	sbx_conn_again(c);
}

void sbx_conn_again(struct sbx_conn *c)
{
	const struct timeval now = { 0 };

	event_add(&c->turn, &now);
}

void sbx_conn_report(struct sbx_conn *c, const struct sbx_http_verdict *v, const char *request)
{
	struct sbx_event e = {
		.action = SBX_DENY,
		.proto = SBX_PROTO_TCP,
		.reason = (uint8_t)v->reason,
		.addr = c->addr,
		.port = c->port,
		.count = 1,
	};
	uint8_t packet[1024];
	ssize_t n;

	sbx_text_cut(e.name, sizeof(e.name), "%s", c->name);
	sbx_text_cut(e.rule, sizeof(e.rule), "%.*s", (int)c->entry->text.n,
		     (const char *)c->entry->text.p);
	sbx_text_cut(e.request, sizeof(e.request), "%s%s%s%s", request,
		     v->secret[0] ? " with secret '" : "", v->secret, v->secret[0] ? "'" : "");
	n = sbx_msg_encode_event(&e, packet, sizeof(packet));
	if (n > 0)
		sbx_tls_send(c->ctx, packet, (size_t)n);
}

/* --- the client's handshake --- */

/* The protocols of the extension, RFC 7301 section 3.1; the hello parser of OpenSSL has checked the
 * lengths of the extension, but not those in it. */
static void read_offers(struct sbx_conn *c, const uint8_t *p, size_t n)
{
	for (size_t at = 2; at < n; at += 1u + p[at]) {
		size_t n_name = p[at];

		if (n_name > n - at - 1)
			return;
		c->offers_h2 |= n_name == 2 && memcmp(p + at + 1, "h2", 2) == 0;
		c->offers_http1 |= n_name == 8 && memcmp(p + at + 1, "http/1.1", 8) == 0;
	}
}

static bool use_leaf(struct sbx_conn *c, SSL *ssl)
{
	const struct sbx_authority *a = &c->ctx->authority;
	struct sbx_tls_host *h = sbx_host_cache_get(&c->ctx->hosts, c->name);

	return h && SSL_use_certificate(ssl, h->leaf) == 1 &&
	       SSL_use_PrivateKey(ssl, a->leaf_key) == 1;
}

int sbx_conn_on_hello(SSL *ssl, int *al, void *userdata)
{
	struct sbx_conn *c = sbx_ssl_user(ssl);
	const uint8_t *p;
	size_t n;

	(void)userdata;
	if (!c->has_hello && SSL_client_hello_get0_ext(
				     ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &p,
				     &n) == 1)
		read_offers(c, p, n);
	c->has_hello = true;
	if (!c->answered)
		return SSL_CLIENT_HELLO_RETRY;
	if (use_leaf(c, ssl))
		return SSL_CLIENT_HELLO_SUCCESS;
	*al = SSL_AD_INTERNAL_ERROR;
	return SSL_CLIENT_HELLO_ERROR;
}

int sbx_conn_on_alpn(SSL *ssl, const uint8_t **out, uint8_t *n_out, const uint8_t *in,
		     unsigned int n_in, void *userdata)
{
	struct sbx_conn *c = sbx_ssl_user(ssl);

	(void)in;
	(void)n_in;
	(void)userdata;
	if (c->h2) {
		*out = (const uint8_t *)"h2";
		*n_out = 2;
	} else if (c->offers_http1) {
		*out = (const uint8_t *)"http/1.1";
		*n_out = 8;
	} else {
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	}
	return SSL_TLSEXT_ERR_OK;
}

static int start_client_tls(struct sbx_conn *c)
{
	SSL *ssl = SSL_new(c->ctx->server);
	uint8_t id[SHA256_DIGEST_LENGTH];

	if (!ssl)
		return -ENOMEM;
	sbx_ssl_set_user(ssl, c);
	SSL_set_accept_state(ssl);
	/* A ticket is good for the name that it was given for. */
	static_assert(sizeof(id) <= SSL_MAX_SSL_SESSION_ID_LENGTH, "OpenSSL takes it");
	SHA256((const uint8_t *)c->name, strlen(c->name), id);
	if (SSL_set_session_id_context(ssl, id, sizeof(id)) != 1) {
		SSL_free(ssl);
		return -EIO;
	}
	return sbx_side_start_tls(&c->client, ssl);
}

/* --- the server's handshake --- */

int sbx_conn_on_session(SSL *ssl, SSL_SESSION *session)
{
	struct sbx_conn *c = sbx_ssl_user(ssl);
	struct sbx_tls_host *h = sbx_host_cache_get(&c->ctx->hosts, c->name);

	if (!h || SSL_get_verify_result(ssl) != X509_V_OK)
		return 0;
	if (c->entry == &c->live)
		return 0; /* it goes with the connection, and the session would not */
	SSL_SESSION_free(h->session);
	h->session = session;
	h->session_entry = c->entry;
	h->session_port = c->port;
	return 1; /* taken over */
}

/* The protocols that both we and the client speak; a client without ALPN speaks HTTP/1.1. */
static bool offer_protocols(const struct sbx_conn *c, SSL *ssl)
{
	static const uint8_t both[] = "\x02h2\x08http/1.1";
	const uint8_t *p = c->offers_h2 ? both : both + 3;
	size_t n = sizeof(both) - 1 - (c->offers_h2 ? 0 : 3);

	if (c->offers_h2 && !c->offers_http1)
		n = 3;
	return SSL_set_alpn_protos(ssl, p, (unsigned int)n) == 0; /* 0: done */
}

static void trust_bundle(struct sbx_tls_context *ctx)
{
	if (ctx->trusts)
		return;
	ctx->trusts = true;
	if (!sbx_contexts_trust(ctx->client, ctx->bundle))
		fprintf(stderr, "sbx-tls: no certificate in the trust store\n");
}

static int start_server_tls(struct sbx_conn *c)
{
	SSL *ssl;
	struct sbx_tls_host *h = sbx_host_cache_get(&c->ctx->hosts, c->name);

	trust_bundle(c->ctx);
	ssl = SSL_new(c->ctx->client);
	if (!ssl)
		return -ENOMEM;
	sbx_ssl_set_user(ssl, c);
	SSL_set_connect_state(ssl);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (SSL_set_tlsext_host_name(ssl, c->name) != 1 || SSL_set1_host(ssl, c->name) != 1 ||
	    !offer_protocols(c, ssl) ||
	    (c->entry->cert.n && sbx_own_certificate_use(c->entry, ssl))) {
		SSL_free(ssl);
		return -EIO;
	}
	if (h && h->session && h->session_entry == c->entry && h->session_port == c->port)
		SSL_set_session(ssl, h->session);
	return sbx_side_start_tls(&c->server, ssl);
}

static void break_server(struct sbx_conn *c, enum sbx_reason reason, const char *why)
{
	c->answered = true;
	c->h2 = c->offers_h2 && !c->offers_http1;
	c->broken = (struct sbx_http_verdict){ .reason = reason, .status = 502 };
	sbx_text_cut(c->broken.text, sizeof(c->broken.text), "%s", why);
	sbx_side_fini(&c->server);
}

static void break_with_error(struct sbx_conn *c, const char *what)
{
	unsigned long error = c->server.ssl ? ERR_peek_last_error() : 0;
	const char *reason = error ? ERR_reason_error_string(error) : NULL;
	char why[sizeof(c->broken.text)];

	sbx_text_cut(why, sizeof(why),
		     "%s %s:%u: %s. Nothing was sent. Ask again later; if it fails again, try the "
		     "server from outside the sandbox",
		     what, c->name, c->port, reason ? reason : "the connection ended");
	break_server(c, SBX_REASON_UPSTREAM_FAILED, why);
}

void sbx_conn_break(struct sbx_conn *c)
{
	bool h2 = c->h2;

	break_with_error(c, "the server closed the connection to");
	c->h2 = h2;
}

static void break_handshake(struct sbx_conn *c)
{
	long e = SSL_get_verify_result(c->server.ssl);
	char why[sizeof(c->broken.text)];

	if (e == X509_V_OK) {
		break_with_error(c, "no TLS connection to");
		return;
	}
	sbx_text_cut(why, sizeof(why),
		     "the certificate of %s:%u is not trusted: %s. Nothing was sent. If it is "
		     "signed by an authority of your own, name it in network.extra_ca",
		     c->name, c->port, X509_verify_cert_error_string(e));
	break_server(c, SBX_REASON_UPSTREAM_CERTIFICATE, why);
}

static void learn_protocol(struct sbx_conn *c)
{
	const uint8_t *p;
	unsigned int n;

	SSL_get0_alpn_selected(c->server.ssl, &p, &n);
	c->h2 = n == 2 && memcmp(p, "h2", 2) == 0;
	c->answered = true;
}

static void ask_server(struct sbx_conn *c)
{
	if (!c->asked) {
		c->asked = true;
		if (start_server_tls(c) < 0) {
			break_server(c, SBX_REASON_UPSTREAM_FAILED,
				     c->entry->cert.n ?
					     "the client certificate cannot be used; put another "
					     "into the entry's mtls. Nothing was sent" :
					     "out of memory; ask again later");
			return;
		}
	}
	switch (sbx_side_handshake(&c->server)) {
	case SBX_IO_ON:
		learn_protocol(c);
		break;
	case SBX_IO_WAIT:
		break;
	default:
		break_handshake(c);
	}
}

/* --- turns --- */

static bool serve(struct sbx_conn *c)
{
	c->state = SBX_CONN_SERVING;
	set_timer(c, c->ctx->rules.idle_timeout_ms);
	c->protocol = c->h2 ? c->ctx->http2 : c->ctx->http1;
	if (c->protocol->begin(c) == 0)
		return true;
	sbx_conn_abort(c);
	return false;
}

/* False: the connection is gone, or it must wait. */
static bool shake_hands(struct sbx_conn *c)
{
	enum sbx_io r = SBX_IO_WAIT;

	if (!c->has_hello)
		r = sbx_side_handshake(&c->client);
	if (c->has_hello && !c->answered) {
		ask_server(c);
		r = SBX_IO_WAIT;
	}
	if (c->answered)
		r = sbx_side_handshake(&c->client);
	if (r == SBX_IO_ON)
		return serve(c);
	if (r != SBX_IO_WAIT)
		sbx_conn_free(c);
	return false;
}

static void throw_away(struct sbx_conn *c)
{
	enum sbx_io r = SBX_IO_ON;
	size_t n;

	for (int i = 0; r == SBX_IO_ON && i < THROWN_AWAY_READS; i++)
		r = sbx_side_read(&c->client, c->ctx->buf, sizeof(c->ctx->buf), &n);
	if (r == SBX_IO_ON)
		sbx_conn_again(c);
	else if (r != SBX_IO_WAIT)
		sbx_conn_free(c);
}

static void take_turn(struct sbx_conn *c)
{
	if (c->state == SBX_CONN_HANDSHAKES && !shake_hands(c))
		return;
	if (c->state == SBX_CONN_LINGERING) {
		throw_away(c);
		return;
	}
	set_timer(c, c->ctx->rules.idle_timeout_ms);
	if (!c->protocol->pump(c))
		return;
	sbx_side_push(&c->client);
	sbx_side_push(&c->server);
}

static void on_client(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_conn *c = userdata;

	(void)fd;
	sbx_side_note(&c->client, what);
	take_turn(c);
}

static void on_server(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_conn *c = userdata;

	(void)fd;
	sbx_side_note(&c->server, what);
	take_turn(c);
}

static void on_turn(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	take_turn(userdata);
}

static void on_timer(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_conn *c = userdata;

	(void)fd;
	(void)what;
	if (c->state == SBX_CONN_LINGERING)
		sbx_conn_free(c);
	else
		sbx_conn_abort(c);
}

static int start(struct sbx_conn *c, const struct sbx_msg_tls_flow *flow, int client_fd,
		 int server_fd)
{
	struct event_base *base = c->ctx->base;
	int e;

	evtimer_assign(&c->timer, base, on_timer, c);
	evtimer_assign(&c->turn, base, on_turn, c);
	c->server.fd = -1;
	e = sbx_side_init(&c->client, base, client_fd, on_client, c);
	if (e < 0) {
		sbx_fd_close(server_fd);
		return e;
	}
	if (!c->echo)
		e = sbx_side_init(&c->server, base, server_fd, on_server, c);
	c->server.shared = true;
	if (e == 0)
		e = sbx_side_preload(&c->client, flow->first);
	if (e == 0 && c->tls)
		e = start_client_tls(c);
	return e;
}

bool sbx_conn_may_be_live(const struct sbx_tls_context *ctx, const struct sbx_msg_tls_flow *flow)
{
	const struct sbx_http_rules *r = &ctx->rules;
	bool is_live = false;

	for (size_t i = 0; i < r->n_live && !is_live; i++)
		is_live = sbx_http_host_matches(r->live[i], flow->name);
	for (size_t i = 0; i < r->n_entries; i++)
		if (sbx_http_host_matches(r->entries[i].host, flow->name))
			return false;
	for (size_t i = 0; i < r->n_secrets; i++)
		if (sbx_http_secret_is_for(&r->secrets[i], flow->name))
			return false;
	return is_live;
}

/* Copies what came with the message. 0 or -errno. */
static int take_live(struct sbx_conn *c, const struct sbx_msg_tls_flow *flow)
{
	char *p = malloc(flow->rule.n + flow->requests.n + 1);

	if (!p)
		return -ENOMEM;
	c->live_text = p;
	if (flow->rule.n)
		memcpy(p, flow->rule.p, flow->rule.n);
	memcpy(p + flow->rule.n, flow->requests.p, flow->requests.n);
	return sbx_http_entry_live(sbx_span(p, flow->rule.n), sbx_span_str(c->name),
				   sbx_span(p + flow->rule.n, flow->requests.n), &c->live);
}

int sbx_conn_new(struct sbx_tls_context *ctx, const struct sbx_msg_tls_flow *flow,
		  const int fds_take[2])
{
	struct sbx_conn *c = calloc(1, sizeof(*c));
	bool live = flow->entry == SBX_TLS_LIVE;
	int r;

	if (!c) {
		sbx_fd_close(fds_take[0]);
		sbx_fd_close(fds_take[1]);
		return -ENOMEM;
	}
	c->ctx = ctx;
	c->flow = flow->flow;
	c->echo = flow->entry == SBX_TLS_ECHO;
	c->entry = c->echo ? &ctx->echo :
		   live	   ? &c->live :
			     &ctx->rules.entries[flow->entry];
	c->addr = flow->addr;
	c->port = flow->port;
	c->tls = flow->tls;
	c->has_hello = c->asked = c->answered = !c->tls;
	sbx_text_fit(c->name, sizeof(c->name), "%s", flow->name);
	if (live && (r = take_live(c, flow)) < 0) {
		sbx_fd_close(fds_take[0]);
		sbx_fd_close(fds_take[1]);
		free(c->live_text);
		free(c);
		return r;
	}
	if (c->port == (c->tls ? 443 : 80))
		sbx_text_fit(c->authority, sizeof(c->authority), "%s", c->name);
	else
		sbx_text_fit(c->authority, sizeof(c->authority), "%s:%u", c->name, c->port);
	c->next = ctx->first;
	if (ctx->first)
		ctx->first->prev = c;
	ctx->first = c;
	ctx->n_conns++;
	if (start(c, flow, fds_take[0], fds_take[1]) < 0) {
		sbx_conn_abort(c);
		return 0;
	}
	set_timer(c, ctx->rules.handshake_timeout_ms);
	sbx_conn_again(c);
	return 0;
}
