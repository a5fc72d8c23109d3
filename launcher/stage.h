/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_STAGE_H
#define SBX_LAUNCHER_STAGE_H

#include "launcher/run.h"

/* Start the stage: returns as soon as it exists; it sends STAGE_READY with the sandbox's sockets, or
 * STAGE_FAILED, on r->stage_fd. Needs r->plan, r->bwrap and the init channel. 0 or -errno with r->err. */
int sbx_stage_start(struct sbx_run *r);

/* The ports of the broker's listeners, read from the sockets the stage sent, into the plan, so that
 * the receipt shows the ruleset as it is loaded. */
void sbx_stage_ports(const int fds[SBX_N_BROKER_FDS], struct sbx_nft_input *nft);

/* SIGKILL: with the stage, pid 1 of its pid namespace, everything in the sandbox ends. */
void sbx_stage_stop(struct sbx_run *r);

#endif
