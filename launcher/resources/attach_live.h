/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RESOURCES_ATTACH_LIVE_H
#define SBX_LAUNCHER_RESOURCES_ATTACH_LIVE_H

#include <stdint.h>

#include "launcher/resources/attach.h"
#include "policy/decide/policy.h"

/*
 * Attach cgroup: the host's rules and the open flows follow a change of the policy, in this order:
 *
 *   sbx_attach_live_narrow()   a packet must pass the old and the new rules
 *   the broker has the policy, and has removed the pins that it does not allow
 *   sbx_attach_live_cut()      open flows that are not allowed any more are ended
 *   sbx_attach_live_widen()    the new rules alone
 */

enum { SBX_ATTACH_LIVE_E_REFUSED = 1 };

/* @policy was compiled from @in; both are borrowed for the call. 0, with *ret_changed: did the
 * kernel's rules change? SBX_ATTACH_LIVE_E_REFUSED with @err: nothing was changed, and nothing is
 * under way. -errno with @err: the rules may be neither, end the sandbox. */
int sbx_attach_live_narrow(struct sbx_attach_run *a, const struct sbx_plan *p,
			   const struct sbx_setup *s, const struct sbx_policy_input *in,
			   const struct sbx_policy *policy, bool *ret_changed,
			   struct sbx_err *err);
/* Returns the number of flows that were ended, or that the rules end with their next packet. */
uint32_t sbx_attach_live_cut(struct sbx_attach_run *a, const struct sbx_plan *p,
			     const struct sbx_setup *s);
/* 0, or -errno with @err: end the sandbox. */
int sbx_attach_live_widen(struct sbx_attach_run *a, struct sbx_err *err);

#endif
