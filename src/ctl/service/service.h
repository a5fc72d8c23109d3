/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_SERVICE_SERVICE_H
#define SBX_CTL_SERVICE_SERVICE_H

#include "ctl/frame/command.h"

/* Commands of the service (sbxd). */

extern const struct sbx_ctl_command sbx_cmd_token_list, sbx_cmd_token_add,
	sbx_cmd_token_rm;			 /* cmd_token.c */
extern const struct sbx_ctl_command sbx_cmd_web; /* cmd_web.c */

#endif
