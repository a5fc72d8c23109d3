/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_CONN_CONTEXT_H
#define SBX_TLS_CONN_CONTEXT_H

#include <event2/event.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/rules.h"
#include "tls/cert/authority.h"
#include "tls/cert/host_cache.h"

#define sbx_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define SBX_TLS_BUF 65536

struct sbx_conn;
struct sbx_protocol;

/* Everything that all parts of one sbx-tls share. main/tls.c makes it and frees it. */
struct sbx_tls_context {
	struct event_base *base;
	int exit_status; /* the process's, when the loop ends */
	int broker_fd, launcher_fd;
	struct sbx_http_rules rules;
	uint32_t n_rotations;	     /* values that were replaced */
	/* CLOCK_MONOTONIC seconds: when the launcher was asked for a value again; 0: never */
	int64_t asked_s[SBX_HTTP_SECRETS_MAX];
	struct sbx_authority authority;
	struct sbx_host_cache hosts;
	SSL_CTX *server; /* towards clients in the sandbox */
	SSL_CTX *client; /* towards servers */
	struct sbx_span bundle; /* the trust store's text, until the first use */
	bool trusts;		/* it was read */
	struct sbx_http_entry echo; /* of the self-test, which has no server */
	const struct sbx_protocol *http1, *http2;
	struct sbx_conn *first;
	size_t n_conns;
	size_t n_whole; /* bytes of bodies that wait in streams (conn/whole.h) */
	uint8_t buf[SBX_TLS_BUF]; /* nothing stays in it between two callbacks */
};

/* Ends the process: the loop stops after the current callback. */
void sbx_tls_exit(struct sbx_tls_context *ctx, int status);

/* The host @name answered 401: asks the launcher to read its secrets again, at most once a minute
 * each. Those that cannot change are not answered. */
void sbx_tls_ask_again(struct sbx_tls_context *ctx, const char *name);
/* Replaces the value of a secret by a copy in locked memory. 0; -EBADMSG: it is no value; -ENOMEM.
 * The old one stays to the end: a connection may borrow it, however old it is, for as long as the
 * connection lives. So each change costs a page, 64 KiB for the longest value, and a secret changes
 * once a minute at most (sbx_tls_ask_again()); past RLIMIT_MEMLOCK new copies are not locked. */
int sbx_tls_replace_value(struct sbx_tls_context *ctx, size_t i, struct sbx_span value);

/* Sends a packet to the broker; waits until there is room. Ends the process if it is gone. */
void sbx_tls_send(struct sbx_tls_context *ctx, const uint8_t *packet, size_t n);

#endif
