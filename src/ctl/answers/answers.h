/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_ANSWERS_ANSWERS_H
#define SBX_CTL_ANSWERS_ANSWERS_H

#include "ctl/frame/command.h"

/* Commands about files and the host. */

extern const struct sbx_ctl_command sbx_cmd_profile_list, sbx_cmd_profile_show,
	sbx_cmd_profile_check, sbx_cmd_profile_diff; /* cmd_profile.c */
extern const struct sbx_ctl_command sbx_cmd_gc;	     /* cmd_gc.c */
extern const struct sbx_ctl_command sbx_cmd_doctor;  /* cmd_doctor.c */
extern const struct sbx_ctl_command sbx_cmd_explain; /* cmd_explain.c */

#endif
