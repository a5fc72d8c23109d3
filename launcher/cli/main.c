/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-run: prepare the process, parse the command line, gather facts, plan, carry out.
 *
 * Only the stage exists before sbx_run_carry_out(): a child in namespaces of its own that waits for
 * its config and leaves nothing when it ends. sbx_run_carry_out() undoes all that it creates.
 *
 * Modules report errors in struct sbx_err. Only this file prints them.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "base/version.h"
#include "cli/stdio.h"
#include "launcher/cleanup/gc.h"
#include "launcher/cleanup/sweep.h"
#include "launcher/cli/job.h"
#include "launcher/cli/options_parse.h"
#include "launcher/cli/profile_list.h"
#include "launcher/exec/stdio.h"
#include "launcher/host/exit_status.h"
#include "launcher/host/facts.h"
#include "launcher/host/facts_gather.h"
#include "launcher/host/options.h"
#include "launcher/keep/keep_helper.h"
#include "launcher/learn/learn_file.h"
#include "launcher/plan/plan.h"
#include "launcher/plan/planner.h"
#include "launcher/process/step_hook.h"
#include "launcher/record/receipt.h"
#include "launcher/record/record.h"
#include "launcher/record/refusals.h"
#include "launcher/resources/cgroup.h"
#include "launcher/run/steps.h"
#include "launcher/run/supervise.h"
#include "launcher/secrets/secrets.h"
#include "launcher/setup/plan_json.h"
#include "sys/process/proc.h"

SBX_VERSION_MARK;

#define EXIT_NOT_SET_UP 125

static void complain(const struct sbx_err *err)
{
	char buf[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64];

	fprintf(stderr, "sbx-run: %s\n", sbx_err_format(err, buf, sizeof(buf)));
}

static int print_json(const struct sbx_plan *plan)
{
	SBX_AUTO_FREE char *text = sbx_plan_json(plan, NULL);

	if (!text || puts(text) < 0 || fflush(stdout) != 0) {
		fprintf(stderr, "sbx-run: cannot print the plan\n");
		return EXIT_NOT_SET_UP;
	}
	return 0;
}

static void print_times(const struct sbx_run *r)
{
	for (int i = 0; i < SBX_N_STEPS; i++)
		fprintf(stderr, "sbx-run: step %-10s %6.2f ms\n", sbx_step_str((enum sbx_step_id)i),
			r->step_us[i] / 1000.0);
}

static void tell_kept(const struct sbx_run *r)
{
	struct sbx_err err = { 0 };

	if (r->keep_helper.failed) {
		sbx_err_set(&err, "the result is not kept, or not whole, in %s: %s",
			    r->plan->keep.path, r->keep_helper.err.msg);
		complain(&err);
	} else if (r->keep_helper.counts.left_out && !r->options->quiet) {
		fprintf(stderr, "sbx-run: --keep left out %llu sockets, fifos or devices\n",
			(unsigned long long)r->keep_helper.counts.left_out);
	}
}

static void tell_discarded(const struct sbx_run *r)
{
	if (!r->options->scratch || !r->released || r->options->quiet || r->scratch_files <= 0)
		return;
	fprintf(stderr,
		"sbx-run: %lld file%s of the scratch %s %s discarded (without --scratch, in a "
		"directory that can be granted, they stay)\n", (long long)r->scratch_files,
		r->scratch_files == 1 ? "" : "s", r->plan->view.home_shared ? "space" : "home",
		r->scratch_files == 1 ? "was" : "were");
}

static void tell_refused(const struct sbx_run *r)
{
	size_t n = sbx_refusals_n(r->recorder.refusals);
	size_t told = n < SBX_REFUSALS_TOLD ? n : SBX_REFUSALS_TOLD;
	unsigned long long others = (unsigned long long)sbx_refusals_n_others(r->recorder.refusals);
	char line[SBX_REFUSAL_LINE_MAX];
	struct sbx_refusal refusal;

	if (r->options->quiet)
		return;
	sbx_refusals_sort(r->recorder.refusals);
	for (size_t i = 0; i < told; i++) {
		sbx_refusals_at(r->recorder.refusals, i, r->options->profile, &refusal);
		fprintf(stderr, "sbx-run: %s\n", sbx_refusal_line(&refusal, line, sizeof(line)));
	}
	if (n > told)
		fprintf(stderr, "sbx-run: and %zu more (sbx-run --refusals %s)\n", n - told,
			r->plan->id);
	if (others)
		fprintf(stderr,
			"sbx-run: and %llu refusals that are not listed, for lack of room\n",
			others);
}

