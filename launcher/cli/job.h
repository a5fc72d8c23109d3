/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLI_JOB_H
#define SBX_LAUNCHER_CLI_JOB_H

#include "base/err.h"
#include "launcher/host/options.h"

/* Finds and reads the job that @o names, and adds it to @o (sbx_options_add_job()). Does nothing
 * when @o names none. The environment may name the directory of jobs. Returns 0; 125 with @errs; or
 * -errno. */
int sbx_job_load(struct sbx_options *o, struct sbx_err_list *errs);

#endif
