/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_IO_REPORT_H
#define SBX_BROKER_IO_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "broker/io/context.h"

/* Everything that the broker sends to the launcher after READY: events, PINS, STATS. There is one
 * report, ctx->report. */

/* Borrows @fd, the channel (non-blocking from here on). 0 or -errno. */
int sbx_report_new(struct sbx_context *ctx, int fd);
void sbx_report_free(struct sbx_report *rep);

/* Records one refusal, or one address that may be used from now on. @addr and @name may be NULL. An
 * event that finds no room is counted; without memory the broker ends. */
void sbx_report_event(struct sbx_context *ctx, enum sbx_proto proto, const struct sbx_verdict *v,
		      const struct sbx_addr *addr, uint16_t port, const char *name);
/* The numbers of a flow that was carried. */
struct sbx_carried {
	uint64_t bytes_out, bytes_in; /* from the sandbox, to it */
	uint64_t duration_ms;
};
/* Records one flow that was carried, at its end. */
void sbx_report_flow(struct sbx_context *ctx, enum sbx_proto proto, const struct sbx_verdict *v,
		     const struct sbx_addr *addr, uint16_t port, const char *name,
		     const struct sbx_carried *carried);
/* Fills in one flow for FLOW_LIST. @reached NULL: nothing was dialled yet, or a proxy. */
void sbx_report_open_flow(const struct sbx_context *ctx, const struct sbx_flow_target *target,
			  const struct sbx_addr *reached, const struct sbx_carried *carried,
			  struct sbx_msg_flow *ret_flow);
/* Records one refused request to a terminated host. @request: struct sbx_event. */
void sbx_report_request(struct sbx_context *ctx, const struct sbx_verdict *v,
			const struct sbx_addr *addr, uint16_t port, const char *name,
			const char *request);
/* Records @n refusals of which only the number is known. */
void sbx_report_lost(struct sbx_context *ctx, uint32_t n);

/* Sends one packet, now or as soon as the launcher reads. Borrows it until then; only one may
 * wait at a time. 0, or -errno: the channel is broken. */
int sbx_report_send(struct sbx_report *rep, struct sbx_span packet);

/* Sends an answer to the launcher, now or as soon as it reads, in the order of the calls; copies
 * it. 0, -ENOMEM, or -errno: the channel is broken. */
int sbx_report_post(struct sbx_report *rep, struct sbx_span packet);

/* RELEASE came: drops the self-test's events and its numbers. Later events are the command's. */
void sbx_report_release(struct sbx_report *rep);
bool sbx_report_is_released(const struct sbx_report *rep);

/* STOP came: sends every event and then STATS, and ends the process. Calls @count just before it
 * sends STATS. */
void sbx_report_finish(struct sbx_report *rep, void (*count)(void *userdata), void *userdata);

#endif
