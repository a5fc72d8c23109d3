/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds a job, by the rules for profiles: --job NAME is CONFIG/jobs/NAME.yaml; a value that has a
 * '/' or ends in .yaml is a file. The file must be one that a user's configuration may be read from
 * (SBX_CONFIG_USER), because a job chooses the command and its user.
 */
#include "launcher/cli/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/cli/options_parse.h"
#include "launcher/host/config.h"
#include "launcher/host/exit_status.h"
#include "launcher/host/facts.h"
#include "launcher/host/facts_gather.h"
#include "policy/keys/job.h"

static int load(struct sbx_options *o, const struct sbx_facts *f, struct sbx_err_list *errs)
{
	SBX_AUTO_FREE char *path = NULL, *text = NULL;
	struct sbx_job *job = NULL;
	struct sbx_err err = { 0 };
	size_t n = 0;
	int r;

	r = sbx_config_job_path(o, f, &path, &err);
	if (r == 0)
		r = sbx_config_read(path, f, SBX_CONFIG_USER, &text, &n, &err);
	if (r == 1)
		sbx_err_set_at(&err, path, 0, 0, "there is no such job");
	if (r != 0)
		return err.msg[0] ? sbx_refuse(errs, &err) : r;
	r = sbx_job_parse(sbx_span(text, n), path, errs, &job);
	if (r == 0)
		r = sbx_options_add_job(o, job, &err); /* takes it */
	if (err.msg[0])
		sbx_refuse(errs, &err);
	return r > 0 ? SBX_EXIT_REFUSED : r;
}

int sbx_job_load(struct sbx_options *o, struct sbx_err_list *errs)
{
	struct sbx_facts facts;
	struct sbx_err err = { 0 };
	int r;

	if (!o->job)
		return 0;
	r = sbx_facts_gather_places(&facts, &err);
	if (r == 0)
		r = load(o, &facts, errs);
	else if (err.msg[0])
		r = sbx_refuse(errs, &err);
	sbx_facts_fini(&facts);
	return r;
}
