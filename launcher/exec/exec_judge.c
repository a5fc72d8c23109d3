/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A further command is judged as the first one was, with its own directory and PATH.
 *
 * A privileged launcher has given up the privileges to look as the sandbox's user. So it looks
 * without any: where it may not look, the sandbox decides.
 */
#include "launcher/exec/exec_judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/commands/command.h"
#include "launcher/host/exit_status.h"
#include "launcher/plan/planner.h"
#include "launcher/view/view.h"
#include "sys/process/proc.h"

/* The environment as far as judging needs it: PATH, of the request or the sandbox's. */
static struct sbx_environment path_of(const struct sbx_plan *plan, char *const *env,
				      char *ret_v[2])
{
	const struct sbx_environment *had = &plan->env;

	ret_v[0] = ret_v[1] = NULL;
	for (size_t i = 0; i < had->n; i++)
		if (strncmp(had->v[i], "PATH=", 5) == 0)
			ret_v[0] = had->v[i];
	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], "PATH=", 5) == 0)
			ret_v[0] = env[i];
	return (struct sbx_environment){ .n = ret_v[0] != NULL, .v = ret_v };
}

static int judge(const struct sbx_draft *d, const char *command, bool *ret_denied,
		 struct sbx_err_list *errs)
{
	bool privileged = d->facts->privileged;
	struct sbx_view_hit hit;
	int r = privileged ? sbx_caps_use(false) : 0;

	if (r == 0)
		r = sbx_command_judge(d, command, &hit, ret_denied, errs);
	if (privileged && sbx_caps_use(true) < 0 && r >= 0)
		return -EPERM;
	return r;
}

int sbx_exec_judge(const struct sbx_plan *plan, const char *command, char *const *env,
		   const char *dir, int *ret_status, char **ret_why, struct sbx_err *err)
{
	static struct sbx_err_list errs; /* large */
	struct sbx_lookup_ids no_ids = { 0 };
	struct sbx_draft d = sbx_plan_draft(plan->self);
	struct sbx_view view = plan->view;
	SBX_AUTO_FREE char *chdir = strdup(dir);
	char *v[2];
	struct sbx_environment path = path_of(plan, env, v);
	bool denied = false;
	int r;

	if (!chdir) {
		sbx_err_set(err, "no memory");
		return SBX_EXIT_REFUSED;
	}
	view.chdir = chdir;
	d.view = &view;
	d.env = &path;
	d.lookup_ids = &no_ids;
	memset(&errs, 0, sizeof(errs));
	r = judge(&d, command, &denied, &errs);
	if (r == 0)
		return 0;
	if (r < 0 || denied) {
		sbx_err_set(err, "%s", r < 0 ? strerror(-r) : errs.n ? errs.v[0].msg : "denied");
		return r < 0 ? SBX_EXIT_REFUSED : r;
	}
	*ret_status = r;
	*ret_why = errs.n ? strdup(errs.v[0].msg) : NULL;
	return 0;
}