/* Nothing is written for a command that did not run. */
static void tell_learned(const struct sbx_run *r)
{
	struct sbx_err err = { 0 };

	if (r->learn_dir_fd < 0 || !r->released)
		return;
	if (sbx_learn_write(r->learn_dir_fd, r->plan, &r->learn, &r->learn_execs.programs,
			    &err) < 0)
		complain(&err);
	else if (!r->options->quiet)
		fprintf(stderr, "sbx-run: learned: %s (read it before you use it)\n",
			r->options->learn);
}

static int carry_out(struct sbx_run *run)
{
	const struct sbx_plan *plan = run->plan;
	const struct sbx_options *o = plan->options;
	int status, e = 0;

	for (size_t i = 0; i < plan->notes.n && !o->quiet; i++)
		fprintf(stderr, "sbx-run: %s\n", plan->notes.v[i]);
	if (o->receipt)
		e = sbx_receipt_prepare(plan, &run->receipt_dir_fd, &run->err);
	if (e == 0 && o->learn)
		e = sbx_learn_prepare(plan, &run->learn_dir_fd, &run->err);
	status = e < 0 ? EXIT_NOT_SET_UP : sbx_run_carry_out(run);
	if (run->err.msg[0])
		complain(&run->err);
	tell_refused(run);
	tell_learned(run);
	tell_kept(run);
	tell_discarded(run);
	if (o->verbose)
		print_times(run);
	return status;
}

static void complain_all(const struct sbx_err_list *errs)
{
	for (size_t i = 0; i < errs->n; i++)
		complain(&errs->v[i]);
	if (errs->n_dropped)
		fprintf(stderr, "sbx-run: and %zu more\n", errs->n_dropped);
}

/* 0; or an exit status, after printing the reason. */
static int load_job(struct sbx_options *o)
{
	static struct sbx_err_list errs;
	int r = sbx_job_load(o, &errs);

	complain_all(&errs);
	if (r < 0)
		fprintf(stderr, "sbx-run: cannot read the job: %s\n", strerror(-r));
	return r == 0 ? 0 : EXIT_NOT_SET_UP;
}

/* 0; or an exit status, after printing the reason. */
static int plan(const struct sbx_options *o, const struct sbx_facts *f,
		const struct sbx_plan **ret_plan)
{
	static struct sbx_err_list list; /* large, and mostly never touched */
	struct sbx_err_list *errs = &list;
	int status;

	status = sbx_plan_new(o, f, errs, ret_plan);
	complain_all(errs);
	if (status < 0) {
		fprintf(stderr, "sbx-run: cannot plan: %s\n", strerror(-status));
		return EXIT_NOT_SET_UP;
	}
	if (status > 0 && !o->dry_run)
		sbx_record_refused(o, f, errs->n ? errs->v[0].msg : "refused");
	return status;
}

/* The values of the secrets. A secret that cannot be read refuses the run, and nothing was made
 * yet. */
static int read_secrets(struct sbx_run *run)
{
	const struct sbx_plan_tls *t = &run->plan->tls;
	struct sbx_err err = { 0 };

	if (!t->on || sbx_secrets_read(&run->secrets, run->plan->profile, t->entries, t->n_entries,
				       run->facts, &err) == 0)
		return 0;
	complain(&err);
	sbx_record_refused(run->options, run->facts, err.msg);
	return EXIT_NOT_SET_UP;
}

/* Starts the stage before the plan is made, and ends it unused when there is no plan. A stage that
 * is to be born in a cgroup starts later, when the cgroup exists. */
static int plan_and_carry_out(const struct sbx_options *o, struct sbx_facts *f, uint64_t started_us)
{
	static struct sbx_run run; /* large, and mostly never touched */
	struct sbx_err err = { 0 };
	int status;

	sbx_run_init(&run, o, f);
	run.started_us = started_us;
	sbx_terminals_save(&run.terminals);
	run.stage.error = sbx_supervise_signals(&run);
	if (run.stage.error == 0 && !sbx_cgroup_expected(f))
		run.stage.error = sbx_run_stage_begin(&run);
	if (run.stage.error == 0)
		run.stage.error = sbx_step_hook("begin");
	status = sbx_facts_gather_rest(o, f, &err) == 0 ? 0 : EXIT_NOT_SET_UP;
	if (status == 0)
		sbx_sweep_start(f); /* before planning, which may meet the leftovers */
	if (status == 0)
		status = plan(o, f, &run.plan);
	else
		complain(&err);
	if (status == 0)
		status = read_secrets(&run);
	if (status == 0)
		status = carry_out(&run);
	/* the plan is not freed: the end of the process frees it faster */
	sbx_run_fini(&run);
	return status;
}

/* --- the commands: each returns an exit status --- */

