/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl profile list, show, check and diff. */
#include "ctl/answers/answers.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/answers/text_diff.h"
#include "ctl/frame/list.h"
#include "ctl/frame/places.h"
#include "launcher/cli/profile_list.h"
#include "launcher/host/config.h"
#include "policy/decide/policy.h"
#include "policy/keys/profile_parse.h"
#include "policy/profile/settle.h"

SBX_DEFINE_CLEANUP(struct sbx_profile, sbx_profile_free);

/* --- list --- */

static void list_one(const struct sbx_listed_profile *p, void *userdata)
{
	struct sbx_list *list = userdata;
	char why[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64] = "";

	if (p->err)
		sbx_err_format(p->err, why, sizeof(why));
	if (list->json) {
		sbx_list_add(list, json_pack("{s:o, s:o, s:o, s:o}", "name", sbx_json_text(p->name),
					     "file", sbx_json_text(p->path), "description",
					     sbx_json_text(p->description), "error",
					     sbx_json_text(p->err ? why : NULL)));
		return;
	}
	sbx_table_add(list->table, SBX_PLAIN, p->name);
	sbx_table_addf(list->table, p->err ? SBX_BAD : SBX_PLAIN, "%s%s",
		       p->err ? "not valid: " : "",
		       p->err	      ? why :
		       p->description ? p->description :
					"");
	sbx_table_add(list->table, SBX_DIM, p->path);
}

static int run_list(struct sbx_ctl *ctl)
{
	static const struct sbx_column columns[] = {
		{ "NAME", .shrinks = false },
		{ "DESCRIPTION", .shrinks = true },
		{ "FILE", .shrinks = true },
	};
	SBX_CLEANUP(sbx_list_fini) struct sbx_list list = { 0 };
	int r = sbx_ctl_places(ctl);

	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_list_init(&list, ctl, columns, SBX_N_ELEMENTS(columns));
	if (r == 0)
		r = sbx_profile_list_each(&ctl->facts, list_one, &list);
	if (r == 0)
		r = sbx_list_print(&list, "profiles",
				   "there are no profiles: install all of sbx anew, in one piece");
	return sbx_ctl_status(ctl, r, "profiles");
}

const struct sbx_ctl_command sbx_cmd_profile_list = {
	.name = "profile list",
	.help = "list the profiles",
	.more = " that sbx-run --profile finds by name",
	.example = "sbxctl profile list",
	.run = run_list,
};

/* --- loading --- */

/* Is what sbx-run would make of the profile's network in order, too? */
static int check_network(const struct sbx_ctl *ctl, struct sbx_profile *profile, const char *path,
			 struct sbx_err_list *errs)
{
	struct sbx_system_policy *system = NULL;
	struct sbx_policy_input input = { .profile = profile, .generation = 1 };
	SBX_AUTO_FREE char *system_file = NULL;
	SBX_AUTO_FREE void *blob = NULL;
	struct sbx_err err = { 0 };
	size_t n = 0;
	int r = sbx_config_system(&ctl->facts, errs, &system, &system_file);

	if (r == 0)
		r = sbx_limits_check(&profile->limits, &system->ceilings, &err);
	if (r == 0)
		r = sbx_profile_settle_secrets(profile, &err);
	input.system = system;
	if (r == 0)
		r = sbx_policy_compile(&input, &blob, &n);
	if (err.msg[0])
		sbx_err_list_add(errs, err.file[0] ? err.file : path, err.line, err.column, "%s",
				 err.msg);
	sbx_system_policy_free(system);
	return r;
}

/* Loads @what and says on standard error why it is not valid. SBX_CTL_DONE, _NO or _FAILED. */
static int load(struct sbx_ctl *ctl, const char *what, struct sbx_profile **ret_profile,
		char **ret_path)
{
	static struct sbx_err_list errs; /* large */
	char line[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64];
	int r, status = sbx_ctl_places(ctl);

	if (status != SBX_CTL_DONE)
		return status;
	memset(&errs, 0, sizeof(errs));
	r = sbx_profile_load(&ctl->facts, what, &errs, ret_profile, ret_path);
	for (size_t i = 0; i + 1 < errs.n; i++)
		fprintf(stderr, "sbxctl: %s\n", sbx_err_format(&errs.v[i], line, sizeof(line)));
	if (errs.n)
		ctl->err = errs.v[errs.n - 1];
	return sbx_ctl_status(ctl, r, what);
}

/* --- show --- */

static int run_show(struct sbx_ctl *ctl)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *profile = NULL;
	SBX_AUTO_FREE char *path = NULL, *text = NULL;
	int r = 0, status = load(ctl, ctl->argv[0], &profile, &path);

	if (status != SBX_CTL_DONE)
		return status;
	text = sbx_profile_print(profile);
	if (!text)
		return sbx_ctl_status(ctl, -ENOMEM, ctl->argv[0]);
	if (ctl->out.json)
		r = sbx_out_json(&ctl->out,
				 json_pack("{s:o, s:o, s:o}", "file", sbx_json_text(path),
					   "description", sbx_json_text(profile->description),
					   "yaml", sbx_json_text(text)),
				 false);
	else
		fputs(text, ctl->out.f);
	return sbx_ctl_status(ctl, r, "the answer");
}

const struct sbx_ctl_command sbx_cmd_profile_show = {
	.name = "profile show",
	.args = "NAME|FILE",
	.n_min = 1,
	.n_max = 1,
	.complete = "profile",
	.help = "print a profile with all that it extends",
	.more = ", as a profile",
	.example = "sbxctl profile show build",
	.run = run_show,
};

