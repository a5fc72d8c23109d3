/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* launcher/trust: who can change a file, or the way to it. Owners other than us:
 * tests/system/test_trust.py. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/host/trust.h"
#include "tests/unit/scratch.h"

struct world {
	char dir[64], way[128], file[160];
	struct sbx_facts f;
	struct stat st;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	snprintf(w->dir, sizeof(w->dir), "/tmp/sbx-test-trust-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->way, sizeof(w->way), "%s/way", w->dir);
	snprintf(w->file, sizeof(w->file), "%s/file", w->way);
	assert_int_equal(mkdir(w->way, 0755), 0);
	close(open(w->file, O_CREAT | O_WRONLY, 0644));
	assert_int_equal(stat(w->file, &w->st), 0);
	w->f.caller_uid = geteuid();
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	scratch_remove(w->dir);
	free(w);
	return 0;
}

/* 0, or -EPERM with something said. */
static int judge(struct world *w, bool privileged, bool strict)
{
	struct sbx_err err = { 0 };
	int r;

	w->f.privileged = privileged;
	assert_int_equal(stat(w->file, &w->st), 0);
	r = sbx_trust_file(&w->f, w->file, &w->st, strict, &err);
	assert_int_equal(r != 0, err.msg[0] != '\0');
	return r;
}

/* Modes of the file and of the directory it is in, for an ordinary user, the same strictly, and a
 * privileged launcher. */
static void test_modes(void **state)
{
	static const struct {
		mode_t file, way;
		int user, strict, privileged;
	} rows[] = {
		{ 0644, 0755, 0, 0, 0 },
		{ 0664, 0755, 0, -EPERM, -EPERM },
		{ 0646, 0755, -EPERM, -EPERM, -EPERM },
		{ 0644, 0775, 0, 0, -EPERM },
		{ 0644, 0757, -EPERM, -EPERM, -EPERM },
		{ 0644, 01777, 0, 0, 0 },
		{ 01644, 0755, 0, 0, 0 },
		{ 01666, 0755, -EPERM, -EPERM, -EPERM }, /* sticky says nothing of a file */
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(chmod(w->file, rows[i].file), 0);
		assert_int_equal(chmod(w->way, rows[i].way), 0);
		assert_int_equal(judge(w, false, false), rows[i].user);
		assert_int_equal(judge(w, false, true), rows[i].strict);
		assert_int_equal(judge(w, true, false), rows[i].privileged);
	}
}

/* A file that was replaced after it was opened is refused. */
static void test_replaced(void **state)
{
	struct world *w = *state;
	struct sbx_err err = { 0 };
	struct stat other = w->st;

	other.st_ino++;
	assert_int_equal(sbx_trust_file(&w->f, w->file, &other, false, &err), -EPERM);
	other = w->st;
	other.st_dev++;
	assert_int_equal(sbx_trust_file(&w->f, w->file, &other, false, &err), -EPERM);
	assert_int_equal(sbx_trust_file(&w->f, w->file, &w->st, false, &err), 0);
	assert_int_equal(unlink(w->file), 0);
	assert_int_equal(sbx_trust_file(&w->f, w->file, &w->st, false, &err), -EPERM);
}

static void test_directories_to_be_made(void **state)
{
	struct world *w = *state;
	struct sbx_err err = { 0 };
	char deep[192];

	snprintf(deep, sizeof(deep), "%s/a/b", w->way);
	w->f.privileged = true;
	for (mode_t others = 0; others < 0100; others++) {
		bool open = others & 0022;

		assert_int_equal(chmod(w->way, 0700 | others), 0);
		assert_int_equal(sbx_trust_dir(&w->f, deep, &err), open ? -EPERM : 0);
		assert_int_equal(chmod(w->way, 01700 | others), 0);
		assert_int_equal(sbx_trust_dir(&w->f, deep, &err), 0);
		/* what it is itself is not asked */
		assert_int_equal(sbx_trust_dir(&w->f, w->way, &err), 0);
	}
}

static void test_relative(void **state)
{
	struct world *w = *state;
	struct sbx_err err = { 0 };

	assert_int_equal(chdir(w->way), 0);
	assert_int_equal(sbx_trust_file(&w->f, "file", &w->st, true, &err), 0);
	assert_int_equal(sbx_trust_file(&w->f, "./../way/file", &w->st, true, &err), 0);
	assert_int_equal(chmod(w->way, 0777), 0);
	assert_int_equal(sbx_trust_file(&w->f, "file", &w->st, true, &err), -EPERM);
	assert_int_equal(chdir("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_modes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_directories_to_be_made, setup, teardown),
		cmocka_unit_test_setup_teardown(test_relative, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
