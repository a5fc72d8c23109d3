/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLI_JOB_H
#define SBX_LAUNCHER_CLI_JOB_H

#include "base/err.h"
#include "launcher/host/options.h"

/* Where @o names a job: find it, read it, and let it stand behind the flags (sbx_options_add_job()). 0; 125 with
 * @errs; -errno. Looks at the environment for the directory of jobs. */
int sbx_job_load(struct sbx_options *o, struct sbx_err_list *errs);

#endif
