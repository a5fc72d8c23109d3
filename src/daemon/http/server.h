/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HTTP_SERVER_H
#define SBX_DAEMON_HTTP_SERVER_H

#include <event2/event.h>
#include <stdbool.h>

#include "base/err.h"
#include "daemon/access/access.h"
#include "daemon/api/route.h"
#include "daemon/http/stats.h"

/*
 * The HTTP server: libmicrohttpd with its epoll mode, on the daemon's loop. No threads. A request
 * is read whole, judged by the table, and handed to its handler; while that waits, libmicrohttpd
 * leaves the connection alone.
 */
#define SBX_HTTP_HEADER_MAX	 16384	/* bytes of a connection's headers and buffers */
#define SBX_HTTP_BODY_MAX	 262144 /* bytes of a request's body */
#define SBX_HTTP_BODIES_MAX	 (8u << 20) /* bytes of a caller's bodies that are not whole yet */
#define SBX_HTTP_CONNECTIONS_MAX 1024	/* of a listener; see connection.c */
#define SBX_HTTP_PER_ADDRESS_MAX 256	/* of an address, or a local user: TCP */
#define SBX_HTTP_IDLE_S		 60	/* a connection without a byte is closed */
#define SBX_HTTP_REQUEST_S	 20	/* a request that has begun is whole by then, or is cut */
#define SBX_HTTP_LOCKED_S	 5	/* the longest wait of a change for a locked database */

struct sbx_http;

struct sbx_http_options {
	struct event_base *base; /* borrowed, like all of them */
	const struct sbx_route_table *routes;
	struct sbx_access *access;
	struct sbx_daemon *daemon; /* for the calls */
	/* Told of each answer that is the service's own failure (5xx): "GET /x: the reason". NULL:
	 * nobody is. */
	void (*failed)(const char *line);
};

int sbx_http_new(const struct sbx_http_options *options, struct sbx_http **ret_http);
/* Accepts NULL; returns NULL. Connections are closed; handlers that still wait must not answer. */
struct sbx_http *sbx_http_free(struct sbx_http *h);

/* Borrowed. */
const struct sbx_http_stats *sbx_http_stats(const struct sbx_http *h);

/* Serve on a listening socket, which is taken. @certificate and @key are PEM texts, NULL: no TLS.
 * 0 or -errno with @err. */
int sbx_http_listen(struct sbx_http *h, enum sbx_listener_kind kind, int fd_take,
		    const char *certificate, const char *key, struct sbx_err *err);

#endif
