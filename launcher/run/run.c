/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The run's context: made empty and taken down. The steps own its contents in between. */
#include "launcher/run/run.h"

#include "base/cleanup.h"

void sbx_run_init(struct sbx_run *r, const struct sbx_options *o, const struct sbx_facts *f)
{
	r->options = o;
	r->facts = f;
	sbx_setup_init(&r->setup);
	r->runtime_fd = r->guard_fd = r->stage_fd = r->stage_go_fd = -1;
	r->init_fd = r->init_peer_fd = r->init_exe_fd = r->init_pidfd = -1;
	r->seccomp_fd = r->seccomp_peer_fd = -1;
	r->args_fd = r->args_peer_fd = -1;
	sbx_cgroup_run_init(&r->cgroup);
	sbx_attach_run_init(&r->attach);
	sbx_broker_init(&r->broker);
	r->terminals = SBX_TERMINALS_NONE;
	r->keep_fd = r->upper_fd = r->scratch_fd = -1;
	r->signal_fd = r->wall_fd = r->receipt_dir_fd = -1;
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		r->sandbox_fds[i] = -1;
}

void sbx_run_fini(struct sbx_run *r)
{
	r->signal_fd = sbx_fd_close(r->signal_fd);
	r->wall_fd = sbx_fd_close(r->wall_fd);
	r->args_fd = sbx_fd_close(r->args_fd);
	r->receipt_dir_fd = sbx_fd_close(r->receipt_dir_fd);
	r->refusals = sbx_refusals_free(r->refusals);
	sbx_terminals_fini(&r->terminals);
	sbx_setup_fini(&r->setup);
}
