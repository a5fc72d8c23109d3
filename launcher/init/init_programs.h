/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_INIT_INIT_PROGRAMS_H
#define SBX_LAUNCHER_INIT_INIT_PROGRAMS_H

#include <stddef.h>

#include "ipc/messages.h"

/* From here on this process and its children execute only @m's files, and read no other program in
 * the directories of programs. 0; otherwise -errno with @why, a line for people. */
int sbx_init_hold(const struct sbx_msg_programs *m, char *why, size_t n_why);

/* The same for the descriptors 0-2 that a further command got, when the list is enforced: 0, or
 * -EPERM with @why. */
int sbx_init_judge_stdio(char *why, size_t n_why);

#endif
