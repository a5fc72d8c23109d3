/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The step `selftest`: init runs the probes of the plan, and every probe must have its verdict. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/run/run_outcome.h"
#include "launcher/run/steps.h"
#include "launcher/run/supervise.h"

#define SELFTEST_TIMEOUT_MS 20000 /* all probes; each has its own, shorter one */

/* The stage's half of the probe. */
static void judge_mounts(struct sbx_run *r, struct sbx_msg_verdict *v)
{
	if (!r->stage.open_mount)
		return;
	v->ok = 0;
	sbx_text_cut(v->detail, sizeof(v->detail),
		     "the mount at %s is missing, or it is not locked and can be removed",
		     r->plan->view.mounts[r->stage.open_mount - 1].dest);
}

static int judge_verdicts(struct sbx_run *r)
{
	const struct sbx_msg_probes *p = &r->setup.probes;

	for (uint32_t i = 0; i < p->n_probes; i++)
		if (p->probes[i].kind == SBX_PROBE_MOUNTS)
			judge_mounts(r, &r->init.verdicts.v[i]);
	for (uint32_t i = 0; i < p->n_probes; i++) {
		const struct sbx_msg_verdict *v = &r->init.verdicts.v[i];
		char where[SBX_ADDR_STR_MAX] = "";

		if (i < r->init.verdicts.n_verdicts && v->ok)
			continue;
		if (p->probes[i].addr.family)
			sbx_addr_format(&p->probes[i].addr, where, sizeof(where));
		r->outcome = SBX_OUTCOME_SELFTEST_FAILED;
		sbx_err_set(&r->err, "self-test probe %u (%s%s%s%s%s) failed: %s", i,
			    sbx_probe_kind_str(p->probes[i].kind), where[0] ? " " : "", where,
			    p->probes[i].name[0] ? " " : "", p->probes[i].name,
			    i < r->init.verdicts.n_verdicts ? v->detail : "no verdict");
		sbx_run_panic(r, SBX_REASON_SELFTEST, r->err.msg);
		return -EPERM;
	}
	return 0;
}

/* A closed channel is no error here: init has ended, and the wait for the verdicts finds why. */
static int send_to_init(const struct sbx_run *r, const uint8_t *packet, ssize_t n)
{
	int e = (int)n;

	if (n >= 0)
		e = r->init.fd < 0 ? 0 : sbx_channel_send(r->init.fd, packet, (size_t)n, NULL, 0);
	return e > 0 ? 0 : e;
}

/* If there is an allow list, init waits for it when it comes first. */
static int send_programs(struct sbx_run *r)
{
	static struct sbx_msg_programs m;
	static uint8_t packet[SBX_MSG_MAX];
	const struct sbx_plan *p = r->plan;
	uint32_t at = 0;
	ssize_t n;
	int e;

	if (p->commands.n_programs == 0)
		return 0;
	for (; m.n_programs < p->commands.n_programs; m.n_programs++) {
		const struct sbx_program *program = &p->commands.programs[m.n_programs];

		m.v[m.n_programs] = (struct sbx_msg_program){ program->dev, program->ino, at };
		/* command_files.c */
		sbx_text_fit(m.text + at, sizeof(m.text) - at, "%s", program->path);
		at += (uint32_t)strlen(program->path) + 1;
	}
	n = sbx_msg_encode_programs(&m, packet, sizeof(packet));
	e = send_to_init(r, packet, n);
	if (e < 0)
		sbx_err_set(&r->err, "cannot send the list of programs: %s", strerror(-e));
	return e;
}

static int send_probes(struct sbx_run *r)
{
	static uint8_t packet[SBX_MSG_MAX]; /* large for a stack */
	ssize_t n = sbx_msg_encode_probes(&r->setup.probes, packet, sizeof(packet));

	if (n < 0)
		sbx_err_set(&r->err, "the self-test's probes do not fit one message");
	return send_to_init(r, packet, n); /* they wait in the channel until init is there */
}

/* The database is opened here, while bwrap builds. A run that cannot be recorded is not
 * released. */
int sbx_step_selftest_apply(struct sbx_run *r)
{
	int e = send_programs(r);

	if (e == 0)
		e = send_probes(r);
	if (e == 0)
		e = sbx_record_begin(&r->recorder, r->facts, r->plan->policy,
				     &r->plan->live, &r->err);
	r->stage.config = sbx_stage_config_free(r->stage.config); /* the stage has its own
								   * mapping; freeing it at the
								   * end would take time */
	if (e < 0)
		return e;
	if (e == 0)
		e = sbx_supervise(r, SBX_WAIT_SELFTEST, SELFTEST_TIMEOUT_MS);
	sbx_attach_run_tested(&r->attach);
	if (e == 0 && r->init.watch_error) { /* the command would get no signal, at its wall time
					      * either */
		sbx_err_set(&r->err, "cannot watch the command: pidfd_open: %s",
			    strerror(-r->init.watch_error));
		return r->init.watch_error;
	}
	if (e == 0)
		return judge_verdicts(r);
	if (r->attach.changed)
		return sbx_run_rules_changed(r);
	if (r->interrupted) {
		sbx_err_set(&r->err, "interrupted by signal %d", r->interrupted);
		return -EINTR;
	}
	if (sbx_run_panic_lost(r))
		return e < 0 ? e : -ECONNABORTED;
	if (r->stage.failed.step[0]) {
		sbx_err_set(&r->err, "%s: %s", r->stage.failed.step, r->stage.failed.detail);
	} else if (r->init.hello) {
		r->outcome = SBX_OUTCOME_SELFTEST_FAILED;
		sbx_run_panic(r, SBX_REASON_SELFTEST, "no verdict");
		sbx_err_set(&r->err, e == -ETIMEDOUT ? "the self-test did not end in %d s" :
			    "the self-test broke off", SELFTEST_TIMEOUT_MS / 1000);
	} else {
		sbx_err_set(&r->err, "bwrap could not build the sandbox (its message is above)");
	}
	return e < 0 ? e : -ECONNABORTED;
}
