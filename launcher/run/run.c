/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The run's context: made empty and taken down. The steps own its contents in between. */
#include "launcher/run/run.h"

#include "base/cleanup.h"

void sbx_run_init(struct sbx_run *r, const struct sbx_options *o, const struct sbx_facts *f)
{
	r->options = o;
	r->facts = f;
	sbx_setup_init(&r->setup);
	r->runtime = SBX_RUNTIME_INIT;
	r->cleanup = SBX_CLEANUP_INIT;
	r->recorder = SBX_RECORDER_INIT;
	sbx_stage_init(&r->stage);
	sbx_init_process_init(&r->init);
	sbx_execs_init(&r->execs);
	sbx_cgroup_run_init(&r->cgroup);
	sbx_attach_run_init(&r->attach);
	sbx_broker_init(&r->broker);
	sbx_secret_helper_init(&r->secret_helper);
	sbx_tls_process_init(&r->tls);
	r->terminals = SBX_TERMINALS_NONE;
	r->scratch_fd = -1;
	sbx_keep_helper_init(&r->keep_helper);
	sbx_protect_helpers_init(&r->protect);
	sbx_review_hook_init(&r->reviewer.hook);
	sbx_live_run_init(&r->live);
	r->signal_fd = r->wall_fd = r->receipt_dir_fd = r->learn_dir_fd = -1;
	r->learn_execs = SBX_LEARN_EXECS_INIT;
}

void sbx_run_fini(struct sbx_run *r)
{
	sbx_live_run_fini(&r->live);
	r->signal_fd = sbx_fd_close(r->signal_fd);
	r->wall_fd = sbx_fd_close(r->wall_fd);
	sbx_stage_fini(&r->stage);
	sbx_execs_fini(&r->execs);
	sbx_init_process_fini(&r->init);
	r->receipt_dir_fd = sbx_fd_close(r->receipt_dir_fd);
	r->learn_dir_fd = sbx_fd_close(r->learn_dir_fd);
	sbx_learn_fini(&r->learn);
	sbx_learn_execs_fini(&r->learn_execs);
	sbx_recorder_fini(&r->recorder);
	sbx_keep_helper_fini(&r->keep_helper);
	sbx_protect_helpers_fini(&r->protect);
	sbx_terminals_fini(&r->terminals);
	sbx_secrets_fini(&r->secrets);
	sbx_setup_fini(&r->setup);
}
