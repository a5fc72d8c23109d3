/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_IO_CONTEXT_H
#define SBX_BROKER_IO_CONTEXT_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/core/core.h"
#include "broker/io/timers.h"
#include "ipc/messages.h"

#define sbx_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define SBX_COPY_MAX 65536 /* bytes moved by one copy, and the longest datagram */

/* Everything that all parts of one sbx-broker share. main/broker.c makes it and frees it. */
struct sbx_context {
	struct event_base *base;
	bool follows;	 /* attach cgroup: names are resolved to be pinned, and resolved anew */
	int exit_status; /* the process's, when the loop ends */
	struct sbx_msg_config config; /* the limits in it fit the open files that are allowed */
	uint32_t n_pipes_max;	      /* of all flows together */
	int fds[SBX_N_BROKER_FDS];    /* -1: CONFIG brought none */
	struct sbx_core core;
	struct sbx_msg_stats stats;
	struct sbx_timers timers;
	struct sbx_report *report;  /* events go here (report.h) */
	uint8_t copy[SBX_COPY_MAX]; /* for every copy: nothing stays in it between two callbacks */
};

/* Ends the process: the loop stops after the current callback. */
void sbx_context_exit(struct sbx_context *ctx, int status);

/* Calls @callback whenever @fd (made non-blocking) can be read. Nothing happens if @fd is -1.
 * 0 or -errno. */
int sbx_context_watch(struct sbx_context *ctx, struct event *ev, int fd, event_callback_fn callback,
		      void *userdata);
/* Stops watching, and zeroes the event. Accepts a zeroed event. */
void sbx_context_unwatch(struct event *ev);

#endif
