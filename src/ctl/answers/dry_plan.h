/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_ANSWERS_DRY_PLAN_H
#define SBX_CTL_ANSWERS_DRY_PLAN_H

#include "base/err.h"
#include "launcher/host/facts.h"
#include "launcher/host/options.h"
#include "launcher/plan/plan.h"

/* The plan that sbx-run would make for some flags in this directory: by its own functions, as
 * --dry-run. Nothing is made. */
struct sbx_dry_plan {
	char **argv; /* owned; the options borrow from it */
	struct sbx_options options;
	struct sbx_facts facts;
	const struct sbx_plan *plan; /* status 0 */
	struct sbx_err_list errs;    /* status above 0 */
};

/*
 * @words are flags of sbx-run, NULL-terminated; @command the one word of the command, or NULL: then
 * the plan has no command; @draft (NULL: none), which is borrowed, is judged with the rules. 0;
 * sbx-run's exit status (125 to 127) with errs; -errno. *ret_d is for sbx_dry_plan_free() whatever
 * the result.
 */
int sbx_dry_plan_new(const char *const *words, const char *command,
		     const struct sbx_rule_draft *draft, struct sbx_dry_plan **ret_d);
struct sbx_dry_plan *sbx_dry_plan_free(struct sbx_dry_plan *d);

#endif
