/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_DECIDE_LIVE_H
#define SBX_POLICY_DECIDE_LIVE_H

#include <stdbool.h>

#include "policy/profile/profile.h"

/* Changes of a running sandbox by its operator (sbxctl net). The lists stand above those of the
 * profile and below the rules of the workspace. */
struct sbx_live {
	bool air_gapped; /* only what @allow lists leaves the sandbox */
	struct sbx_net_list allow, deny;
};

#endif
