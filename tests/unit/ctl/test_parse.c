/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line of sbxctl, read by a table of this test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/frame/parse.h"
#include "policy/forms/option_form.h"

struct net_values {
	bool air_gap;
	const char **allow, *note;
	size_t n_allow;
};

static const struct sbx_option net_options[] = {
	{ "air-gap", .kind = SBX_OPTION_FLAG, .offset = offsetof(struct net_values, air_gap),
	  .help = "x" },
	{ "allow", .value = "P", .kind = SBX_OPTION_LIST,
	  .offset = offsetof(struct net_values, allow),
	  .n_offset = offsetof(struct net_values, n_allow), .check = sbx_form_not_empty,
	  .help = "x" },
	{ "note", .value = "T", .letter = 'n', .kind = SBX_OPTION_STRING,
	  .offset = offsetof(struct net_values, note), .help = "x" },
};

static const struct sbx_ctl_command ps = { .name = "ps" };
static const struct sbx_ctl_command net = {
	.name = "net",
	.args = "ID",
	.n_min = 1,
	.n_max = 1,
	.options = net_options,
	.n_options = SBX_N_ELEMENTS(net_options),
	.n_values = sizeof(struct net_values),
};
static const struct sbx_ctl_command exec = {
	.name = "exec",
	.args = "ID -- CMD...",
	.n_min = 2,
	.n_max = INT_MAX,
	.program = true,
	.options = net_options,
	.n_options = SBX_N_ELEMENTS(net_options),
	.n_values = sizeof(struct net_values),
};
static const struct sbx_ctl_command rules_add = {
	.name = "rules add", .args = "P", .n_min = 1, .n_max = 1
};
static const struct sbx_ctl_command rules_list = { .name = "rules list" };
static const struct sbx_ctl_command *const rows[] = { &ps, &net, &exec, &rules_add, &rules_list };
static const struct sbx_ctl_table table = { rows, SBX_N_ELEMENTS(rows) };

#define ARGV(...) ((char *[]){ "sbxctl", __VA_ARGS__, NULL })

static int parse(struct sbx_ctl *ctl, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	return sbx_ctl_parse(ctl, &table, argc, argv);
}

static void test_commands(void **state)
{
	struct sbx_ctl ctl;

	(void)state;
	assert_int_equal(parse(&ctl, ARGV("ps")), 0);
	assert_ptr_equal(ctl.command, &ps);
	assert_int_equal(ctl.argc, 0);
	sbx_ctl_fini(&ctl);
	assert_int_equal(parse(&ctl, ARGV("--json", "rules", "add", "x", "--wide")), 0);
	assert_ptr_equal(ctl.command, &rules_add);
	assert_true(ctl.common.json && ctl.common.wide);
	assert_string_equal(ctl.argv[0], "x");
	sbx_ctl_fini(&ctl);
}

/* Words and options in any order; values once or many times. */
static void test_options(void **state)
{
	struct sbx_ctl ctl;
	struct net_values *v;

	(void)state;
	assert_int_equal(parse(&ctl, ARGV("net", "--allow", "a", "3f2a", "--allow=b", "--air-gap",
					  "-n", "why")),
			 0);
	v = ctl.values;
	assert_true(v->air_gap);
	assert_int_equal(v->n_allow, 2);
	assert_string_equal(v->allow[0], "a");
	assert_string_equal(v->allow[1], "b");
	assert_string_equal(v->note, "why");
	assert_int_equal(ctl.argc, 1);
	assert_string_equal(ctl.argv[0], "3f2a");
	sbx_ctl_fini(&ctl);
	assert_int_equal(parse(&ctl, ARGV("net", "--", "--json")), 0);
	assert_string_equal(ctl.argv[0], "--json");
	assert_false(ctl.common.json);
	sbx_ctl_fini(&ctl);
}

