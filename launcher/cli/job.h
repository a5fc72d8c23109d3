/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLI_JOB_H
#define SBX_LAUNCHER_CLI_JOB_H

#include "base/err.h"
#include "launcher/cli/options.h"

struct sbx_facts;

/* The file that @o->job is. malloc'ed. 0; SBX_PLAN_REFUSED with @err; -ENOMEM. */
int sbx_job_path(const struct sbx_options *o, const struct sbx_facts *f, char **ret_path, struct sbx_err *err);

/* Where @o names a job: find it, read it, and let it stand behind the flags (sbx_options_add_job()). 0; 125 with
 * @errs; -errno. Looks at the environment for the directory of jobs. */
int sbx_job_load(struct sbx_options *o, struct sbx_err_list *errs);

#endif
