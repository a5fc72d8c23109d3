/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/forms/yaml_tree.h"

static int parse(const char *text, size_t n, struct sbx_err_list *errs, struct sbx_yaml **ret_yaml)
{
	memset(errs, 0, sizeof(*errs));
	*ret_yaml = NULL;
	return sbx_yaml_parse(sbx_span(text, n), "t.yaml", errs, ret_yaml);
}

static void refused(const char *text, size_t n, const char *why, int line, int column)
{
	static struct sbx_err_list errs;
	struct sbx_yaml *y;

	assert_int_equal(parse(text, n, &errs, &y), SBX_YAML_E_INVALID);
	assert_null(y);
	assert_int_equal(errs.n, 1);
	if (!strstr(errs.v[0].msg, why))
		fail_msg("'%s' does not say '%s'", errs.v[0].msg, why);
	assert_string_equal(errs.v[0].file, "t.yaml");
	assert_int_equal(errs.v[0].line, line);
	assert_int_equal(errs.v[0].column, column);
}

static void test_tree(void **state)
{
	static const char text[] = "a: 1\nb: [x, \"~\", {c: d}]\n";
	static struct sbx_err_list errs;
	const struct sbx_yaml_node *root, *n;
	struct sbx_yaml *y;

	(void)state;
	assert_int_equal(parse(text, strlen(text), &errs, &y), 0);
	root = sbx_yaml_root(y);
	assert_int_equal(root->kind, SBX_YAML_MAPPING);
	assert_int_equal(root->n, 2);
	n = sbx_yaml_first(y, root);
	assert_string_equal(sbx_yaml_text(y, n), "a");
	n = sbx_yaml_next(y, n);
	assert_string_equal(sbx_yaml_text(y, n), "1");
	assert_false(n->quoted);
	n = sbx_yaml_next(y, sbx_yaml_next(y, n));
	assert_int_equal(n->kind, SBX_YAML_SEQUENCE);
	assert_int_equal(n->n, 3);
	assert_null(sbx_yaml_next(y, n));
	n = sbx_yaml_next(y, sbx_yaml_first(y, n));
	assert_string_equal(sbx_yaml_text(y, n), "~");
	assert_true(n->quoted);
	assert_int_equal(n->line, 2);
	assert_int_equal(n->column, 8);
	n = sbx_yaml_next(y, n);
	assert_int_equal(n->kind, SBX_YAML_MAPPING);
	assert_int_equal(n->n, 1);
	assert_int_equal(n->depth, 2);
	assert_null(sbx_yaml_next(y, n));
	sbx_yaml_free(y);
}

static void test_empty(void **state)
{
	static struct sbx_err_list errs;
	struct sbx_yaml *y;

	(void)state;
	assert_int_equal(parse("", 0, &errs, &y), 0);
	assert_null(sbx_yaml_root(y));
	sbx_yaml_free(y);
	assert_int_equal(parse("# only a comment\n", 17, &errs, &y), 0);
	assert_null(sbx_yaml_root(y));
	sbx_yaml_free(y);
	assert_null(sbx_yaml_free(NULL));
}

#define REFUSED(text, why, line, column) refused(text, sizeof(text) - 1, why, line, column)

static void test_refused(void **state)
{
	(void)state;
	REFUSED("a: &x 1\n", "anchors", 1, 4);
	REFUSED("a: *x\n", "aliases", 1, 4);
	REFUSED("a: &x [1]\nb: *x\n", "anchors", 1, 4);
	REFUSED("a: !!str 1\n", "tags", 1, 4);
	REFUSED("a: !<tag:x> [1]\n", "tags", 1, 4);
	REFUSED("- *.example.org\n", "quote a name that begins with an asterisk", 1, 4);
	REFUSED("a: 1\n---\nb: 2\n", "second document", 2, 1);
	REFUSED("a: \"\\e[2J\"\n", "control character", 1, 4);
	REFUSED("a: \"\\0\"\n", "control character", 1, 4);
	REFUSED("a: \"\\x85\"\n", "control character", 1, 4);
	REFUSED("a: [1\n", "not YAML", 2, 1);
	REFUSED("a: \xff\n", "UTF-8", 0, 0);
	REFUSED("\tx: 1\n", "not YAML", 1, 1);
	REFUSED("a:\n\tb: 1\n", "indent with spaces, not with tabs", 2, 1);
	REFUSED("a: @b\n", "quote a text that begins with @", 1, 4);
}

static void test_depth(void **state)
{
	static struct sbx_err_list errs;
	char text[2 * SBX_YAML_DEPTH_MAX + 3];
	struct sbx_yaml *y;

	(void)state;
	memset(text, '[', SBX_YAML_DEPTH_MAX);
	memset(text + SBX_YAML_DEPTH_MAX, ']', SBX_YAML_DEPTH_MAX);
	assert_int_equal(parse(text, (size_t)2 * SBX_YAML_DEPTH_MAX, &errs, &y), 0);
	sbx_yaml_free(y);
	memset(text, '[', SBX_YAML_DEPTH_MAX + 1);
	memset(text + SBX_YAML_DEPTH_MAX + 1, ']', SBX_YAML_DEPTH_MAX + 1);
	refused(text, (size_t)2 * SBX_YAML_DEPTH_MAX + 2, "nested too deeply", 1,
		SBX_YAML_DEPTH_MAX + 1);
}

static void test_size(void **state)
{
	static struct sbx_err_list errs;
	char *text = malloc(SBX_YAML_BYTES_MAX + 1);
	struct sbx_yaml *y;

	(void)state;
	memset(text, '#', SBX_YAML_BYTES_MAX + 1);
	assert_int_equal(parse(text, SBX_YAML_BYTES_MAX, &errs, &y), 0);
	sbx_yaml_free(y);
	refused(text, SBX_YAML_BYTES_MAX + 1, "longer than 256 KiB", 0, 0);
	free(text);
}

/* Every prefix of a document is taken or refused, never more (the sanitizers watch). */
static void test_prefixes(void **state)
{
	static const char text[] =
		"a: 1\nb: [x, \"q\\u00e4\", {c: d, e: []}]\n? [k]\n: |\n  block\n  text\n";
	static struct sbx_err_list errs;

	(void)state;
	for (size_t n = 0; n < sizeof(text); n++) {
		char *copy = malloc(n + 1);
		struct sbx_yaml *y;
		int r;

		memcpy(copy, text, n);
		r = parse(copy, n, &errs, &y);
		assert_true(r == 0 || r == SBX_YAML_E_INVALID);
		assert_int_equal(errs.n, r);
		sbx_yaml_free(y);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),	cmocka_unit_test(test_empty),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_depth),
		cmocka_unit_test(test_size),	cmocka_unit_test(test_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
