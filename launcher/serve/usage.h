/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SERVE_USAGE_H
#define SBX_LAUNCHER_SERVE_USAGE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/event.h"
#include "launcher/control/control.h"
#include "launcher/live/live.h"
#include "launcher/plan/plan.h"

/* Usage of a sandbox now, for the operation `usage`: asked often, of many sandboxes. */

/* Sums of its events so far. */
struct sbx_usage_counts {
	uint64_t n_denies;
	uint64_t bytes_out, bytes_in; /* of flows that have ended */
};
void sbx_usage_count(struct sbx_usage_counts *c, const struct sbx_event *e);

struct sbx_usage_facts {
	const struct sbx_usage_counts *counts; /* borrowed */
	int cgroup_fd;	 /* the command's; -1: none, and then the processes are summed */
	pid_t stage_pid; /* pid 1 of the sandbox; 0: there is none */
	int root_fd;	 /* the sandbox's root directory; -1: there is none */
	const struct sbx_plan *plan; /* borrowed */
};

/* Answers when the broker has told its open flows. */
void sbx_serve_usage(struct sbx_control *c, struct sbx_live_run *live,
		     const struct sbx_usage_facts *facts, struct sbx_control_token t);

#endif
