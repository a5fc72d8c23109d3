/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl gc: what sbx-run --gc does. */
#include "ctl/answers/answers.h"
#include "ctl/frame/places.h"
#include "launcher/cleanup/gc.h"

struct report {
	struct sbx_ctl *ctl;
	json_t *removed, *failed;
};

static void say(const char *line, void *userdata)
{
	struct report *r = userdata;

	if (r->ctl->out.json)
		json_array_append_new(r->removed, sbx_json_text(line));
	else
		fprintf(r->ctl->out.f, "%s\n", line); /* is escaped */
}

static void failed(const char *sweeper, const char *why, void *userdata)
{
	struct report *r = userdata;

	if (r->ctl->out.json)
		json_array_append_new(r->failed, json_pack("{s:s, s:o}", "sweeper", sweeper,
							   "error", sbx_json_text(why)));
	sbx_err_set(&r->ctl->err, "%s: %s", sweeper, why);
}

static int run(struct sbx_ctl *ctl)
{
	struct report report = { ctl, json_array(), json_array() };
	struct sbx_gc gc = {
		.facts = &ctl->facts, .say = say, .failed = failed, .userdata = &report
	};
	int n_failed, status = sbx_ctl_places(ctl);

	if (status != SBX_CTL_DONE) {
		json_decref(report.removed);
		json_decref(report.failed);
		return status;
	}
	n_failed = sbx_gc_sweep(&gc);
	if (ctl->out.json) {
		status = sbx_ctl_status(
			ctl,
			sbx_out_json(&ctl->out,
				     json_pack("{s:o, s:o}", "removed", report.removed, "failed",
					       report.failed),
				     false),
			"the answer");
	} else {
		json_decref(report.removed);
		json_decref(report.failed);
		fprintf(ctl->out.f, "%zu removed\n", gc.n);
	}
	return n_failed ? SBX_CTL_FAILED : status;
}

const struct sbx_ctl_command sbx_cmd_gc = {
	.name = "gc",
	.help = "remove what killed launchers left behind",
	.more = ", as sbx-run --gc does; live sandboxes are not touched",
	.example = "sbxctl gc",
	.run = run,
};
