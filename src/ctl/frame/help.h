/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_FRAME_HELP_H
#define SBX_CTL_FRAME_HELP_H

#include "ctl/frame/command.h"

/* Print the help of ctl->command or, without one, of the commands of ctl->group. 0 or -EIO. */
int sbx_ctl_print_help(const struct sbx_ctl *ctl, FILE *out);

/* The command `sbxctl help [COMMAND]`. */
extern const struct sbx_ctl_command sbx_cmd_help;
/* `sbxctl version` */
extern const struct sbx_ctl_command sbx_cmd_version;
int sbx_ctl_print_version(const struct sbx_ctl *ctl);

#endif
