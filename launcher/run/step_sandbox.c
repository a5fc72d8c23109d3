/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The steps that build the sandbox, and the last one, which releases the command. */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "launcher/resources/publish.h"
#include "launcher/run/announce.h"
#include "launcher/run/run_outcome.h"
#include "launcher/run/steps.h"
#include "launcher/run/supervise.h"
#include "launcher/stage/stage_network.h"
#include "launcher/stage/stage_process.h"
#include "launcher/view/etc.h"
#include "sys/process/proc.h"
#include "sys/seccomp/seccomp.h"

#define STAGE_TIMEOUT_MS   10000
#define RELEASE_TIMEOUT_MS 5000
#define STOP_TIMEOUT_MS	   2000

/* --- stage --- */

int sbx_run_stage_begin(struct sbx_run *r)
{
	const struct sbx_stage_start how = {
		.facts = r->facts,
		.options = r->options,
		.cgroup_fd = sbx_cgroup_birthplace(&r->cgroup.dirs),
		.host_network = r->plan && r->plan->attach.on,
	};

	return sbx_stage_begin(&r->stage, &r->init, &how, &r->err);
}

void sbx_step_stage_undo(struct sbx_run *r)
{
	sbx_stage_fini(&r->stage);
	sbx_init_process_fini(&r->init);
}

/* If there is a cgroup, the stage is born in it. A stage that was begun before is given up. */
static int begin_in_cgroup(struct sbx_run *r)
{
	if (r->cgroup.dirs.command_fd < 0 && r->stage.begun)
		return 0;
	sbx_step_stage_undo(r);
	return sbx_run_stage_begin(r);
}

/* RLIMIT_NPROC of the command, which the kernel counts per user namespace (Linux 5.14). 0: the
 * cgroup holds the limit, or there is none. */
static uint32_t processes_limit(const struct sbx_run *r)
{
	uint32_t pids = r->plan->profile->limits.pids;

	return pids && !(r->cgroup.limited & SBX_CGROUP_BIT(SBX_CGROUP_PIDS)) ?
		       pids + SBX_CGROUP_PIDS_OURS :
		       0;
}

/* The stage was begun before there was a plan (main.c). If that failed, the reason is told now,
 * after the errors of the plan. */
int sbx_step_stage_apply(struct sbx_run *r)
{
	char etc[4096];
	int e = r->stage.error;

	if (e == 0)
		e = begin_in_cgroup(r);
	if (e < 0)
		return e;
	if (snprintf(etc, sizeof(etc), "%s/etc", r->facts->runtime_dir) >= (int)sizeof(etc))
		return -ENAMETOOLONG;
	e = sbx_etc_prepare(&r->plan->view, r->facts, etc, &r->setup.etc, &r->err);
	if (e == 0)
		e = sbx_stage_configure(&r->stage, r->plan, &r->setup, &r->protect.placeholders,
					processes_limit(r), &r->err);
	return e;
}

/* --- broker --- */

/* An unprivileged launcher starts the broker when the stage is done: before that both processors
 * work for the command, and the self-test, which asks it first, comes later. A privileged launcher
 * starts it here, because it gives up privileges before the stage is done. */
static bool starts_late(const struct sbx_run *r)
{
	return !r->facts->privileged;
}

static int start_broker(struct sbx_run *r)
{
	return sbx_broker_start(&r->broker, r->plan, r->cgroup.dirs.broker_fd, &r->err);
}

int sbx_step_broker_apply(struct sbx_run *r)
{
	return starts_late(r) ? 0 : start_broker(r);
}

void sbx_step_broker_undo(struct sbx_run *r)
{
	sbx_live_end(&r->live);
	if (!r->protocol_broken && sbx_broker_ask_stop(&r->broker))
		sbx_supervise(r, SBX_WAIT_BROKER, STOP_TIMEOUT_MS);
	sbx_broker_fini(&r->broker);
}

/* --- publish --- */

int sbx_step_publish_apply(struct sbx_run *r)
{
	return sbx_publish_open(r->plan, &r->setup, r->stage.sandbox_fds, &r->err);
}

void sbx_step_publish_undo(struct sbx_run *r)
{
	sbx_publish_close(r->stage.sandbox_fds);
}

/* --- firewall: the stage builds it; this step waits for the proof --- */

static int install_rules(struct sbx_run *r)
{
	return sbx_attach_run_install(&r->attach, r->plan, &r->cgroup, &r->setup, r->runtime.fd,
				      r->stage.sandbox_fds, &r->err);
}

