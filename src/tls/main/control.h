/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_MAIN_CONTROL_H
#define SBX_TLS_MAIN_CONTROL_H

#include <event2/event_struct.h>

#include "tls/conn/context.h"

/* The two channels of a running sbx-tls: flows from the broker, secrets from the launcher. */
struct sbx_tls_control {
	struct sbx_tls_context *ctx;
	struct event ev_broker, ev_launcher;
};

/* Watches ctx->broker_fd and ctx->launcher_fd. 0 or -errno. */
int sbx_tls_control_init(struct sbx_tls_control *c);
void sbx_tls_control_fini(struct sbx_tls_control *c);

#endif
