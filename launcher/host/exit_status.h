/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_EXIT_STATUS_H
#define SBX_LAUNCHER_HOST_EXIT_STATUS_H

#include "base/err.h"

/* Exit statuses of sbx-run besides the command's own (sbx-run(1), EXIT STATUS). Planning returns
 * the first three. */
#define SBX_EXIT_REFUSED	125 /* policy, usage or setup: nothing ran */
#define SBX_EXIT_NOT_EXECUTABLE 126
#define SBX_EXIT_NOT_FOUND	127
/* the command ended with 0, and what it left could not be kept */
#define SBX_EXIT_NOT_KEPT	123
#define SBX_EXIT_TIMED_OUT	124 /* wall_time */

/* Move the message of @err to the list; returns SBX_EXIT_REFUSED. */
static inline int sbx_refuse(struct sbx_err_list *errs, const struct sbx_err *err)
{
	sbx_err_list_add(errs, err->file, err->line, err->column, "%s", err->msg);
	return SBX_EXIT_REFUSED;
}

#endif
