/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_EXEC_EXEC_H
#define SBX_CTL_EXEC_EXEC_H

#include "ctl/frame/command.h"

extern const struct sbx_ctl_command sbx_cmd_exec;

#endif
