/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The server: its listeners. Connections are in connection.c, requests in request.c.
 *
 * libmicrohttpd waits in an epoll descriptor of its own for each listener, which is one more
 * descriptor of the daemon's loop.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "daemon/http/listener.h"
#include "daemon/http/request.h"
#include "sys/net/net.h"

#define SWEEP_S 2 /* how often late connections and ended credentials are looked for */
/* libmicrohttpd's own limit is never reached: beyond it, it would leave callers waiting. */
#define CONNECTIONS_MAX (2u * SBX_HTTP_CONNECTIONS_MAX)

const struct sbx_http_stats *sbx_http_stats(const struct sbx_http *h)
{
	return &h->stats;
}

static void kick(struct sbx_http_listener *l)
{
	event_active(l->event, EV_TIMEOUT, 0);
}

void sbx_connection_resume(struct sbx_http_listener *l, struct MHD_Connection *c)
{
	MHD_resume_connection(c);
	kick(l);
}

static void on_sweep(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_http *h = userdata;

	(void)fd;
	(void)what;
	for (size_t i = 0; i < h->n_listeners; i++)
		sbx_connections_sweep(&h->listeners[i]);
	sbx_streams_judge(h);
}

/* --- listeners --- */

static void on_ready(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_http_listener *l = userdata;
	unsigned long long ms;

	(void)fd;
	(void)what;
	MHD_run(l->mhd);
	if (MHD_get_timeout(l->mhd, &ms) == MHD_YES) {
		struct timeval t = { .tv_sec = (time_t)(ms / 1000),
				     .tv_usec = (suseconds_t)(ms % 1000 * 1000) };

		event_add(l->event, &t);
	} else {
		event_add(l->event, NULL);
	}
}

/* Paths and parameters are decoded after they were taken apart, not before. */
static size_t leave_encoded(void *cls, struct MHD_Connection *mc, char *s)
{
	(void)cls;
	(void)mc;
	return strlen(s);
}

static struct MHD_Daemon *start(struct sbx_http_listener *l, int fd, const char *certificate,
				const char *key)
{
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (certificate ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)certificate },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (!certificate)
		tls[0] = tls[2];
	return MHD_start_daemon(flags, 0, NULL, NULL, sbx_request_go_on, l,
				MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED,
				sbx_request_completed, l, MHD_OPTION_NOTIFY_CONNECTION,
				sbx_connection_notified, l, MHD_OPTION_UNESCAPE_CALLBACK,
				leave_encoded, l, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				(size_t)SBX_HTTP_HEADER_MAX, MHD_OPTION_CONNECTION_LIMIT,
				CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
				(unsigned)SBX_HTTP_IDLE_S, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

static void note_address(const struct sbx_http_listener *l, int fd)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t n = sizeof(sa);
	struct sbx_addr addr;
	uint16_t port;

	if (l->kind == SBX_LISTEN_TCP && getsockname(fd, (struct sockaddr *)&sa, &n) == 0 &&
	    sbx_addr_from_sockaddr((struct sockaddr *)&sa, n, &addr, &port) == 0)
		sbx_access_listens(l->http->o.access, &addr, port, l->is_tls);
}

int sbx_http_listen(struct sbx_http *h, enum sbx_listener_kind kind, int fd_take,
		    const char *certificate, const char *key, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fd = fd_take;
	struct sbx_http_listener *l = &h->listeners[h->n_listeners];
	const union MHD_DaemonInfo *info;
	int listening;

	if (h->n_listeners == SBX_HTTP_LISTENERS_MAX) {
		sbx_err_set(err, "more than %d listening sockets", SBX_HTTP_LISTENERS_MAX);
		return -E2BIG;
	}
	*l = (struct sbx_http_listener){ .http = h, .kind = kind, .is_tls = certificate != NULL };
	l->mhd = start(l, fd, certificate, key);
	if (!l->mhd) {
		sbx_err_set(err, "libmicrohttpd did not start%s",
			    certificate ? ": are the certificate and the key PEM files?" : "");
		return -EINVAL;
	}
	listening = sbx_fd_steal(&fd); /* it is libmicrohttpd's now */
	h->n_listeners++;
	info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	l->event = event_new(h->o.base, info->epoll_fd, EV_READ | EV_PERSIST, on_ready, l);
	if (!l->event || event_add(l->event, NULL) < 0) {
		sbx_err_set(err, "out of memory");
		return -ENOMEM;
	}
	kick(l);
	note_address(l, listening);
	return 0;
}

int sbx_http_new(const struct sbx_http_options *options, struct sbx_http **ret_http)
{
	static const struct timeval interval = { .tv_sec = SWEEP_S };
	struct sbx_http *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->o = *options;
	h->diag_fd = sbx_net_netlink_open(NETLINK_SOCK_DIAG);
	h->sweep = event_new(h->o.base, -1, EV_PERSIST, on_sweep, h);
	h->on_again = evtimer_new(h->o.base, sbx_requests_again, h);
	if (!h->sweep || !h->on_again || event_add(h->sweep, &interval) < 0 ||
	    sbx_http_stats_init(&h->stats, h->o.routes) < 0) {
		sbx_http_free(h);
		return -ENOMEM;
	}
	*ret_http = h;
	return 0;
}

struct sbx_http *sbx_http_free(struct sbx_http *h)
{
	if (!h)
		return NULL;
	for (size_t i = 0; i < h->n_listeners; i++) {
		if (h->listeners[i].event)
			event_free(h->listeners[i].event);
		/* It would wait for suspended connections to be resumed, and the process ends. */
		if (!h->listeners[i].connections)
			MHD_stop_daemon(h->listeners[i].mhd);
	}
	if (h->sweep)
		event_free(h->sweep);
	if (h->on_again)
		event_free(h->on_again);
	sbx_http_stats_fini(&h->stats);
	sbx_fd_close(h->diag_fd);
	free(h);
	return NULL;
}
