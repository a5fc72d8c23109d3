/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RECORD_OUTCOME_H
#define SBX_LAUNCHER_RECORD_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/messages.h"
#include "launcher/setup/setup.h"
#include "store/store.h"
#include "sys/cgroup/cgroup.h"

struct sbx_refusals;

#define SBX_OUTCOME_STEPS_MAX 24

/* How a run ended, for its row and its receipt. Pointers are borrowed. */
struct sbx_outcome_facts {
	enum sbx_store_state state;
	int exit_status; /* of sbx-run */
	const char *why; /* "": nothing went wrong */
	bool released;   /* the command ran */
	uint64_t started_us; /* monotonic */
	size_t n_steps;
	struct {
		const char *name;
		uint32_t us; /* that its apply took */
	} steps[SBX_OUTCOME_STEPS_MAX];
	const struct sbx_setup *setup;
	const struct sbx_msg_probes *probes;
	const struct sbx_msg_verdicts *verdicts; /* of @probes; empty without @has_verdicts */
	bool has_verdicts;
	const struct sbx_msg_stats *traffic;
	struct sbx_refusals *refusals; /* NULL: none. The receipt sorts them. */
	struct {
		const struct sbx_cgroup_usage *usage;
		enum sbx_cgroup_source source;
		const char *path;
		uint32_t limited; /* SBX_CGROUP_BITs of the limits that the cgroup enforced */
	} cgroup;
	struct {
		bool tried; /* --keep, and the command ran */
		bool whole;
		uint64_t entries, bytes, removed, left_out;
		const char *message; /* "": nothing went wrong */
	} keep;
};

#endif
