/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_MAIN_COMMAND_TABLE_H
#define SBX_CTL_MAIN_COMMAND_TABLE_H

#include "ctl/frame/command.h"

/* All commands, in the order of the help (frame/command.h). */
extern const struct sbx_ctl_table sbx_ctl_commands;

#endif
