/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HTTP_LISTENER_H
#define SBX_DAEMON_HTTP_LISTENER_H

#include <event2/event.h>
#include <microhttpd.h>

#include "base/addr.h"
#include "daemon/http/server.h"

/* The server's parts, inside of http/. */

#define SBX_HTTP_LISTENERS_MAX 8

struct sbx_http_connection {
	struct sbx_http_connection *next, **where; /* in the listener's list */
	int fd;
	/* of the process at the other end; SBX_UID_UNKNOWN: of another machine, or not known */
	uid_t uid;
	const char *foreign;	     /* unix: why its process may not call; NULL: it may */
	struct sbx_addr at, address; /* tcp: ours, and that of the peer */
	uint16_t port;		     /* ours */
	/* its next request is whole SBX_HTTP_REQUEST_S later; 0: it is. Monotonic. */
	uint64_t since_us;
	bool is_cut; /* libmicrohttpd is about to see its end */
};

struct sbx_http_listener {
	struct sbx_http *http;
	enum sbx_listener_kind kind;
	bool is_tls;
	struct MHD_Daemon *mhd;
	struct event *event;
	struct sbx_http_connection *connections;
};

struct sbx_http {
	struct sbx_http_options o;
	struct event *sweep;
	int diag_fd; /* asks for the owners of TCP connections; -1: the kernel does not tell */
	struct sbx_stream *streams;	   /* a list, as the next */
	struct sbx_http_request *requests; /* from their heads to the answers' ends */
	struct sbx_http_request *again;	   /* those that wait for the database, the oldest first */
	struct event *on_again;
	struct sbx_http_stats stats;
	size_t n_listeners;
	struct sbx_http_listener listeners[SBX_HTTP_LISTENERS_MAX];
};

/* request.c: calls the handlers of those that wait for the database; @userdata is the server. */
void sbx_requests_again(evutil_socket_t fd, short what, void *userdata);

/* connection.c: MHD_NotifyConnectionCallback of a listener; and the end of late connections. */
void sbx_connection_notified(void *cls, struct MHD_Connection *mc, void **state,
			     enum MHD_ConnectionNotificationCode code);
void sbx_connections_sweep(struct sbx_http_listener *l);

/* Goes on with a suspended connection. */
void sbx_connection_resume(struct sbx_http_listener *l, struct MHD_Connection *c);

/* Ends the streams whose credentials do not hold any more. */
void sbx_streams_judge(struct sbx_http *h);

#endif
