/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Jobs: any text is refused with a reason, or becomes a job whose values have the forms of the
 * flags. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "policy/forms/option_form.h"
#include "policy/keys/job.h"
#include "policy/keys/profile_parse.h"
#include "tests/fuzz/fuzz.h"

static void check_list(const struct sbx_str_list *list, size_t max,
		       const char *(*form)(const char *))
{
	CHECK(list->n <= max);
	for (size_t i = 0; i < list->n; i++)
		CHECK(!form || !form(list->v[i]));
}

static void check_string(const char *s, const char *(*form)(const char *))
{
	CHECK(!s || (*s && !strpbrk(s, "\t\n") && !form(s)));
}

static void check_job(const struct sbx_job *j)
{
	struct sbx_limit_values limits = { 0 };

	check_string(j->profile, sbx_form_not_empty);
	check_string(j->workspace, sbx_form_token);
	check_string(j->analysis_id, sbx_form_token);
	check_string(j->user, sbx_form_not_empty);
	check_string(j->chdir, sbx_form_absolute);
	check_string(j->hostname, sbx_form_hostname);
	check_string(j->receipt, sbx_form_not_empty);
	check_string(j->keep, sbx_form_not_empty);
	check_string(j->root, sbx_form_root);
	check_string(j->home, sbx_form_home);
	check_list(&j->bind, SBX_JOB_LIST_MAX, sbx_form_bind);
	check_list(&j->ro_bind, SBX_JOB_LIST_MAX, sbx_form_ro_bind);
	check_list(&j->tmpfs, SBX_JOB_LIST_MAX, sbx_form_tmpfs);
	check_list(&j->device, SBX_JOB_LIST_MAX, sbx_form_device);
	check_list(&j->allow, SBX_JOB_LIST_MAX, sbx_form_not_empty);
	check_list(&j->deny, SBX_JOB_LIST_MAX, sbx_form_not_empty);
	check_list(&j->live_allow, SBX_JOB_LIST_MAX, sbx_form_not_empty);
	check_list(&j->live_deny, SBX_JOB_LIST_MAX, sbx_form_not_empty);
	check_list(&j->live_rule, SBX_JOB_LIST_MAX, sbx_form_not_empty);
	check_list(&j->secret, SBX_SECRETS_MAX, sbx_form_not_empty);
	check_list(&j->publish, SBX_PUBLISH_MAX, sbx_form_not_empty);
	check_list(&j->env, SBX_JOB_LIST_MAX, sbx_form_env);
	check_list(&j->limit, SBX_JOB_LIST_MAX, sbx_form_key_value);
	for (size_t i = 0; i < j->limit.n; i++)
		CHECK(sbx_limit_set(&limits, j->limit.v[i], NULL) == 0);
	check_list(&j->command, SBX_JOB_WORDS_MAX, NULL);
	CHECK(!j->command.v || !j->command.v[j->command.n]);
	CHECK(j->command.n == 0 || j->command.v[0][0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sbx_err_list errs;
	struct sbx_job *j = NULL;
	int r;

	memset(&errs, 0, sizeof(errs));
	r = sbx_job_parse(sbx_span(data, size), "fuzz.yaml", &errs, &j);
	CHECK((r == SBX_JOB_E_INVALID) == (errs.n > 0) && (r == 0) == (j != NULL));
	for (size_t i = 0; i < errs.n; i++)
		CHECK(errs.v[i].msg[0] && errs.v[i].line >= 0);
	if (j)
		check_job(j);
	sbx_job_free(j);
	return 0;
}
