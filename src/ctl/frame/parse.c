/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbxctl [OPTION...] COMMAND [OPTION...] [ARGUMENT...]. A command is one word, or two where the
 * first names a group. Words and options may be mixed; "--" ends the options.
 */
#include "ctl/frame/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/forms/suggest.h"

#define AT(field) .kind = SBX_OPTION_FLAG, .offset = offsetof(struct sbx_ctl_common, field)

const struct sbx_option sbx_ctl_common_options[] = {
	{ "json", AT(json), .help = "print JSON",
	  .more = ": one document, or one line for each event; docs/sbxctl.schema.json has the "
		  "keys" },
	{ "wide", AT(wide), .help = "cut no column to the terminal's width" },
	{ "version", .letter = 'V', AT(version), .help = "print the version, and stop" },
	{ "help", .letter = 'h', AT(help), .help = "print the command's help, and stop" },
};
const size_t sbx_n_ctl_common_options = SBX_N_ELEMENTS(sbx_ctl_common_options);

bool sbx_ctl_in_group(const char *name, const char *group)
{
	size_t n = strlen(group);

	return n == 0 || (strncmp(name, group, n) == 0 && (!name[n] || name[n] == ' '));
}

static const struct sbx_ctl_command *find(const struct sbx_ctl_table *table, const char *name)
{
	for (size_t i = 0; i < table->n; i++)
		if (strcmp(table->v[i]->name, name) == 0)
			return table->v[i];
	return NULL;
}

static bool is_group(const struct sbx_ctl_table *table, const char *word)
{
	for (size_t i = 0; i < table->n; i++)
		if (word[0] && strcmp(table->v[i]->name, word) != 0 &&
		    sbx_ctl_in_group(table->v[i]->name, word))
			return true;
	return false;
}

/* The n-th word of a command's name, from 0, for suggestions. */
static const char *word_of(const char *name, int nth, char *buf, size_t n_buf)
{
	const char *space = strchr(name, ' ');

	if (nth == 0)
		sbx_text_cut(buf, n_buf, "%.*s",
			     (int)(space ? (size_t)(space - name) : strlen(name)), name);
	else
		sbx_text_cut(buf, n_buf, "%s", space ? space + 1 : "");
	return buf;
}

static int unknown_command(struct sbx_ctl *ctl, const char *group, const char *word)
{
	char words[64][24], text[80];
	struct sbx_suggest s = sbx_suggest(word);

	for (size_t i = 0; i < ctl->table->n && i < SBX_N_ELEMENTS(words); i++)
		if (sbx_ctl_in_group(ctl->table->v[i]->name, group))
			sbx_suggest_offer(&s, word_of(ctl->table->v[i]->name, group[0] != '\0',
						      words[i], sizeof(words[i])));
	if (s.best)
		sbx_err_set(&ctl->err, "unknown command '%s%s%s'%s", group, group[0] ? " " : "",
			    word, sbx_suggest_text(&s, text, sizeof(text)));
	else
		sbx_err_set(&ctl->err, "unknown command '%s%s%s' (sbxctl help%s%s lists them all)",
			    group, group[0] ? " " : "", word, group[0] ? " " : "", group);
	return SBX_CTL_USAGE;
}

/* Options in front of the command. *ret_at: the index of its first word. */
static int read_front(struct sbx_ctl *ctl, int argc, char **argv, int *ret_at)
{
	struct sbx_option_reader reader = {
		.hint = "sbxctl --help",
		.argc = argc,
		.argv = argv,
		.common = sbx_ctl_common_options,
		.n_common = sbx_n_ctl_common_options,
	};
	struct sbx_option_item item;
	int r;

	while ((r = sbx_option_next(&reader, &item, &ctl->err)) == 0) {
		r = sbx_option_set(&ctl->common, item.row, item.value, &ctl->err);
		if (r != 0)
			break;
	}
	*ret_at = sbx_option_rest();
	return r == SBX_OPTION_E_END ? 0 : r > 0 ? SBX_CTL_USAGE : r;
}

/* Whether one of the words from @at on asks for help. */
static bool asks_help(int argc, char **argv, int at)
{
	return at < argc && (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0);
}

