/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_STAGE_STAGE_H
#define SBX_LAUNCHER_STAGE_STAGE_H

#include "launcher/run/run.h"

/* The step of STAGE_FAILED whose reason the launcher finds: the limits of the host's user namespace cannot
 * be seen in the stage's own. */
#define SBX_STAGE_NETWORK "network namespace"

/* Start the stage, before there is a plan: returns as soon as it exists. It prepares what needs none and
 * waits for its orders. Needs r->facts and r->options, signals blocked. 0 or -errno with r->err. */
int sbx_stage_begin(struct sbx_run *r);

/* Let it build r->plan. It sends STAGE_READY with the sandbox's sockets, or STAGE_FAILED, on
 * r->stage_fd. 0 or -errno with r->err. */
int sbx_stage_order(struct sbx_run *r);

/* Reads the ports of the broker's listeners from the sockets that the stage sent: the receipt shows the ruleset as it
 * is loaded. */
void sbx_stage_ports(const int fds[SBX_N_BROKER_FDS], struct sbx_nft_input *nft);

/* SIGKILL: with the stage, pid 1 of its pid namespace, everything in the sandbox ends. */
void sbx_stage_kill(const struct sbx_run *r);
/* The same, and waits until all of them are gone. Once is enough, twice does no harm. */
void sbx_stage_end(struct sbx_run *r);
/* The same, and what there is for it in this process goes. */
void sbx_stage_stop(struct sbx_run *r);

#endif
