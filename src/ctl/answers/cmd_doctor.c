/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl doctor: what this machine offers to sandboxes. */
#include "ctl/answers/answers.h"
#include "ctl/doctor/doctor.h"
#include "ctl/doctor/doctor_gather.h"
#include "ctl/frame/places.h"

static enum sbx_colour colour(enum sbx_doctor_state s)
{
	return s == SBX_DOCTOR_OK ? SBX_GOOD : s == SBX_DOCTOR_UNKNOWN ? SBX_DIM : SBX_BAD;
}

/* One check a paragraph: the remedy is longer than a terminal is wide. */
static void print_check(const struct sbx_out *out, const struct sbx_doctor_check *c)
{
	fprintf(out->f, "%s%-8s%s %-18s ", sbx_out_begin(out, colour(c->state)),
		sbx_doctor_state_str(c->state), sbx_out_end(out, colour(c->state)), c->name);
	sbx_out_text(out, c->seen);
	fputc('\n', out->f);
	if (!c->remedy[0])
		return;
	fprintf(out->f, "%27s -> ", "");
	sbx_out_text(out, c->remedy);
	fputc('\n', out->f);
}

static json_t *report_json(const struct sbx_doctor_report *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:o, s:o}", "check", r->v[i].name, "state",
				  sbx_doctor_state_str(r->v[i].state), "seen",
				  sbx_json_text(r->v[i].seen), "remedy",
				  r->v[i].remedy[0] ? sbx_json_text(r->v[i].remedy) : json_null()));
	return json_pack("{s:o, s:i, s:i}", "checks", list, "problems",
			 (int)sbx_doctor_count(r, SBX_DOCTOR_PROBLEM), "warnings",
			 (int)sbx_doctor_count(r, SBX_DOCTOR_WARNING));
}

static int run(struct sbx_ctl *ctl)
{
	static struct sbx_doctor_facts facts; /* large, like the next */
	static struct sbx_doctor_report report;
	int r = 0, status;

	sbx_doctor_gather(&facts);
	sbx_doctor_judge(&facts, &report);
	if (ctl->out.json)
		r = sbx_out_json(&ctl->out, report_json(&report), false);
	for (size_t i = 0; !ctl->out.json && i < report.n; i++)
		print_check(&ctl->out, &report.v[i]);
	status = sbx_ctl_status(ctl, r, "the answer");
	if (status != SBX_CTL_DONE)
		return status;
	return sbx_doctor_count(&report, SBX_DOCTOR_PROBLEM) ? SBX_CTL_NO : SBX_CTL_DONE;
}

const struct sbx_ctl_command sbx_cmd_doctor = {
	.name = "doctor",
	.help = "check what this machine offers to sandboxes",
	.more = ": kernel, namespaces, AppArmor, nf_tables, control groups, bwrap, directories, "
		"the database, versions, the service's socket, limits",
	.example = "sbxctl doctor",
	.run = run,
};
