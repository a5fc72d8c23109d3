/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_OPTIONS_H
#define SBX_LAUNCHER_HOST_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/option.h"

/* The command line, parsed; parsing never acts. A field and its row in cli/option_table.c belong
 * together. Strings are borrowed from argv or job_values, but those of binds are owned. */

#define SBX_OPTIONS_LIST_MAX SBX_OPTION_LIST_MAX /* of each option that may be repeated */

struct sbx_bind_option {
	char *source; /* owned, one block with the target */
	char *target; /* NULL: same as the source */
	bool writable;
};

struct sbx_job;
struct sbx_rule_draft;

struct sbx_options {
	const char *job;     /* NAME or FILE; NULL: none */
	const char *profile; /* default "default" */
	const char *workspace, *analysis_id, *id, *chdir, *hostname, *user, *receipt, *keep, *learn;
	const char *root, *home;
	size_t n_binds, n_live_allow, n_live_deny, n_live_rules;
	const char **live_allow, **live_deny, **live_rules; /* the live lists at the start */
	struct sbx_bind_option *binds;
	size_t n_allow, n_deny, n_secrets, n_publish, n_env, n_limits, n_tmpfs, n_devices;
	const char **allow, **deny, **secrets, **publish, **env, **limits, **tmpfs, **devices;
	bool air_gap, overlay, scratch, cache, wait, wait_all, dry_run, gc, list_profiles, refusals;
	bool learn_allow, learn_force, named_profile;
	bool quiet, help, version;
	int verbose;
	int argc;
	/* the command, NULL-terminated; with wait: nothing; with refusals: a sandbox's id, or
	 * nothing */
	char **argv;
	struct sbx_job *job_values; /* owned */
	/* a rule that is judged with the stored ones; no flag sets it (sbxctl explain) */
	const struct sbx_rule_draft *draft;
};

#endif
