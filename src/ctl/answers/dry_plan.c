/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/answers/dry_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cli/options_parse.h"
#include "launcher/host/exit_status.h"
#include "launcher/host/facts_gather.h"
#include "launcher/plan/planner.h"

/* A command that is never looked at: the reader of options wants one. */
#define NO_COMMAND "true"

static int make_argv(struct sbx_dry_plan *d, const char *const *words, const char *command,
		     int *ret_argc)
{
	const char *const last[] = { "--", command ? command : NO_COMMAND };
	size_t n_words = 0, n = 0;

	while (words[n_words])
		n_words++;
	d->argv = calloc(n_words + 5, sizeof(*d->argv));
	if (!d->argv)
		return -ENOMEM;
	d->argv[n++] = strdup("sbx-run");
	d->argv[n++] = strdup("--dry-run");
	for (size_t i = 0; i < n_words; i++)
		d->argv[n++] = strdup(words[i]);
	d->argv[n++] = strdup(last[0]);
	d->argv[n++] = strdup(last[1]);
	for (size_t i = 0; i < n; i++)
		if (!d->argv[i])
			return -ENOMEM;
	*ret_argc = (int)n;
	return 0;
}

static int refused(struct sbx_dry_plan *d, const struct sbx_err *err)
{
	sbx_err_list_add(&d->errs, err->file, err->line, err->column, "%s", err->msg);
	return SBX_EXIT_REFUSED;
}

int sbx_dry_plan_new(const char *const *words, const char *command,
		     const struct sbx_rule_draft *draft, struct sbx_dry_plan **ret_d)
{
	struct sbx_dry_plan *d = *ret_d = calloc(1, sizeof(*d));
	struct sbx_err err = { 0 };
	int argc = 0, r = d ? make_argv(d, words, command, &argc) : -ENOMEM;

	if (r == 0)
		r = sbx_options_parse(argc, d->argv, &d->options, &err);
	if (r == 0 && !command) {
		d->options.argv += d->options.argc;
		d->options.argc = 0;
	}
	if (r == 0) {
		d->options.draft = draft;
		r = sbx_facts_gather(&d->options, &d->facts, &err);
	}
	if (r > 0)
		return refused(d, &err);
	return r < 0 ? r : sbx_plan_new(&d->options, &d->facts, &d->errs, &d->plan);
}

struct sbx_dry_plan *sbx_dry_plan_free(struct sbx_dry_plan *d)
{
	if (!d)
		return NULL;
	sbx_plan_free(d->plan);
	sbx_facts_fini(&d->facts);
	sbx_options_fini(&d->options);
	for (size_t i = 0; d->argv && d->argv[i]; i++)
		free(d->argv[i]);
	free(d->argv);
	free(d);
	return NULL;
}
