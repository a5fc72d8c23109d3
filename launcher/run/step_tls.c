/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The step `tls`: sbx-tls gets its rules. It is among the first steps, because sbx-tls makes its
 * keys while the stage builds the sandbox; the step `firewall` waits for the authority that the
 * sandbox will trust. A sandbox without terminated hosts passes through.
 *
 * The secret helper is started first. It has the launcher's privileges, and the variables that a
 * secret's command may need again; the mapping of the values is zeros there. Then the launcher
 * wipes these variables: sbx-tls, the cleanup process and all helpers are forked later and have
 * none. (The stage may be older, and wiped its own copy.) From the moment the rules are sent the
 * launcher has no value any more.
 */
#include <string.h>

#include "launcher/run/run_outcome.h"
#include "launcher/run/steps.h"
#include "launcher/run/supervise.h"

#define TLS_TIMEOUT_MS 10000

/* The stage has made the files, which are mounted already: they get their text. */
static int fill_trust(struct sbx_run *r)
{
	int e = sbx_tls_process_read_ready(&r->tls, r->plan, &r->setup, &r->err);

	if (e < 0)
		return e;
	e = sbx_setup_write_fills(&r->setup, r->plan, r->stage.fills);
	if (e < 0)
		sbx_err_set(&r->err, "cannot write the sandbox's trust store: %s", strerror(-e));
	return e;
}

int sbx_run_wait_tls(struct sbx_run *r)
{
	int e;

	if (!r->plan->tls.on)
		return 0;
	e = sbx_supervise(r, SBX_WAIT_TLS, TLS_TIMEOUT_MS);
	return e == 0 ? fill_trust(r) : sbx_run_wait_failed(r, e, "sbx-tls", TLS_TIMEOUT_MS);
}

int sbx_step_tls_apply(struct sbx_run *r)
{
	int e;

	if (!r->plan->tls.on)
		return 0;
	e = sbx_secret_helper_start(&r->secret_helper, r->plan->profile, r->facts, &r->err);
	sbx_secrets_forget_environment(r->plan->profile, r->facts);
	if (e == 0)
		e = sbx_tls_process_start(&r->tls, r->plan, &r->secrets, r->cgroup.dirs.broker_fd,
					  &r->err);
	sbx_secrets_wipe(&r->secrets);
	return e < 0 ? e : sbx_setup_placeholders(&r->setup, r->plan, &r->secrets);
}

void sbx_step_tls_undo(struct sbx_run *r)
{
	sbx_tls_process_fini(&r->tls);
	sbx_secret_helper_fini(&r->secret_helper);
	sbx_secrets_wipe(&r->secrets);
}
