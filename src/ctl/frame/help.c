/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/frame/help.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "ctl/frame/parse.h"
#include "policy/forms/suggest.h"

static const char help_head[] =
	"usage: sbxctl COMMAND [OPTION...] [ARGUMENT...]\n"
	"\n"
	"Shows the sandboxes of sbx-run, what they were refused and why, and changes what running\n"
	"ones may reach. It sees the sandboxes of the user that calls it.\n"
	"\n";

static const char help_tail[] =
	"\n"
	"A sandbox is named by its id or by the beginning of one. sbxctl help COMMAND says more.\n"
	"Exit status: 0 done, or allow; 1 not done, not found, or deny; 2 usage; 125 the answer "
	"is\n"
	"not known. Everything else is in sbxctl(1).\n";

static void print_line(FILE *out, const struct sbx_ctl_command *c)
{
	int n = fprintf(out, "  %s%s%s", c->name, c->args ? " " : "", c->args ? c->args : "");

	if (n >= SBX_HELP_COLUMN) {
		fputc('\n', out);
		n = 0;
	}
	fprintf(out, "%*s", SBX_HELP_COLUMN - n, "");
	sbx_help_wrapped(out, c->help, SBX_HELP_COLUMN, SBX_HELP_COLUMN);
	fputc('\n', out);
}

static void print_options(FILE *out, const struct sbx_option *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sbx_option_print(out, &rows[i]);
}

static void print_command(FILE *out, const struct sbx_ctl_command *c)
{
	int n;

	fprintf(out, "usage: sbxctl %s%s%s%s\n\n", c->name, c->n_options ? " [OPTION...]" : "",
		c->args ? " " : "", c->args ? c->args : "");
	n = fprintf(out, "%c%s", toupper((unsigned char)c->help[0]), c->help + 1);
	n = sbx_help_wrapped(out, c->more ? c->more : "", n, 0);
	fprintf(out, ".\n\n");
	print_options(out, c->options, c->n_options);
	print_options(out, sbx_ctl_common_options, sbx_n_ctl_common_options);
	fprintf(out, "\nExample:\n  %s\n", c->example);
}

int sbx_ctl_print_help(const struct sbx_ctl *ctl, FILE *out)
{
	if (ctl->command && (ctl->common.help || ctl->command != &sbx_cmd_help)) {
		print_command(out, ctl->command);
		return ferror(out) ? -EIO : 0;
	}
	if (!ctl->group[0])
		fputs(help_head, out);
	for (size_t i = 0; i < ctl->table->n; i++)
		if (sbx_ctl_in_group(ctl->table->v[i]->name, ctl->group))
			print_line(out, ctl->table->v[i]);
	if (!ctl->group[0]) {
		fputc('\n', out);
		print_options(out, sbx_ctl_common_options, sbx_n_ctl_common_options);
		fputs(help_tail, out);
	}
	return ferror(out) ? -EIO : 0;
}

/* --- sbxctl help --- */

static json_t *json_of_command(const struct sbx_ctl_command *c)
{
	json_t *options = json_array();

	for (size_t i = 0; i < c->n_options; i++) {
		const struct sbx_option *row = &c->options[i];

		json_array_append_new(options, json_pack("{s:s*, s:s?, s:s}", "option", row->flag,
							 "value", row->value, "help", row->help));
	}
	return json_pack("{s:s, s:s?, s:s, s:s, s:o}", "name", c->name, "args", c->args, "help",
			 c->help, "example", c->example, "options", options);
}

static int print_json(struct sbx_ctl *ctl)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ctl->table->n; i++)
		if (sbx_ctl_in_group(ctl->table->v[i]->name, ctl->group))
			json_array_append_new(list, json_of_command(ctl->table->v[i]));
	return sbx_out_json(&ctl->out, json_pack("{s:o}", "commands", list), false) == 0 ?
		       SBX_CTL_DONE :
		       SBX_CTL_FAILED;
}

static int run_help(struct sbx_ctl *ctl)
{
	char name[128] = "";
	bool found = ctl->argc == 0;

	sbx_text_cut(name, sizeof(name), "%s%s%s", ctl->argc > 0 ? ctl->argv[0] : "",
		     ctl->argc > 1 ? " " : "", ctl->argc > 1 ? ctl->argv[1] : "");
	for (size_t i = 0; i < ctl->table->n; i++) {
		const struct sbx_ctl_command *c = ctl->table->v[i];

		found |= sbx_ctl_in_group(c->name, name);
		if (strcmp(c->name, name) == 0 && !ctl->common.json) {
			print_command(ctl->out.f, c);
			return SBX_CTL_DONE;
		}
	}
	if (!found) {
		sbx_err_set(&ctl->err, "there is no command '%s' (sbxctl help lists them)", name);
		return SBX_CTL_USAGE;
	}
	ctl->group = name;
	return ctl->common.json				? print_json(ctl) :
	       sbx_ctl_print_help(ctl, ctl->out.f) == 0 ? SBX_CTL_DONE :
							  SBX_CTL_FAILED;
}

const struct sbx_ctl_command sbx_cmd_help = {
	.name = "help",
	.args = "[COMMAND]",
	.n_max = 2,
	.complete = "command",
	.help = "explain a command, or list them all",
	.example = "sbxctl help net",
	.run = run_help,
};

/* --- sbxctl version --- */

int sbx_ctl_print_version(const struct sbx_ctl *ctl)
{
	if (ctl->common.json)
		return sbx_out_json(&ctl->out, json_pack("{s:s}", "version", PACKAGE_VERSION),
				    false) == 0 ?
			       SBX_CTL_DONE :
			       SBX_CTL_FAILED;
	fputs("sbxctl " PACKAGE_VERSION "\n", ctl->out.f);
	return SBX_CTL_DONE;
}

static int run_version(struct sbx_ctl *ctl)
{
	return sbx_ctl_print_version(ctl);
}

const struct sbx_ctl_command sbx_cmd_version = {
	.name = "version",
	.help = "print the version",
	.example = "sbxctl version --json",
	.run = run_version,
};