/* Find the command at @at. *ret_n: its words. */
static int find_command(struct sbx_ctl *ctl, int argc, char **argv, int at, int *ret_n)
{
	char name[64];

	*ret_n = 1;
	ctl->command = find(ctl->table, argv[at]);
	if (!is_group(ctl->table, argv[at]))
		return ctl->command ? 0 : unknown_command(ctl, "", argv[at]);
	if (at + 1 < argc && argv[at + 1][0] != '-') {
		*ret_n = 2;
		sbx_text_cut(name, sizeof(name), "%s %s", argv[at], argv[at + 1]);
		ctl->command = find(ctl->table, name);
		return ctl->command ? 0 : unknown_command(ctl, argv[at], argv[at + 1]);
	}
	if (asks_help(argc, argv, at + 1)) {
		ctl->group = argv[at];
		ctl->common.help = true;
		return 0;
	}
	sbx_err_set(&ctl->err, "'%s' needs a second word (sbxctl help %s lists them)", argv[at],
		    argv[at]);
	return SBX_CTL_USAGE;
}

static int check_count(struct sbx_ctl *ctl)
{
	const struct sbx_ctl_command *c = ctl->command;

	if (ctl->argc >= c->n_min && ctl->argc <= c->n_max)
		return 0;
	if (ctl->argc > c->n_max)
		sbx_err_set(&ctl->err, "unexpected word '%s': sbxctl %s%s%s", ctl->argv[c->n_max],
			    c->name, c->args ? " " : " takes no arguments", c->args ? c->args : "");
	else
		sbx_err_set(&ctl->err, "an argument is missing: sbxctl %s %s", c->name, c->args);
	return SBX_CTL_USAGE;
}

/* The words behind the options. A command line keeps its own "--", but not the one before it. */
static void take_rest(struct sbx_ctl *ctl, int argc, char **argv)
{
	int at = sbx_option_rest();

	for (; at < argc; at++)
		if (!(ctl->command->program && ctl->argc == 1 && strcmp(argv[at], "--") == 0 &&
		      argv[at - 1] == ctl->argv[0]))
			ctl->argv[ctl->argc++] = argv[at];
}

/* @argv[0] is the last word of the command. */
static int read_command(struct sbx_ctl *ctl, int argc, char **argv)
{
	const struct sbx_ctl_command *c = ctl->command;
	char hint[64];
	struct sbx_option_reader reader = {
		.hint = hint,
		.argc = argc,
		.argv = argv,
		.rows = c->options,
		.n_rows = c->n_options,
		.common = sbx_ctl_common_options,
		.n_common = sbx_n_ctl_common_options,
		.words = !c->program,
	};
	struct sbx_option_item item;
	int r;

	sbx_text_cut(hint, sizeof(hint), "sbxctl %s --help", c->name);
	ctl->values = calloc(1, c->n_values + 1);
	ctl->argv = calloc((size_t)argc + 1, sizeof(*ctl->argv));
	if (!ctl->values || !ctl->argv)
		return -ENOMEM;
	while ((r = sbx_option_next(&reader, &item, &ctl->err)) == 0) {
		if (!item.row)
			ctl->argv[ctl->argc++] = (char *)(uintptr_t)item.value;
		else if (item.index < c->n_options)
			r = sbx_option_set(ctl->values, item.row, item.value, &ctl->err);
		else
			r = sbx_option_set(&ctl->common, item.row, item.value, &ctl->err);
		if (r != 0 || ctl->common.help || ctl->common.version)
			return r > 0 ? SBX_CTL_USAGE : r;
	}
	if (r != SBX_OPTION_E_END)
		return r > 0 ? SBX_CTL_USAGE : r;
	take_rest(ctl, argc, argv);
	return check_count(ctl);
}

int sbx_ctl_parse(struct sbx_ctl *ctl, const struct sbx_ctl_table *table, int argc, char **argv)
{
	int at = 0, n_words = 0, r;

	memset(ctl, 0, sizeof(*ctl));
	ctl->table = table;
	ctl->group = "";
	r = read_front(ctl, argc, argv, &at);
	if (r != 0 || ctl->common.help || ctl->common.version)
		return r;
	if (at >= argc) {
		sbx_err_set(&ctl->err, "no command was given (sbxctl help lists them)");
		return SBX_CTL_USAGE;
	}
	r = find_command(ctl, argc, argv, at, &n_words);
	if (r != 0 || ctl->common.help)
		return r;
	return read_command(ctl, argc - at - n_words + 1, argv + at + n_words - 1);
}

void sbx_ctl_fini(struct sbx_ctl *ctl)
{
	if (ctl->values)
		sbx_option_values_fini(ctl->values, ctl->command->options, ctl->command->n_options);
	free(ctl->values);
	free(ctl->argv);
	if (ctl->has_places)
		sbx_facts_fini(&ctl->facts);
	memset(ctl, 0, sizeof(*ctl));
}
