/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/io/context.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

void sbx_context_exit(struct sbx_context *ctx, int status)
{
	ctx->exit_status = status;
	event_base_loopbreak(ctx->base);
}

int sbx_context_watch(struct sbx_context *ctx, struct event *ev, int fd, event_callback_fn callback,
		      void *userdata)
{
	if (fd < 0)
		return 0;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	if (event_assign(ev, ctx->base, fd, EV_READ | EV_PERSIST, callback, userdata) < 0 ||
	    event_add(ev, NULL) < 0)
		return -ENOMEM;
	return 0;
}

void sbx_context_unwatch(struct event *ev)
{
	if (event_initialized(ev))
		event_del(ev);
	memset(ev, 0, sizeof(*ev));
}
