/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SERVE_SHOW_H
#define SBX_LAUNCHER_SERVE_SHOW_H

#include <jansson.h>
#include <stdint.h>

#include "ipc/messages.h"
#include "launcher/live/live.h"
#include "launcher/plan/plan.h"
#include "launcher/resources/cgroup.h"
#include "launcher/setup/setup.h"

/* The state of a running sandbox, for the operation `show`. All is borrowed. */
struct sbx_show_facts {
	const struct sbx_plan *plan;
	const struct sbx_setup *setup;
	const char *state;		   /* "preparing", "running", "frozen", "ending" */
	int64_t started_ms;		   /* CLOCK_REALTIME, when sbx-run began */
	int64_t wall_left_ms;		   /* negative: no wall time, or it does not run yet */
	const struct sbx_live_state *live; /* NULL: the command was not released yet */
	const struct sbx_cgroup_run *cgroup;
	const struct sbx_msg_verdicts *verdicts; /* NULL: there are none yet */
	size_t n_execs;
};

/* {"sandbox":{...}} of docs/control.schema.json, with an empty list of flows. Parts that do not fit
 * an answer are cut, and "truncated" is true. NULL: no memory. */
json_t *sbx_show_json(const struct sbx_show_facts *f);

/* "127.0.0.1:8080:80", an array of these. */
json_t *sbx_show_published(const struct sbx_publish *v, size_t n);

#endif
