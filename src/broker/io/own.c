/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * This host's own addresses, which are never dialled for the sandbox: servers that listen on them
 * often trust local clients. An address is own if an interface has it or a route makes it local.
 * Both are read at the start and again whenever the kernel says that they changed; while they
 * cannot be read, nothing at all may be dialled.
 */

#include "broker/io/own.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "sys/net/net.h"

#define OWN_FIRST 64
#define OWN_MAX	  65536

struct sbx_own {
	struct sbx_context *ctx;
	int rtnl_fd;  /* for asking */
	int watch_fd; /* readable when something changed */
	struct event ev;
	struct sbx_addr *v;
	struct sbx_cidr *nets;
};

/* Reads addresses and routes, at most @n_max of each. 0; -EOVERFLOW: there are more; another
 * -errno. */
static int read_both(struct sbx_own *o, size_t n_max, size_t *ret_addrs, size_t *ret_nets)
{
	struct sbx_addr *v = realloc(o->v, n_max * 2 * sizeof(*v));
	struct sbx_cidr *nets;
	int n_addrs, n_routes;

	if (!v)
		return -ENOMEM;
	o->v = v;
	nets = realloc(o->nets, n_max * sizeof(*nets));
	if (!nets)
		return -ENOMEM;
	o->nets = nets;
	n_addrs = sbx_net_own_addresses(o->rtnl_fd, v, n_max);
	if (n_addrs < 0)
		return n_addrs;
	n_routes = sbx_net_local_routes(o->rtnl_fd, nets, n_max);
	if (n_routes < 0)
		return n_routes;
	*ret_addrs = (size_t)n_addrs;
	*ret_nets = 0;
	for (int i = 0; i < n_routes; i++) { /* nearly all have a single address */
		if (nets[i].prefix == (nets[i].addr.family == 4 ? 32 : 128))
			v[(*ret_addrs)++] = nets[i].addr;
		else
			nets[(*ret_nets)++] = nets[i];
	}
	return 0;
}

static int read_addresses(struct sbx_own *o)
{
	struct sbx_core *core = &o->ctx->core;
	size_t n_addrs, n_nets;
	int r = -EOVERFLOW;

	core->own_unknown = true;
	core->n_own = core->n_own_nets = 0;
	for (size_t n_max = OWN_FIRST; r == -EOVERFLOW && n_max <= OWN_MAX; n_max *= 4)
		r = read_both(o, n_max, &n_addrs, &n_nets);
	if (r < 0)
		return r;
	sbx_core_sort_addrs(o->v, n_addrs);
	core->own = o->v;
	core->n_own = n_addrs;
	core->own_nets = o->nets;
	core->n_own_nets = n_nets;
	core->own_unknown = false;
	return 0;
}

static void on_change(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_own *o = userdata;
	bool changed = false;
	ssize_t n;

	(void)what;
	do { /* ENOBUFS: messages were lost, so something changed */
		n = recv(fd, o->ctx->copy, sizeof(o->ctx->copy), MSG_DONTWAIT);
		changed |= n > 0 ? sbx_net_own_changed(sbx_span(o->ctx->copy, (size_t)n))
				 : n < 0 && errno == ENOBUFS;
	} while (n > 0 || (n < 0 && (errno == ENOBUFS || errno == EINTR)));
	if (changed || o->ctx->core.own_unknown)
		read_addresses(o);
}

int sbx_own_new(struct sbx_context *ctx, struct sbx_own **ret_own)
{
	struct sbx_own *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	*ret_own = o;
	o->ctx = ctx;
	o->watch_fd = sbx_net_own_watch();
	o->rtnl_fd = sbx_net_netlink_open(NETLINK_ROUTE);
	if (o->watch_fd < 0 || o->rtnl_fd < 0)
		return o->watch_fd < 0 ? o->watch_fd : o->rtnl_fd;
	if (event_assign(&o->ev, ctx->base, o->watch_fd, EV_READ | EV_PERSIST, on_change, o) < 0 ||
	    event_add(&o->ev, NULL) < 0)
		return -ENOMEM;
	return read_addresses(o);
}

void sbx_own_free(struct sbx_own *o)
{
	if (!o)
		return;
	sbx_context_unwatch(&o->ev);
	sbx_fd_close(o->rtnl_fd);
	sbx_fd_close(o->watch_fd);
	free(o->v);
	free(o->nets);
	free(o);
}