static int print_help(void)
{
	return sbx_options_print_help(stdout) < 0 ? EXIT_NOT_SET_UP : 0;
}

static int print_version(void)
{
	return puts("sbx-run " PACKAGE_VERSION) < 0 ? EXIT_NOT_SET_UP : 0;
}

static int print_profiles(void)
{
	struct sbx_facts facts = { 0 };
	struct sbx_err err = { 0 };
	int e = sbx_facts_gather_places(&facts, &err);

	if (e == 0)
		e = sbx_profile_list_print(&facts, stdout);
	if (e == 0 && fflush(stdout) != 0)
		e = -errno;
	if (e != 0)
		sbx_err_set(&err, "cannot list the profiles: %s", strerror(e < 0 ? -e : EIO));
	if (e != 0)
		complain(&err);
	sbx_facts_fini(&facts);
	return e == 0 ? 0 : EXIT_NOT_SET_UP;
}

static int print_refusals(const struct sbx_options *o)
{
	struct sbx_facts facts = { 0 };
	struct sbx_err err = { 0 };
	int e = sbx_facts_gather_places(&facts, &err);

	if (e == 0)
		e = sbx_record_print_refusals(&facts, o->argc ? o->argv[0] : NULL, stdout, &err);
	if (e != 0)
		sbx_err_set(&err, "cannot print refusals: %s", strerror(e < 0 ? -e : EIO));
	if (e != 0)
		complain(&err);
	sbx_facts_fini(&facts);
	return e == 0 ? 0 : EXIT_NOT_SET_UP;
}

static int print_plan(const struct sbx_options *o)
{
	struct sbx_facts facts = { 0 };
	struct sbx_err err = { 0 };
	const struct sbx_plan *p = NULL;
	int status;

	if (sbx_facts_gather(o, &facts, &err) == 0) {
		status = plan(o, &facts, &p);
		if (status == 0)
			status = print_json(p);
	} else {
		complain(&err);
		status = EXIT_NOT_SET_UP;
	}
	sbx_plan_free(p);
	sbx_facts_fini(&facts);
	return status;
}

static int run_sandbox(const struct sbx_options *o, uint64_t started_us)
{
	struct sbx_facts facts = { 0 };
	struct sbx_err err = { 0 };
	int status;

	if (sbx_facts_gather_first(o, &facts, &err) == 0) {
		status = plan_and_carry_out(o, &facts, started_us);
	} else {
		complain(&err);
		status = EXIT_NOT_SET_UP;
	}
	sbx_facts_fini(&facts);
	return status;
}

/* --- stages: each returns 0, or an exit status after printing the reason --- */

static int prepare_process(void)
{
	/* No process of the same user may trace this one or read its memory, and there is no
	 * core. */
	prctl(PR_SET_DUMPABLE, 0);
	/* A caller may leave SIGCHLD ignored: children would vanish without a status. */
	signal(SIGCHLD, SIG_DFL);
	/* A write past `ulimit -f` shall fail instead, for the database; init resets the signal. */
	signal(SIGXFSZ, SIG_IGN);
	return sbx_stdio_open() < 0 ? EXIT_NOT_SET_UP : 0;
}

static int parse(int argc, char **argv, struct sbx_options *ret_o)
{
	struct sbx_err err = { 0 };

	if (sbx_options_parse(argc, argv, ret_o, &err) == 0)
		return 0;
	complain(&err);
	return EXIT_NOT_SET_UP;
}

/* Reads the job, and checks standard input, output and error. */
static int prepare_run(struct sbx_options *o)
{
	static const int stdio[] = { 0, 1, 2 };
	struct sbx_err err = { 0 };
	int status = load_job(o);

	if (status != 0 || sbx_stdio_check(stdio, "sbx-run ...", &err) == 0)
		return status;
	complain(&err);
	return EXIT_NOT_SET_UP;
}

static int act(struct sbx_options *o, uint64_t started_us)
{
	int status;

	if (o->help)
		return print_help();
	if (o->version)
		return print_version();
	if (o->gc)
		return sbx_gc_run(o->verbose > 0);
	if (o->refusals)
		return print_refusals(o);
	if (o->list_profiles)
		return print_profiles();
	status = prepare_run(o);
	if (status != 0)
		return status;
	return o->dry_run ? print_plan(o) : run_sandbox(o, started_us);
}

int main(int argc, char **argv)
{
	uint64_t started_us = sbx_clock_monotonic_us();
	struct sbx_options options = { 0 };
	int status = prepare_process();

	if (status == 0)
		status = parse(argc, argv, &options);
	if (status == 0)
		status = act(&options, started_us);
	sbx_options_fini(&options);
	return status;
}