/* A command line keeps its options and its own "--". */
static void test_program(void **state)
{
	static const char *const want[] = { "3f2a", "ls", "-l", "--json", "--", "x" };
	struct sbx_ctl ctl;

	(void)state;
	for (int with = 0; with < 2; with++) {
		char **argv =
			with ? ARGV("exec", "--air-gap", "3f2a", "--", "ls", "-l", "--json", "--",
				    "x") :
			       ARGV("exec", "--air-gap", "3f2a", "ls", "-l", "--json", "--", "x");

		assert_int_equal(parse(&ctl, argv), 0);
		assert_int_equal(ctl.argc, SBX_N_ELEMENTS(want));
		for (size_t i = 0; i < SBX_N_ELEMENTS(want); i++)
			assert_string_equal(ctl.argv[i], want[i]);
		assert_false(ctl.common.json);
		sbx_ctl_fini(&ctl);
	}
	/* of the two "--" one is the program's */
	assert_int_equal(parse(&ctl, ARGV("exec", "3f2a", "--", "--", "x")), 0);
	assert_int_equal(ctl.argc, 3);
	assert_string_equal(ctl.argv[1], "--");
	sbx_ctl_fini(&ctl);
}

static void test_help(void **state)
{
	struct sbx_ctl ctl;

	(void)state;
	assert_int_equal(parse(&ctl, ARGV("--help", "nonsense")), 0);
	assert_true(ctl.common.help && !ctl.command);
	sbx_ctl_fini(&ctl);
	assert_int_equal(parse(&ctl, ARGV("rules", "--help")), 0);
	assert_true(ctl.common.help);
	assert_string_equal(ctl.group, "rules");
	sbx_ctl_fini(&ctl);
	/* whatever else is wrong with the line */
	assert_int_equal(parse(&ctl, ARGV("net", "--help", "--nonsense")), 0);
	assert_true(ctl.common.help && ctl.command == &net);
	sbx_ctl_fini(&ctl);
}

static void test_refused(void **state)
{
	static const struct {
		char *argv[6];
		const char *says;
	} cases[] = {
		{ { "sbxctl" }, "no command was given" },
		{ { "sbxctl", "" }, "unknown command ''" },
		{ { "sbxctl", "pss" }, "unknown command 'pss' (did you mean 'ps'?)" },
		{ { "sbxctl", "rule", "add" }, "unknown command 'rule' (did you mean 'rules'?)" },
		{ { "sbxctl", "rules" }, "'rules' needs a second word" },
		{ { "sbxctl", "rules", "ad" }, "unknown command 'rules ad' (did you mean 'add'?)" },
		{ { "sbxctl", "rules", "zzz" }, "unknown command 'rules zzz' (sbxctl help rules" },
		{ { "sbxctl", "ps", "x" }, "unexpected word 'x': sbxctl ps takes no arguments" },
		{ { "sbxctl", "net" }, "an argument is missing: sbxctl net ID" },
		{ { "sbxctl", "net", "a", "b" }, "unexpected word 'b': sbxctl net ID" },
		{ { "sbxctl", "net", "a", "--air-gop" }, "(did you mean '--air-gap'?)" },
		{ { "sbxctl", "net", "a", "--zzz" }, "(sbxctl net --help lists them all)" },
		{ { "sbxctl", "net", "a", "--allow" }, "option '--allow' needs a value" },
		{ { "sbxctl", "net", "a", "--allow", "" }, "--allow '': it is empty" },
		{ { "sbxctl", "net", "--allow", "--json", "a" }, "needs a value before '--json'" },
		{ { "sbxctl", "net", "a", "--air-gap=1" }, "'--air-gap' takes no value" },
		{ { "sbxctl", "--jso=1", "ps" }, "takes no value" },
		{ { "sbxctl", "--zzz", "ps" }, "(sbxctl --help lists them all)" },
		{ { "sbxctl", "exec", "a" }, "an argument is missing" },
		{ { "sbxctl", "exec", "a", "--" }, "an argument is missing" },
	};
	struct sbx_ctl ctl;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		char *argv[7] = { NULL };

		memcpy(argv, cases[i].argv, sizeof(cases[i].argv));
		assert_int_equal(parse(&ctl, argv), SBX_CTL_USAGE);
		if (!strstr(ctl.err.msg, cases[i].says))
			fail_msg("'%s' is not in '%s'", cases[i].says, ctl.err.msg);
		sbx_ctl_fini(&ctl);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands), cmocka_unit_test(test_options),
		cmocka_unit_test(test_program),	 cmocka_unit_test(test_help),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
