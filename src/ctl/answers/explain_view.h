/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_ANSWERS_EXPLAIN_VIEW_H
#define SBX_CTL_ANSWERS_EXPLAIN_VIEW_H

#include "ctl/answers/dry_plan.h"
#include "launcher/explain/explained.h"

/*
 * Explains a mount and a command: plans of sbx-run are made with it, and their outcome is the
 * answer. @base is the plan without it, and @words are the flags that made @base. 0 or -errno.
 */
/* @path as --bind takes it: SRC[:DST][:ro]. */
int sbx_explain_mount(const struct sbx_dry_plan *base, const char *const *words, const char *path,
		      struct sbx_explained *ret_e);
int sbx_explain_command(const struct sbx_dry_plan *base, const char *const *words,
			const char *command, struct sbx_explained *ret_e);

#endif