int sbx_step_firewall_apply(struct sbx_run *r)
{
	int e = sbx_supervise(r, SBX_WAIT_STAGE, STAGE_TIMEOUT_MS);

	if (e != 0)
		return sbx_run_wait_failed(r, e, "the stage", STAGE_TIMEOUT_MS);
	e = starts_late(r) ? start_broker(r) : 0;
	sbx_stage_network_ports(r->stage.sandbox_fds, &r->setup.nft);
	if (e == 0)
		e = install_rules(r);
	if (e == 0)
		e = sbx_run_wait_tls(r);
	r->stage.sandbox_fds[SBX_BFD_TLS] = sbx_fd_steal(&r->tls.broker_fd);
	return e < 0 ? e :
		       sbx_broker_configure(&r->broker, r->plan, &r->setup, r->stage.sandbox_fds,
					    &r->err);
}

void sbx_step_firewall_undo(struct sbx_run *r)
{
	sbx_stage_close_sandbox_fds(&r->stage);
}

/* --- command: bwrap does nothing without the seccomp program --- */

int sbx_step_command_apply(struct sbx_run *r)
{
	struct sbx_err err = { 0 };
	int e = sbx_seccomp_write(SBX_SECCOMP_COMMAND, r->plan->seccomp_lifts, r->stage.seccomp_fd,
				  &err);

	r->stage.seccomp_fd = sbx_fd_close(r->stage.seccomp_fd);
	if (e == -EPIPE)
		return 0; /* bwrap has ended: the stage failed, and the next wait for it finds
			   * the reason */
	if (e < 0)
		sbx_err_set(&r->err, "%s", err.msg);
	return e;
}

void sbx_step_command_undo(struct sbx_run *r)
{
	r->stage.seccomp_fd = sbx_fd_close(r->stage.seccomp_fd);
}

/* --- privileges: the later steps need few --- */

/* The later steps need to signal processes of other users, and to write a receipt where root was
 * told to. Files of uid 0 (database, runtime directory) need no capability. */
int sbx_step_privileges_apply(struct sbx_run *r)
{
	uint64_t keep = 1ull << CAP_KILL | sbx_run_attach_caps(r->plan);
	int e;

	if (!r->plan->facts->privileged)
		return 0;
	if ((r->receipt_dir_fd >= 0 || r->learn_dir_fd >= 0) && r->plan->facts->caller_uid == 0)
		keep |= 1ull << CAP_DAC_OVERRIDE;
	e = sbx_caps_keep(keep);
	if (e < 0)
		sbx_err_set(&r->err, "cannot drop capabilities: %s", strerror(-e));
	return e;
}

/* --- release --- */

static int send_simple(int fd, enum sbx_msg_type type)
{
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(type, 0, packet, sizeof(packet));

	return n < 0 ? (int)n : sbx_channel_send(fd, packet, (size_t)n, NULL, 0);
}

/* The broker's events so far are those of the self-test; later ones are the command's. */
static int release_broker(struct sbx_run *r)
{
	int e = send_simple(r->broker.fd, SBX_MSG_RELEASE);

	if (e == SBX_CHANNEL_E_CLOSED)
		r->broker.gone = true;
	if (e == 0)
		e = sbx_supervise(r, SBX_WAIT_RELEASE, RELEASE_TIMEOUT_MS);
	if (e == 0)
		return 0;
	e = sbx_run_wait_failed(r, e, "the broker", RELEASE_TIMEOUT_MS);
	sbx_err_set(&r->err, "the sandbox ended before the release");
	return e;
}

static int start_live(struct sbx_run *r)
{
	const struct sbx_live_parts parts = {
		.plan = r->plan,
		.setup = &r->setup,
		.watches = &r->watches,
		.recorder = &r->recorder,
		.stage = &r->stage,
		.broker = &r->broker,
		.attach = &r->attach,
	};

	return sbx_live_start(&r->live, &parts);
}

int sbx_step_release_apply(struct sbx_run *r)
{
	int e = release_broker(r);

	if (e == 0)
		e = sbx_protect_helpers_ready(&r->protect, &r->err);
	if (e < 0)
		return e;
	e = sbx_supervise_wall_clock(r);
	if (e < 0) {
		sbx_err_set(&r->err, "cannot start the wall clock: %s", strerror(-e));
		return e;
	}
	sbx_publish_tell(r->plan, &r->setup);
	e = send_simple(r->init.fd, SBX_MSG_RELEASE);
	if (e) {
		sbx_err_set(&r->err, "the sandbox's init ended before the release");
		return e < 0 ? e : -EPIPE;
	}
	r->released = true;
	r->outcome = SBX_OUTCOME_DONE;
	e = start_live(r);
	if (e < 0) {
		sbx_err_set(&r->err, "cannot take changes of the policy: %s", strerror(-e));
		return e;
	}
	sbx_execs_open(&r->execs, r->plan, &r->watches, r->init.exec_fd);
	sbx_record_released(&r->recorder, !r->plan->attach.on); /* with attach it may wait for
								 * pins */
	sbx_announce_ready(r); /* after the row is written, which a reader may look for */
	return 0;
}
