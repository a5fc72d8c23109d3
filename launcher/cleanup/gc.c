/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/cleanup/gc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/cleanup/cgroup_gc.h"
#include "launcher/cleanup/sweep.h"
#include "launcher/host/facts.h"
#include "launcher/host/facts_gather.h"
#include "launcher/record/record.h"

static void tell_lost(const char *id, void *gc)
{
	sbx_gc_say(gc, "sandbox %s is recorded as lost", id);
}

static int sweep_rows(struct sbx_gc *gc, struct sbx_err *err)
{
	return sbx_record_sweep(gc->facts, tell_lost, gc, err);
}

static const struct sbx_sweeper sweepers[] = {
	{ "runtime", sbx_sweep_gc },
	{ "rows", sweep_rows },
	{ "cgroups", sbx_cgroup_gc }, /* and their rules */
	{ "rules", sbx_cgroup_gc_rules }, /* of cgroups that are gone */
};

static int complain(const char *what, const struct sbx_err *err, int error)
{
	fprintf(stderr, "sbx-run: gc: %s: %s\n", what, err->msg[0] ? err->msg : strerror(-error));
	return 125;
}

int sbx_gc_run(bool verbose)
{
	struct sbx_facts facts;
	struct sbx_gc gc = { .facts = &facts, .verbose = verbose };
	struct sbx_err err = { 0 };
	int status = 0, e = sbx_facts_gather_places(&facts, &err);

	if (e != 0)
		status = complain("the host", &err, e);
	for (size_t i = 0; i < SBX_N_ELEMENTS(sweepers) && e == 0; i++) {
		struct sbx_err why = { 0 };
		int failed = sweepers[i].sweep(&gc, &why);

		if (failed)
			status = complain(sweepers[i].name, &why, failed);
	}
	if (verbose)
		fprintf(stderr, "sbx-run: gc: %zu removed\n", gc.n);
	sbx_facts_fini(&facts);
	return status;
}
