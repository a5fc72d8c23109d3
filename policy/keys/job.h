/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_KEYS_JOB_H
#define SBX_POLICY_KEYS_JOB_H

#include <stdbool.h>

#include "base/err.h"
#include "base/span.h"
#include "policy/profile/profile.h"

/*
 * A job: flags of sbx-run and a command, in a file (sbx-run --job). Each value has the form of the
 * flag's value, and is checked again as a flag. PURE.
 */

#define SBX_JOB_LIST_MAX  256  /* entries of a list; as SBX_OPTIONS_LIST_MAX */
#define SBX_JOB_WORDS_MAX 4096 /* of the command */

struct sbx_job {
	/* NULL: the file does not have the key. */
	char *profile, *workspace, *analysis_id, *user, *chdir, *hostname, *receipt, *keep;
	char *root, *home;
	struct sbx_str_list bind, ro_bind, tmpfs, device, allow, deny, secret, publish, env, limit;
	struct sbx_str_list live_allow, live_deny, live_rule;
	struct sbx_str_list command; /* v is NULL-terminated, or NULL when there is none */
	bool air_gap, overlay, scratch, cache, wait, wait_all;
};

/* Parses and checks @yaml (untrusted). Adds each mistake to @errs under the name @file. Returns 0;
 * SBX_JOB_E_INVALID with @errs; or -ENOMEM. */
enum { SBX_JOB_E_INVALID = 1 };
int sbx_job_parse(struct sbx_span yaml, const char *file, struct sbx_err_list *errs,
		  struct sbx_job **ret_job);
struct sbx_job *sbx_job_free(struct sbx_job *j);

#endif
