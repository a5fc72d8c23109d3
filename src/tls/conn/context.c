/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state that the parts of sbx-tls share: its end, the broker's channel, secrets that change. */
#include "tls/conn/context.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "ipc/channel.h"
#include "ipc/messages.h"
#include "sys/process/secret_memory.h"
#include "wire/http_field.h"

#define ASK_AGAIN_S 60

void sbx_tls_exit(struct sbx_tls_context *ctx, int status)
{
	ctx->exit_status = status;
	event_base_loopbreak(ctx->base);
}

/* The broker never waits for sbx-tls, so waiting for the broker cannot deadlock. */
void sbx_tls_send(struct sbx_tls_context *ctx, const uint8_t *packet, size_t n)
{
	struct pollfd p = { .fd = ctx->broker_fd, .events = POLLOUT };
	int r;

	while ((r = sbx_channel_send(ctx->broker_fd, packet, n, NULL, 0)) == SBX_CHANNEL_E_AGAIN)
		poll(&p, 1, -1);
	if (r != 0)
		sbx_tls_exit(ctx, 1);
}

/* --- secrets that change --- */

void sbx_tls_ask_again(struct sbx_tls_context *ctx, const char *name)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (size_t i = 0; i < ctx->rules.n_secrets; i++) {
		uint8_t packet[16];
		ssize_t n = sbx_msg_encode_simple(SBX_MSG_SECRET_STALE, (uint32_t)i, packet,
						  sizeof(packet));

		if (n < 0 || !sbx_http_secret_is_for(&ctx->rules.secrets[i], name) ||
		    (ctx->asked_s[i] && now.tv_sec - ctx->asked_s[i] < ASK_AGAIN_S))
			continue;
		/* a full channel: the next 401 asks */
		if (sbx_channel_send(ctx->launcher_fd, packet, (size_t)n, NULL, 0) == 0)
			ctx->asked_s[i] = now.tv_sec ? now.tv_sec : 1;
	}
}

int sbx_tls_replace_value(struct sbx_tls_context *ctx, size_t i, struct sbx_span value)
{
	struct sbx_http_secret *s = &ctx->rules.secrets[i];
	uint8_t *p;

	if (!value.n || value.n > SBX_HTTP_VALUE_MAX || !sbx_http_all(value, SBX_HTTP_VALUE))
		return -EBADMSG;
	if (value.n == s->value.n && memcmp(value.p, s->value.p, value.n) == 0)
		return 0;
	p = sbx_secret_memory_new(value.n);
	if (!p)
		return -ENOMEM;
	memcpy(p, value.p, value.n);
	s->before = s->value;
	s->value = sbx_span(p, value.n);
	ctx->n_rotations++;
	return 0;
}
