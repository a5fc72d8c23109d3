/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_LIVE_LIVE_H
#define SBX_CTL_LIVE_LIVE_H

#include "ctl/frame/command.h"

/* Commands of sandboxes. */

extern const struct sbx_ctl_command sbx_cmd_ps;					  /* cmd_ps.c */
extern const struct sbx_ctl_command sbx_cmd_show;				  /* cmd_show.c */
extern const struct sbx_ctl_command sbx_cmd_net, sbx_cmd_reload, sbx_cmd_publish; /* cmd_net.c */
extern const struct sbx_ctl_command sbx_cmd_kill, sbx_cmd_signal, sbx_cmd_freeze,
	sbx_cmd_thaw; /* cmd_signal.c */

#endif
