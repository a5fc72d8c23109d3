/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl rules export and import. A file is checked whole before anything is written, and
 * written in one transaction. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctl/data/change.h"
#include "ctl/data/data.h"
#include "ctl/data/rule_row.h"
#include "ctl/frame/places.h"
#include "policy/forms/option_form.h"
#include "policy/profile/profile.h"

#define FILE_BYTES_MAX (8u << 20)

SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);

struct values {
	const char *workspace;
	bool host, replace;
};

#define FLAG(field) .kind = SBX_OPTION_FLAG, .offset = offsetof(struct values, field)
#define WORKSPACE(text)                                                                            \
	{                                                                                          \
		"workspace", .value = "W", .kind = SBX_OPTION_STRING,                              \
			     .offset = offsetof(struct values, workspace),                         \
			     .check = sbx_form_token, .complete = "workspace", .help = text        \
	}

/* --- export --- */

struct export
{
	struct sbx_ctl *ctl;
	size_t n;
};

/* Floors are not exported: each host has its own. */
static int export_rule(const struct sbx_store_rule *r, void *userdata)
{
	struct export *x = userdata;
	const struct values *v = x->ctl->values;

	if (r->is_floor || (v->host && r->workspace) || (v->workspace && !r->workspace))
		return 0;
	x->n++;
	if (x->ctl->out.json)
		return sbx_out_json(&x->ctl->out, sbx_rule_json(r), true);
	sbx_rule_print_yaml(x->ctl->out.f, r);
	return 0;
}

static int run_export(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	struct export x = { ctl, 0 };
	int r = sbx_ctl_store(ctl, &store);

	if (r != SBX_CTL_DONE)
		return r;
	if (store)
		r = sbx_store_rules_each(store, v->workspace, export_rule, &x, &ctl->err);
	if (r == 0 && x.n == 0)
		sbx_ctl_tell_empty(ctl,
				   "there are no rules to export: add one with sbxctl rules add "
				   "--workspace W --action allow PATTERN");
	return sbx_ctl_status(ctl, r, "the rules");
}

static const struct sbx_option export_options[] = {
	WORKSPACE("export the rules of this workspace alone"),
	{ "host", FLAG(host), .help = "export the rules of the host alone" },
};

const struct sbx_ctl_command sbx_cmd_rules_export = {
	.name = "rules export",
	.options = export_options,
	.n_options = SBX_N_ELEMENTS(export_options),
	.n_values = sizeof(struct values),
	.help = "print rules as YAML, or with --json one object a line",
	.more = ", for rules import; floors are left out",
	.example = "sbxctl rules export --workspace shop",
	.run = run_export,
};

/* --- import --- */

/* The file, or standard input for "-". malloc'ed with a NUL. 0 or -errno. */
static int read_file(const char *path, char **ret_text, size_t *ret_n)
{
	SBX_AUTO_CLOSE int fd = strcmp(path, "-") == 0 ?
					fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) :
					open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	SBX_AUTO_FREE char *text = fd < 0 ? NULL : malloc(FILE_BYTES_MAX + 1);
	size_t n = 0;

	if (fd < 0)
		return -errno;
	if (!text)
		return -ENOMEM;
	for (;;) {
		ssize_t got = read(fd, text + n, FILE_BYTES_MAX + 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
		if (n > FILE_BYTES_MAX)
			return -EFBIG;
	}
	text[n] = '\0';
	*ret_text = sbx_steal_ptr(&text);
	*ret_n = n;
	return 0;
}

/* With --workspace or --host no rule of the file may be of another place. */
static int check_places(struct sbx_ctl *ctl, const struct sbx_rule_file *f)
{
	const struct values *v = ctl->values;

	for (size_t i = 0; i < f->n; i++) {
		const char *w = f->v[i].workspace;

		if (v->host ? w != NULL : v->workspace && (!w || strcmp(w, v->workspace) != 0)) {
			sbx_err_set(&ctl->err,
				    "'%s' is a rule of workspace '%s', and not of %s%s%s: nothing "
				    "was written",
				    f->v[i].pattern, w ? w : "", v->host ? "the host" : "'",
				    v->host ? "" : v->workspace, v->host ? "" : "'");
			return SBX_CTL_NO;
		}
		if (!v->host && !w) {
			sbx_err_set(&ctl->err,
				    "'%s' is a rule of no workspace: say --workspace W, or --host "
				    "for every workspace; nothing was written",
				    f->v[i].pattern);
			return SBX_CTL_NO;
		}
	}
	return SBX_CTL_DONE;
}

