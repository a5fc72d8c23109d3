/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SETUP_BWRAP_ARGV_H
#define SBX_LAUNCHER_SETUP_BWRAP_ARGV_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/plan/plan.h"
#include "launcher/setup/setup.h"

/*
 * bwrap's command line for a plan, and the fds that bwrap gets besides 0-2.
 *
 * bwrap reads all options from a pipe (--args). So /proc/PID/cmdline does not show the environment,
 * and bwrap can start before the plan exists. bwrap runs sbx-init by its fd, so that no file of it
 * is needed in the sandbox. init's argv is {"/proc/self/fd/EXE", CTL, EXE, EXEC, "--", command...};
 * init_argv.h lists the words that can replace "--".
 */

/* init gets the first three. bwrap closes the others before it starts init (a probe checks that).
 */
#define SBX_BWRAP_CTL_NUMBER 3	   /* the channel to init */
#define SBX_BWRAP_EXE_NUMBER 4	   /* O_PATH of sbx-init */
#define SBX_BWRAP_EXEC_NUMBER 5	   /* pid 1's channel for further commands */
#define SBX_BWRAP_SECCOMP_NUMBER 6 /* a pipe for sbx_seccomp_write() */
#define SBX_BWRAP_ARGS_NUMBER 7	   /* a pipe for sbx_bwrap_args() */
#define SBX_N_BWRAP_FDS 5
const char *sbx_bwrap_fd_str(int number);

/* PURE. Makes the text for --args: options separated by NULs, malloc'ed. @s: what the run has
 * learned. 0 or -ENOMEM. */
int sbx_bwrap_args(const struct sbx_plan *p, const struct sbx_setup *s, char **ret_args,
		   size_t *ret_n);
/* PURE. Makes the NULL-terminated argv of bwrap. The caller frees the array; the strings of
 * @command are borrowed. @wait_all: the sandbox lasts until every process in it has ended. NULL:
 * out of memory. */
char **sbx_bwrap_argv(char *const *command, bool wait_all);

#endif
