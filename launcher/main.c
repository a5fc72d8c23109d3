/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-run: a list of stages. Parse, gather facts, plan, carry out; nothing is created before
 * sbx_run_carry_out(), and whatever it creates it undoes. The only file that writes to the terminal
 * what the modules found wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/facts.h"
#include "launcher/options.h"
#include "launcher/plan.h"
#include "launcher/receipt.h"
#include "launcher/record.h"
#include "launcher/run.h"
#include "launcher/supervise.h"
#include "sys/proc.h"

#define EXIT_NOT_SET_UP 125

static void complain(const struct sbx_err *err)
{
	char buf[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64];

	fprintf(stderr, "sbx-run: %s\n", sbx_err_format(err, buf, sizeof(buf)));
}

/* 0-2 must be open, or the first socket we make would become the command's stdout. */
static int open_stdio(void)
{
	for (;;) {
		int fd = open("/dev/null", O_RDWR);

		if (fd < 0)
			return -errno;
		if (fd > 2) {
			close(fd);
			return 0;
		}
	}
}

static int dry_run(const struct sbx_plan *plan)
{
	SBX_AUTO_FREE char *text = sbx_plan_json(plan);

	if (!text || puts(text) < 0 || fflush(stdout) != 0) {
		fprintf(stderr, "sbx-run: cannot print the plan\n");
		return EXIT_NOT_SET_UP;
	}
	return 0;
}

static void print_times(const struct sbx_run *r)
{
	for (size_t i = 0; i < sbx_n_steps; i++)
		fprintf(stderr, "sbx-run: step %-9s %6.2f ms\n", sbx_steps[i].name,
			r->step_us[i] / 1000.0);
}

static int carry_out(struct sbx_plan *plan, uint64_t started_us)
{
	const struct sbx_options *o = plan->options;
	struct sbx_run run;
	int status, e;

	for (size_t i = 0; i < plan->n_notes && !o->quiet; i++)
		fprintf(stderr, "sbx-run: %s\n", plan->notes[i]);
	sbx_run_init(&run, plan);
	run.started_us = started_us;
	e = sbx_supervise_signals(&run);
	if (e == 0 && o->receipt)
		e = sbx_receipt_prepare(&run);
	if (e < 0) {
		sbx_err_set(&run.err, "cannot supervise: %s", strerror(-e));
		status = EXIT_NOT_SET_UP;
	} else {
		status = sbx_run_carry_out(&run);
	}
	if (run.err.msg[0])
		complain(&run.err);
	if (o->verbose)
		print_times(&run);
	sbx_run_fini(&run);
	return status;
}

static int run(const struct sbx_options *o, uint64_t started_us)
{
	struct sbx_facts facts = { 0 };
	struct sbx_err_list *errs = calloc(1, sizeof(*errs));
	struct sbx_plan *plan = NULL;
	struct sbx_err err = { 0 };
	int status;

	if (!errs)
		return EXIT_NOT_SET_UP;
	if (sbx_facts_gather(o, &facts, &err) != 0) {
		complain(&err);
		status = EXIT_NOT_SET_UP;
	} else {
		status = sbx_plan_new(o, &facts, errs, &plan);
		for (size_t i = 0; i < errs->n; i++)
			complain(&errs->v[i]);
		if (errs->n_dropped)
			fprintf(stderr, "sbx-run: and %zu more\n", errs->n_dropped);
		if (status < 0) {
			fprintf(stderr, "sbx-run: cannot plan: %s\n", strerror(-status));
			status = EXIT_NOT_SET_UP;
		} else if (status > 0 && !o->dry_run) {
			sbx_record_refused(o, &facts, errs->n ? errs->v[0].msg : "refused");
		}
	}
	if (plan)
		status = o->dry_run ? dry_run(plan) : carry_out(plan, started_us);
	sbx_plan_free(plan);
	sbx_facts_fini(&facts);
	free(errs);
	return status;
}

int main(int argc, char **argv)
{
	uint64_t started_us = sbx_clock_monotonic_us();
	struct sbx_options options = { 0 };
	struct sbx_err err = { 0 };
	int status;

	if (open_stdio() < 0)
		return EXIT_NOT_SET_UP;
	if (sbx_options_parse(argc, argv, &options, &err) != 0) {
		complain(&err);
		status = EXIT_NOT_SET_UP;
	} else if (options.help) {
		status = fputs(sbx_options_help(), stdout) < 0 ? EXIT_NOT_SET_UP : 0;
	} else if (options.version) {
		status = puts("sbx-run " PACKAGE_VERSION) < 0 ? EXIT_NOT_SET_UP : 0;
	} else {
		status = run(&options, started_us);
	}
	sbx_options_fini(&options);
	return status;
}
