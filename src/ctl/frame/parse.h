/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_FRAME_PARSE_H
#define SBX_CTL_FRAME_PARSE_H

#include "ctl/frame/command.h"

/* Read the command line: find the command, fill values, argc and argv. @argv is untrusted and must
 * outlive @ctl. With --help or --version nothing behind is looked at. Without a command, or with a
 * group alone, help is asked for with @ctl->group set, or the words are refused. 0; SBX_CTL_USAGE
 * with ctl->err; -ENOMEM. @ctl is for sbx_ctl_fini() in any case. */
int sbx_ctl_parse(struct sbx_ctl *ctl, const struct sbx_ctl_table *table, int argc, char **argv);
void sbx_ctl_fini(struct sbx_ctl *ctl);

/* Does @name, one or two words, belong to @group (the empty one has all)? */
bool sbx_ctl_in_group(const char *name, const char *group);

#endif
