/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_LEARN_LEARN_FILE_H
#define SBX_LAUNCHER_LEARN_LEARN_FILE_H

#include "base/err.h"
#include "launcher/learn/learn.h"
#include "launcher/learn/learn_program.h"
#include "launcher/plan/plan.h"

/* The file of --learn FILE, which must be set. */

/* Open its directory before anything runs. Refuses a file that exists (without --learn-force), a
 * directory that the sandbox writes, and a run whose profile has no name to extend. 0 or -errno
 * with @err. */
int sbx_learn_prepare(const struct sbx_plan *plan, int *ret_dir_fd, struct sbx_err *err);

/* Write what was learned to the directory of sbx_learn_prepare(), whole or not at all. 0 or -errno
 * with @err (-EEXIST: another program has made the file meanwhile). */
int sbx_learn_write(int dir_fd, const struct sbx_plan *plan, const struct sbx_learn *learn,
		    const struct sbx_learn_programs *programs, struct sbx_err *err);

#endif
