/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SERVE_NETWORK_H
#define SBX_LAUNCHER_SERVE_NETWORK_H

#include "launcher/control/control.h"
#include "launcher/live/live.h"

/* The operations `network` and `reload`: a change of the running policy. Answer when the change is
 * made, with the generation and the number of flows that were cut. */
void sbx_serve_network(struct sbx_control *c, struct sbx_live_run *live,
		       struct sbx_control_request *rq);
void sbx_serve_reload(struct sbx_control *c, struct sbx_live_run *live,
		      struct sbx_control_request *rq);

/* Sets "generation", "air_gapped", "allow_out", "deny_out" and "rules" of the policy that holds. */
void sbx_serve_network_state(json_t *to, const struct sbx_live_state *state);

/* Asks the broker for the open flows, and answers with @values_take: its member "sandbox" has an
 * empty list "flows". It gets those that fit SBX_SERVE_FLOWS_BYTES, and "flows_left_out", the
 * number of the others. */
#define SBX_SERVE_FLOWS_BYTES (SBX_CONTROL_ANSWER_MAX / 2)
void sbx_serve_flows(struct sbx_control *c, struct sbx_live_run *live, struct sbx_control_token t,
		     json_t *values_take);

#endif