/* --- check --- */

static int check_one(struct sbx_ctl *ctl, const char *what, json_t *list)
{
	static struct sbx_err_list errs; /* large */
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *profile = NULL;
	SBX_AUTO_FREE char *path = NULL;
	char line[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64];
	json_t *problems = list ? json_array() : NULL;
	int r;

	memset(&errs, 0, sizeof(errs));
	r = sbx_profile_load(&ctl->facts, what, &errs, &profile, &path);
	if (r == 0)
		r = check_network(ctl, profile, path, &errs);
	if (r < 0 && errs.n == 0)
		sbx_err_list_add(&errs, what, 0, 0, "%s", strerror(-r));
	for (size_t i = 0; i < errs.n; i++) {
		sbx_err_format(&errs.v[i], line, sizeof(line));
		if (list)
			json_array_append_new(problems, sbx_json_text(line));
		else
			fprintf(ctl->out.f, "%s\n", line);
	}
	if (list)
		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:b, s:o}", "profile",
						sbx_json_text(what), "file", sbx_json_text(path),
						"valid", errs.n == 0, "problems", problems));
	else if (errs.n == 0) {
		sbx_out_text(&ctl->out, what);
		fprintf(ctl->out.f, ": %svalid%s\n", sbx_out_begin(&ctl->out, SBX_GOOD),
			sbx_out_end(&ctl->out, SBX_GOOD));
	}
	return errs.n == 0 ? SBX_CTL_DONE : SBX_CTL_NO;
}

static int run_check(struct sbx_ctl *ctl)
{
	json_t *list = ctl->out.json ? json_array() : NULL;
	int r, status = sbx_ctl_places(ctl);

	for (int i = 0; i < ctl->argc && status != SBX_CTL_FAILED; i++)
		if (check_one(ctl, ctl->argv[i], list) != SBX_CTL_DONE)
			status = SBX_CTL_NO;
	r = list ? sbx_out_json(&ctl->out, json_pack("{s:o}", "profiles", list), false) : 0;
	return r == 0 ? status : sbx_ctl_status(ctl, r, "the answer");
}

const struct sbx_ctl_command sbx_cmd_profile_check = {
	.name = "profile check",
	.args = "NAME|FILE...",
	.n_min = 1,
	.n_max = INT_MAX,
	.complete = "profile",
	.help = "check profiles, and say each problem with its file and line",
	.more = "; the exit status is 1 if one is not valid",
	.example = "sbxctl profile check ./job.yaml",
	.run = run_check,
};

/* --- diff --- */

struct diff {
	struct sbx_ctl *ctl;
	json_t *list; /* NULL: print */
	bool differs;
};

static void diff_line(char sign, const char *line, size_t n, void *userdata)
{
	struct diff *d = userdata;
	enum sbx_colour colour = sign == '-' ? SBX_BAD : sign == '+' ? SBX_GOOD : SBX_PLAIN;
	SBX_AUTO_FREE char *copy = strndup(line, n);

	d->differs |= sign != ' ';
	if (!copy)
		return;
	if (d->list && sign != ' ')
		json_array_append_new(d->list, json_pack("{s:s, s:o}", "in",
							 sign == '-' ? "first" : "second", "line",
							 sbx_json_text(copy)));
	if (d->list)
		return;
	fprintf(d->ctl->out.f, "%s%c", sbx_out_begin(&d->ctl->out, colour), sign);
	sbx_out_text(&d->ctl->out, copy);
	fprintf(d->ctl->out.f, "%s\n", sbx_out_end(&d->ctl->out, colour));
}

static int run_diff(struct sbx_ctl *ctl)
{
	char *texts[2] = { NULL, NULL };
	struct diff diff = { .ctl = ctl };
	int r = 0, status = SBX_CTL_DONE;

	for (int i = 0; i < 2 && status == SBX_CTL_DONE; i++) {
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *profile = NULL;
		SBX_AUTO_FREE char *path = NULL;

		status = load(ctl, ctl->argv[i], &profile, &path);
		if (status != SBX_CTL_DONE)
			status = SBX_CTL_FAILED; /* 1 means that they differ */
		else if (!(texts[i] = sbx_profile_print(profile)))
			status = sbx_ctl_status(ctl, -ENOMEM, ctl->argv[i]);
	}
	if (status == SBX_CTL_DONE) {
		diff.list = ctl->out.json ? json_array() : NULL;
		r = sbx_text_diff(texts[0], texts[1], diff_line, &diff);
		if (r == 0 && diff.list)
			r = sbx_out_json(&ctl->out,
					 json_pack("{s:b, s:o}", "differs", diff.differs, "lines",
						   diff.list),
					 false);
		status = r != 0 ? sbx_ctl_status(ctl, r, "the profiles") : diff.differs;
	}
	free(texts[0]);
	free(texts[1]);
	return status;
}

const struct sbx_ctl_command sbx_cmd_profile_diff = {
	.name = "profile diff",
	.args = "A B",
	.n_min = 2,
	.n_max = 2,
	.complete = "profile",
	.help = "compare two profiles, each with all that it extends",
	.more = "; the exit status is 0 if they say the same, 1 if they differ, 125 if one is not "
		"valid",
	.example = "sbxctl profile diff build ./job.yaml",
	.run = run_diff,
};
