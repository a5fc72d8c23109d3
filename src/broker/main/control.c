/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The launcher's messages: RELEASE, STOP, POLICY and FLOWS (swap.c), and PINNED or PINS_FAILED for
 * each PINS (dns/pinner.c).
 *
 * The launcher is trusted. Still an unexpected message ends the broker, and with it every flow. End
 * of file means that the launcher is gone and the sandbox is being killed: the broker ends at once.
 *
 * RELEASE ends the self-test. The answer, RELEASE too, tells the launcher that all later events are
 * the command's.
 *
 * STOP comes when the sandbox was killed. The last bytes of a server inside may still be on their
 * way to a client of a published port: the broker waits for them, at most DRAIN_MS. Then it answers
 * with every event that it holds, and with STATS as the last message.
 */

#include "broker/main/control.h"

#include <errno.h>

#include "base/cleanup.h"
#include "broker/io/report.h"
#include "ipc/channel.h"

#define DRAIN_MS      1000
#define DRAIN_LOOK_MS 2

static void count_flows(void *userdata)
{
	sbx_tcp_count(userdata);
}

static void stop(struct sbx_control *c)
{
	struct timeval tv = { .tv_usec = DRAIN_LOOK_MS * 1000 };
	uint64_t now_ms = sbx_now_ms();

	sbx_tcp_terminate_drain(c->tcp);
	if (!c->drain_until_ms)
		c->drain_until_ms = now_ms + DRAIN_MS;
	if (!sbx_tcp_publish_is_drained(c->tcp) && now_ms < c->drain_until_ms &&
	    event_add(&c->ev_drain, &tv) == 0)
		return;
	sbx_pinner_stop(c->pinner);
	sbx_nflog_finish(c->nflog);
	sbx_tcp_tell_all(c->tcp);
	sbx_udp_tell_all(c->swap->udp);
	sbx_report_finish(c->ctx->report, count_flows, c->tcp);
}

static void on_drain(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	stop(userdata);
}

static void release(struct sbx_control *c)
{
	uint8_t packet[64];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_RELEASE, 0, packet, sizeof(packet));

	sbx_tcp_terminate_drain(c->tcp);
	sbx_nflog_drain(c->nflog); /* refusals of the self-test that were not read yet */
	sbx_report_release(c->ctx->report);
	if (n < 0 || sbx_nflog_start(c->nflog) < 0 ||
	    sbx_channel_send(c->fd, packet, (size_t)n, NULL, 0) != 0)
		sbx_context_exit(c->ctx, 1);
}

static bool is_message(struct sbx_span packet, enum sbx_msg_type type, uint32_t *ret_serial)
{
	return sbx_msg_decode_simple(packet, type, ret_serial) == 0;
}

/* Without the listener (our file table was full when it came) the port is published nowhere. */
static void publish(struct sbx_control *c, uint32_t inside, int fd_take)
{
	if (fd_take < 0)
		c->ctx->stats.limits_hit++;
	else if (inside > UINT16_MAX ||
		 sbx_tcp_publish_add_consume(c->tcp, (uint16_t)inside, fd_take) < 0)
		sbx_context_exit(c->ctx, 1);
}

static void on_read(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_control *c = userdata;
	SBX_AUTO_CLOSE int passed_fd = -1;
	uint8_t buf[64];
	struct sbx_span packet;
	uint32_t serial;
	size_t n, n_fds = 0;
	int r = sbx_channel_recv(fd, buf, sizeof(buf), &n, &passed_fd, 1, &n_fds, NULL);

	(void)what;
	if (r == SBX_CHANNEL_E_AGAIN)
		return;
	if (r != 0 && r != SBX_CHANNEL_E_NO_FDS) {
		sbx_context_exit(c->ctx, r == SBX_CHANNEL_E_CLOSED ? 0 : 1);
		return;
	}
	packet = sbx_span(buf, n);
	if (is_message(packet, SBX_MSG_PUBLISH, &serial)) {
		publish(c, serial, sbx_fd_steal(&passed_fd));
		return;
	}
	if (sbx_report_is_released(c->ctx->report) && (n_fds == 1 || r != 0) &&
	    is_message(packet, SBX_MSG_POLICY, NULL)) {
		sbx_swap_take_consume(c->swap, &passed_fd);
		return;
	}
	if (n_fds || r != 0) {
		sbx_context_exit(c->ctx, 1);
		return;
	}
	if (sbx_report_is_released(c->ctx->report) && is_message(packet, SBX_MSG_FLOWS, NULL)) {
		sbx_swap_list_flows(c->swap);
		return;
	}
	if (is_message(packet, SBX_MSG_PINNED, &serial) &&
	    sbx_pinner_answered(c->pinner, serial, true))
		return;
	if (is_message(packet, SBX_MSG_PINS_FAILED, &serial) &&
	    sbx_pinner_answered(c->pinner, serial, false))
		return;
	if (!c->drain_until_ms && is_message(packet, SBX_MSG_STOP, NULL))
		stop(c);
	else if (!sbx_report_is_released(c->ctx->report) &&
		 is_message(packet, SBX_MSG_RELEASE, NULL))
		release(c);
	else
		sbx_context_exit(c->ctx, 1);
}

int sbx_control_init(struct sbx_control *c)
{
	if (evtimer_assign(&c->ev_drain, c->ctx->base, on_drain, c) < 0)
		return -ENOMEM;
	return sbx_context_watch(c->ctx, &c->ev_read, c->fd, on_read, c);
}

void sbx_control_fini(struct sbx_control *c)
{
	sbx_context_unwatch(&c->ev_read);
	sbx_context_unwatch(&c->ev_drain);
}
