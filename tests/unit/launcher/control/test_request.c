/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/control/request.h"

static const struct sbx_control_op ops[] = {
	{ .name = "plain" },
	{ .name = "all",
	  .n_fds = 2,
	  .fields = { { "b", SBX_CONTROL_BOOL, true },
		      { "n", SBX_CONTROL_NUMBER, false },
		      { "s", SBX_CONTROL_STRING, false },
		      { "l", SBX_CONTROL_STRINGS, false },
		      { "w", SBX_CONTROL_WORDS, false },
		      { "m", SBX_CONTROL_MAP, false } } },
};

static void expect_op(const char *line, size_t n_fds, const char *name)
{
	struct sbx_control_refusal refusal;
	const struct sbx_control_op *op;
	json_t *body;

	op = sbx_control_request_parse(sbx_span_str(line), n_fds, ops, SBX_N_ELEMENTS(ops), &body,
				       &refusal);
	if (!op)
		print_message("%s: %s\n", line, refusal.err.msg);
	assert_non_null(op);
	assert_string_equal(op->name, name);
	assert_non_null(body);
	json_decref(body);
}

static void expect_refusal(const char *line, size_t n_fds, enum sbx_control_code code,
			   const char *field)
{
	struct sbx_control_refusal refusal;
	json_t *body;

	assert_null(sbx_control_request_parse(sbx_span_str(line), n_fds, ops, SBX_N_ELEMENTS(ops),
					      &body, &refusal));
	assert_null(body);
	if (strcmp(refusal.field, field) != 0 || refusal.code != code)
		print_message("%.80s: %s (%s)\n", line, refusal.err.msg, refusal.field);
	assert_int_equal(refusal.code, code);
	assert_string_equal(refusal.field, field);
	assert_true(refusal.err.msg[0]);
	assert_null(strchr(refusal.err.msg, '\n'));
}

static void test_good(void **state)
{
	(void)state;
	expect_op("{\"v\":1,\"op\":\"plain\"}", 0, "plain");
	expect_op("{\"op\":\"plain\",\"v\":1}", 0, "plain");
	expect_op("{\"v\":1,\"op\":\"all\",\"b\":false}", 2, "all");
	expect_op("{\"v\":1,\"op\":\"all\",\"b\":true,\"n\":0,\"s\":\"x\",\"l\":[],\"w\":[\"\"],"
		  "\"m\":{\"A\":\"\"}}",
		  2, "all");
	expect_op("{\"v\":1,\"op\":\"all\",\"b\":true,\"n\":9223372036854775807,\"l\":[\"x\"]}", 2,
		  "all");
}

static void test_version_and_name(void **state)
{
	(void)state;
	expect_refusal("{\"op\":\"plain\"}", 0, SBX_CONTROL_INVALID, "v");
	expect_refusal("{\"v\":2,\"op\":\"plain\"}", 0, SBX_CONTROL_INVALID, "v");
	expect_refusal("{\"v\":1.0,\"op\":\"plain\"}", 0, SBX_CONTROL_INVALID, "v");
	expect_refusal("{\"v\":\"1\",\"op\":\"plain\"}", 0, SBX_CONTROL_INVALID, "v");
	expect_refusal("{\"v\":1}", 0, SBX_CONTROL_INVALID, "op");
	expect_refusal("{\"v\":1,\"op\":null}", 0, SBX_CONTROL_INVALID, "op");
	expect_refusal("{\"v\":1,\"op\":\"\"}", 0, SBX_CONTROL_UNKNOWN, "op");
	expect_refusal("{\"v\":1,\"op\":\"plai\"}", 0, SBX_CONTROL_UNKNOWN, "op");
	expect_refusal("{\"v\":1,\"op\":\"plainx\"}", 0, SBX_CONTROL_UNKNOWN, "op");
	expect_refusal("x", 0, SBX_CONTROL_INVALID, "");
}

static void test_descriptors(void **state)
{
	(void)state;
	expect_refusal("{\"v\":1,\"op\":\"plain\"}", 1, SBX_CONTROL_INVALID, "");
	expect_refusal("{\"v\":1,\"op\":\"all\",\"b\":true}", 0, SBX_CONTROL_INVALID, "");
	expect_refusal("{\"v\":1,\"op\":\"all\",\"b\":true}", 1, SBX_CONTROL_INVALID, "");
	expect_refusal("{\"v\":1,\"op\":\"all\",\"b\":true}", 3, SBX_CONTROL_INVALID, "");
}

