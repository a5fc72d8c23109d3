/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's rules of a running sandbox.
 *
 * Attach netns: the ruleset in the sandbox's namespace is made of the policy, as at the start, and
 * the stage puts it in the place of the old one (it has the rights there; this process has none).
 * Whatever passes it comes to the broker, so it may be changed as a whole before the broker has the
 * policy.
 */
#include <errno.h>
#include <string.h>

#include "launcher/live/live_internal.h"

enum sbx_live_kernel sbx_live_kernel_close(struct sbx_live_run *l, struct sbx_err *err)
{
	(void)l;
	(void)err;
	return SBX_LIVE_KERNEL_SAME;
}

enum sbx_live_kernel sbx_live_kernel_open(struct sbx_live_run *l, uint32_t *ret_cut,
					  struct sbx_err *err)
{
	(void)l;
	(void)err;
	*ret_cut = 0;
	return SBX_LIVE_KERNEL_SAME;
}
