/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_LIVE_SANDBOX_NOW_H
#define SBX_CTL_LIVE_SANDBOX_NOW_H

#include <jansson.h>
#include <stdbool.h>

#include "ctl/frame/command.h"

/* The database cannot know whether the launcher of a sandbox lives, nor what holds now: ask. */

/* For each of @rows (sbx_sandbox_json()) that has not ended: set launcher_alive and, as far as its
 * launcher answers in time, state, generation, air_gapped, allow_out, deny_out and rules. Launchers
 * that do not answer delay this by SBX_CTL_NOW_MS in all. */
#define SBX_CTL_NOW_MS 1000
void sbx_sandboxes_now(struct sbx_ctl *ctl, json_t *rows);

#endif
