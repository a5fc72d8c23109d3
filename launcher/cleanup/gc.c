/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/cleanup/gc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/cleanup/cgroup_gc.h"
#include "launcher/cleanup/sweep.h"
#include "launcher/host/config.h"
#include "launcher/host/facts.h"
#include "launcher/host/facts_gather.h"
#include "launcher/record/record.h"
#include "policy/keys/profile_parse.h"

static void tell_lost(const char *id, void *gc)
{
	sbx_gc_say(gc, "sandbox %s is recorded as lost", id);
}

static int sweep_rows(struct sbx_gc *gc, struct sbx_err *err)
{
	return sbx_record_sweep(gc->facts, tell_lost, gc, err);
}

/* A system.yaml that does not parse is told by the next start. */
static int sweep_events(struct sbx_gc *gc, struct sbx_err *err)
{
	static struct sbx_err_list errs; /* large */
	struct sbx_system_policy *system = NULL;
	SBX_AUTO_FREE char *file = NULL;
	size_t n = 0;
	int r = sbx_config_system(gc->facts, &errs, &system, &file);

	if (r == 0)
		r = sbx_record_prune_all(gc->facts, system, &n, err);
	else if (errs.n)
		sbx_err_set(err, "%s", errs.v[0].msg);
	sbx_system_policy_free(system);
	if (n)
		sbx_gc_say(gc, "%zu old events are removed", n);
	return r > 0 ? -EINVAL : r;
}

static const struct sbx_sweeper sweepers[] = {
	{ "runtime", sbx_sweep_gc },
	{ "rows", sweep_rows },
	{ "events", sweep_events },
	{ "cgroups", sbx_cgroup_gc }, /* and their rules */
	{ "rules", sbx_cgroup_gc_rules }, /* of cgroups that are gone */
};

int sbx_gc_sweep(struct sbx_gc *gc)
{
	int n_failed = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(sweepers); i++) {
		struct sbx_err why = { 0 };
		int failed = sweepers[i].sweep(gc, &why);

		if (!failed)
			continue;
		gc->failed(sweepers[i].name, why.msg[0] ? why.msg : strerror(-failed),
			   gc->userdata);
		n_failed++;
	}
	return n_failed;
}

static void say(const char *line, void *userdata)
{
	(void)userdata;
	fprintf(stderr, "sbx-run: gc: %s\n", line);
}

static void complain(const char *what, const char *why, void *userdata)
{
	(void)userdata;
	fprintf(stderr, "sbx-run: gc: %s: %s\n", what, why);
}

int sbx_gc_run(bool verbose)
{
	struct sbx_facts facts;
	struct sbx_gc gc = { .facts = &facts, .say = verbose ? say : NULL, .failed = complain };
	struct sbx_err err = { 0 };
	int n_failed = 1, e = sbx_facts_gather_places(&facts, &err);

	if (e == 0)
		n_failed = sbx_gc_sweep(&gc);
	else
		complain("the host", err.msg[0] ? err.msg : strerror(-e), NULL);
	if (verbose)
		fprintf(stderr, "sbx-run: gc: %zu removed\n", gc.n);
	sbx_facts_fini(&facts);
	return n_failed == 0 ? 0 : 125;
}
