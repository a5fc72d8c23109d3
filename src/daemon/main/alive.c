/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/main/alive.h"

#include <stdlib.h>
#include <unistd.h>

#include "sys/systemd/notify.h"

#define INTERVAL_MIN_US 10000
#define INTERVAL_MAX_US 86400000000

static void on_tick(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	(void)userdata;
	sbx_notify_send(getenv("NOTIFY_SOCKET"), "WATCHDOG=1");
}

struct event *sbx_alive_start(struct event_base *base)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	long long us = usec ? strtoll(usec, NULL, 10) : 0;
	struct timeval interval;
	struct event *e;

	if (us < INTERVAL_MIN_US || us > INTERVAL_MAX_US ||
	    (pid && strtoll(pid, NULL, 10) != getpid()))
		return NULL;
	interval = (struct timeval){ .tv_sec = us / 2 / 1000000, .tv_usec = us / 2 % 1000000 };
	e = event_new(base, -1, EV_PERSIST, on_tick, NULL);
	if (e)
		event_add(e, &interval);
	return e;
}