#define ALL(members) "{\"v\":1,\"op\":\"all\",\"b\":true," members "}"

static void test_members(void **state)
{
	(void)state;
	expect_refusal("{\"v\":1,\"op\":\"all\"}", 2, SBX_CONTROL_INVALID, "b");
	expect_refusal("{\"v\":1,\"op\":\"all\",\"b\":1}", 2, SBX_CONTROL_INVALID, "b");
	expect_refusal("{\"v\":1,\"op\":\"all\",\"b\":null}", 2, SBX_CONTROL_INVALID, "b");
	expect_refusal(ALL("\"n\":-1"), 2, SBX_CONTROL_INVALID, "n");
	expect_refusal(ALL("\"n\":1.5"), 2, SBX_CONTROL_INVALID, "n");
	expect_refusal(ALL("\"n\":true"), 2, SBX_CONTROL_INVALID, "n");
	expect_refusal(ALL("\"s\":\"\""), 2, SBX_CONTROL_INVALID, "s");
	expect_refusal(ALL("\"s\":[\"x\"]"), 2, SBX_CONTROL_INVALID, "s");
	expect_refusal(ALL("\"l\":\"x\""), 2, SBX_CONTROL_INVALID, "l");
	expect_refusal(ALL("\"l\":[\"x\",\"\"]"), 2, SBX_CONTROL_INVALID, "l[1]");
	expect_refusal(ALL("\"l\":[[\"x\"]]"), 2, SBX_CONTROL_INVALID, "l[0]");
	expect_refusal(ALL("\"w\":[\"\",1]"), 2, SBX_CONTROL_INVALID, "w[1]");
	expect_refusal(ALL("\"m\":{\"A\":1}"), 2, SBX_CONTROL_INVALID, "m.A");
	expect_refusal(ALL("\"m\":{\"\":\"x\"}"), 2, SBX_CONTROL_INVALID, "m.");
	expect_refusal(ALL("\"m\":[]"), 2, SBX_CONTROL_INVALID, "m");
	expect_refusal(ALL("\"other\":1"), 2, SBX_CONTROL_INVALID, "other");
	expect_refusal(ALL("\"\\u001b[2J\":1"), 2, SBX_CONTROL_INVALID, "\\x1b[2J");
	expect_refusal("{\"v\":1,\"op\":\"plain\",\"b\":true}", 0, SBX_CONTROL_INVALID, "b");
}

/* Of the members of a list and the bytes of a string: the most, and one more. */
static void test_limits(void **state)
{
	SBX_AUTO_FREE char *text = malloc(SBX_CONTROL_TEXT_MAX + 2);

	(void)state;
	assert_non_null(text);
	for (size_t more = 0; more < 2; more++) {
		json_t *list = json_array(), *o;
		SBX_AUTO_FREE char *line = NULL, *other = NULL;

		memset(text, 'x', SBX_CONTROL_TEXT_MAX + more);
		text[SBX_CONTROL_TEXT_MAX + more] = '\0';
		for (size_t i = 0; i < SBX_CONTROL_LIST_MAX + more; i++)
			json_array_append_new(list, json_string("x"));
		o = json_pack("{s:i, s:s, s:b, s:o}", "v", 1, "op", "all", "b", 1, "l", list);
		line = json_dumps(o, 0);
		json_decref(o);
		o = json_pack("{s:i, s:s, s:b, s:s}", "v", 1, "op", "all", "b", 1, "s", text);
		other = json_dumps(o, 0);
		json_decref(o);
		if (more) {
			expect_refusal(line, 2, SBX_CONTROL_INVALID, "l");
			expect_refusal(other, 2, SBX_CONTROL_INVALID, "s");
		} else {
			expect_op(line, 2, "all");
			expect_op(other, 2, "all");
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	    cmocka_unit_test(test_version_and_name),
		cmocka_unit_test(test_descriptors), cmocka_unit_test(test_members),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