/* Reads and checks the file. */
static int load(struct sbx_ctl *ctl, struct sbx_rule_file *ret)
{
	static struct sbx_err_list errs; /* large */
	const struct values *v = ctl->values;
	SBX_AUTO_FREE char *text = NULL;
	char by[128], line[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64];
	const struct sbx_rule_defaults defaults = { v->workspace, sbx_change_by(by, sizeof(by)),
						    ctl->out.now_ms };
	size_t n = 0;
	int r = read_file(ctl->argv[0], &text, &n);

	if (r != 0)
		return sbx_ctl_status(ctl, r, ctl->argv[0]);
	memset(&errs, 0, sizeof(errs));
	r = sbx_rule_file_read(text, n, ctl->argv[0], &defaults, &errs, ret);
	for (size_t i = 0; i < errs.n; i++)
		fprintf(stderr, "sbxctl: %s\n", sbx_err_format(&errs.v[i], line, sizeof(line)));
	if (r > 0)
		sbx_err_set(&ctl->err, "%s: %zu problem%s, nothing was written", ctl->argv[0],
			    errs.n + errs.n_dropped, errs.n + errs.n_dropped == 1 ? "" : "s");
	return r == 0 ? check_places(ctl, ret) : sbx_ctl_status(ctl, r, ctl->argv[0]);
}

/* The workspace whose launchers are told: the one of all rules; NULL: several, or the host. */
static const char *told_workspace(const struct values *v, const struct sbx_rule_file *f)
{
	if (v->workspace || v->host)
		return v->workspace;
	for (size_t i = 1; i < f->n; i++)
		if (strcmp(f->v[i].workspace, f->v[0].workspace) != 0)
			return NULL;
	return f->n ? f->v[0].workspace : NULL;
}

static int run_import(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	SBX_CLEANUP(sbx_rule_file_fini) struct sbx_rule_file file = { 0 };
	int r;

	if ((v->workspace && v->host) || (v->replace && !v->workspace && !v->host)) {
		sbx_err_set(&ctl->err, v->replace ? "--replace needs --workspace W or --host" :
						    "--workspace and --host exclude each other");
		return SBX_CTL_USAGE;
	}
	r = load(ctl, &file);
	if (r == SBX_CTL_DONE)
		r = sbx_ctl_store_make(ctl, &store);
	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_store_rules_import(store, v->workspace, v->replace, file.v, file.n, &ctl->err);
	if (r != 0)
		return sbx_ctl_status(ctl, r, "the rules");
	if (!ctl->out.json)
		fprintf(ctl->out.f, "%zu rule%s imported\n", file.n, file.n == 1 ? "" : "s");
	return sbx_change_done(ctl, store, told_workspace(v, &file),
			       json_pack("{s:I}", "imported", (json_int_t)file.n));
}

static const struct sbx_option import_options[] = {
	WORKSPACE("the workspace of rules that name none"),
	{ "host", FLAG(host), .help = "the rules are the host's, for every sandbox" },
	{ "replace", FLAG(replace),
	  .help = "remove the rules that the workspace, or the host, had before",
	  .more = "; floors stay" },
};

const struct sbx_ctl_command sbx_cmd_rules_import = {
	.name = "rules import",
	.args = "FILE|-",
	.n_min = 1,
	.n_max = 1,
	.complete = "file",
	.options = import_options,
	.n_options = SBX_N_ELEMENTS(import_options),
	.n_values = sizeof(struct values),
	.help = "add the rules of a file",
	.more = ": YAML, a list of mappings with the keys pattern, type, action, priority, "
		"workspace, "
		"enabled and note; or JSON, one such object a line. Either all of them are written "
		"or none; running sandboxes follow as with rules add",
	.example = "sbxctl rules import --workspace shop rules.yaml",
	.run = run_import,
};
