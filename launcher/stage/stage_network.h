/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_STAGE_STAGE_NETWORK_H
#define SBX_LAUNCHER_STAGE_STAGE_NETWORK_H

#include "base/err.h"
#include "ipc/messages.h"
#include "launcher/stage/stage_config.h"

/* The broker's sockets, and the stage's end of the channel between broker and socket factory. -1:
 * none. */
struct sbx_stage_sockets {
	int fds[SBX_N_BROKER_FDS];
	int factory;
	int ruleset; /* nfnetlink, to change the ruleset later; -1: it does not change */
};

/* Builds the network of @c. *ret_step names the part at work, for STAGE_FAILED. Opened descriptors
 * are in @s, also on failure. 0 or -errno with @err. */
int sbx_stage_network_build(const struct sbx_stage_config *c, struct sbx_stage_sockets *s,
			    const char **ret_step, struct sbx_err *err);

/* Writes the ports that the listeners are bound to into @nft: the stage needs them for the ruleset,
 * the launcher so that the receipt shows the ruleset as it is loaded. */
void sbx_stage_network_ports(const int fds[SBX_N_BROKER_FDS], struct sbx_nft_input *nft);

#endif
