/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/serve/usage.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "launcher/serve/disk.h"
#include "sys/cgroup/cgroup.h"
#include "sys/process/proc_tree.h"

struct asker {
	struct sbx_control *c;
	struct sbx_control_token token;
	struct sbx_cgroup_now now;
	int64_t disk_bytes;
	uint64_t n_denies, n_flows, bytes_out, bytes_in;
};

void sbx_usage_count(struct sbx_usage_counts *c, const struct sbx_event *e)
{
	if (e->action == SBX_DENY)
		c->n_denies += e->count;
	c->bytes_out += e->bytes_out;
	c->bytes_in += e->bytes_in;
}

static void read_now(const struct sbx_usage_facts *f, struct sbx_cgroup_now *now)
{
	struct sbx_proc_tree tree;

	*now = (struct sbx_cgroup_now){ -1, -1, -1, -1 };
	if (f->cgroup_fd >= 0) {
		sbx_cgroup_now_read(f->cgroup_fd, now);
	} else if (f->stage_pid > 0 && sbx_proc_tree_read(f->stage_pid, &tree) == 0) {
		now->cpu_us = tree.cpu_us;
		now->memory_bytes = tree.memory_bytes;
		now->pids = tree.pids;
	}
}

static json_t *print(const struct asker *a)
{
	return json_pack("{s:{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}}", "usage", "cpu_us",
			 sbx_control_number(a->now.cpu_us), "memory_bytes",
			 sbx_control_number(a->now.memory_bytes), "memory_peak_bytes",
			 sbx_control_number(a->now.memory_peak_bytes), "pids",
			 sbx_control_number(a->now.pids), "disk_bytes",
			 sbx_control_number(a->disk_bytes), "flows", (json_int_t)a->n_flows,
			 "bytes_out", (json_int_t)a->bytes_out, "bytes_in", (json_int_t)a->bytes_in,
			 "n_denied", (json_int_t)a->n_denies);
}

static void on_flows(void *userdata, const struct sbx_msg_flow_list *page)
{
	struct asker *a = userdata;

	for (uint32_t i = 0; page && i < page->n_flows; i++) {
		a->n_flows++;
		a->bytes_out += page->v[i].bytes_out;
		a->bytes_in += page->v[i].bytes_in;
	}
	if (page && !page->last)
		return;
	sbx_control_answer(a->c, a->token, print(a));
	free(a);
}

void sbx_serve_usage(struct sbx_control *c, struct sbx_live_run *live,
		     const struct sbx_usage_facts *facts, struct sbx_control_token t)
{
	struct asker *a = calloc(1, sizeof(*a));

	if (!a) {
		sbx_control_refuse(c, t, SBX_CONTROL_FAILED, NULL, "sbx-run has no memory left");
		return;
	}
	*a = (struct asker){ .c = c,
			     .token = t,
			     .disk_bytes = sbx_disk_used(facts->root_fd, facts->plan),
			     .n_denies = facts->counts->n_denies,
			     .bytes_out = facts->counts->bytes_out,
			     .bytes_in = facts->counts->bytes_in };
	read_now(facts, &a->now);
	sbx_live_flows(live, on_flows, a);
}
