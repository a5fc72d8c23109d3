/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runtime directories that launchers left, in a directory of our own; and what a recorder leaves.
 * The names begin with a dot: those of sandboxes need a database (tests/system/test_gc.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/cleanup/sweep.h"
#include "launcher/record/recorder.h"
#include "sys/fs/file_lock.h"
#include "tests/unit/scratch.h"

#define NAME ".new-0123456789ab"

static char top[64];
static int top_fd = -1;

static int begin(void **state)
{
	(void)state;
	strcpy(top, "/tmp/sbx-sweep-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	top_fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return top_fd < 0 ? -1 : mkdirat(top_fd, NAME, 0700);
}

static int end(void **state)
{
	(void)state;
	top_fd = sbx_fd_close(top_fd);
	scratch_remove(top);
	return 0;
}

static void make(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	scratch_write(path, "");
}

static bool is_there(const char *name)
{
	return faccessat(top_fd, name, F_OK, 0) == 0;
}

static int sweep(void)
{
	const struct sbx_facts f = { 0 };

	return sbx_sweep_dead(&f, top_fd, NAME, 0, NULL);
}

static void test_dead(void **state)
{
	(void)state;
	make(NAME "/lock");
	make(NAME "/left");
	assert_int_equal(sweep(), 1);
	assert_false(is_there(NAME));
	assert_int_equal(sweep(), 0); /* gone */
}

static void test_alive(void **state)
{
	int fd = openat(top_fd, NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	make(NAME "/left");
	assert_int_equal(sbx_file_lock(top_fd, NAME, fd), 0);
	assert_int_equal(sweep(), 0);
	assert_true(is_there(NAME "/left"));
	close(fd);
	assert_int_equal(sweep(), 1);
	assert_false(is_there(NAME));
}

/* While a list cannot be read, the files that it names may still be there: the next sweep tries
 * again. */
static void test_unreadable_list(void **state)
{
	(void)state;
	make(NAME "/left");
	/* EISDIR when it is read */
	assert_int_equal(mkdirat(top_fd, NAME "/placeholders", 0700), 0);
	assert_int_equal(sweep(), 0);
	assert_true(is_there(NAME "/left"));
	assert_int_equal(unlinkat(top_fd, NAME "/placeholders", AT_REMOVEDIR), 0);
	assert_int_equal(sweep(), 1);
}

/* A symlink in the place of a directory is not followed. */
static void test_link(void **state)
{
	(void)state;
	make(NAME "/left");
	assert_int_equal(renameat(top_fd, NAME, top_fd, "other"), 0);
	assert_int_equal(symlinkat("other", top_fd, NAME), 0);
	assert_int_equal(sweep(), 0);
	sbx_sweep_remove_dir(top_fd, NAME);
	assert_true(is_there("other/left"));
}

static void test_remove_dir(void **state)
{
	(void)state;
	make(NAME "/a");
	make(NAME "/b");
	assert_int_equal(mkdirat(top_fd, NAME "/d", 0700), 0);
	sbx_sweep_remove_dir(top_fd, NAME);
	assert_true(is_there(NAME "/d"));
	assert_false(is_there(NAME "/a") || is_there(NAME "/b"));
	assert_int_equal(unlinkat(top_fd, NAME "/d", AT_REMOVEDIR), 0);
	sbx_sweep_remove_dir(top_fd, NAME);
	assert_false(is_there(NAME));
}

static void test_recorder(void **state)
{
	struct sbx_recorder r = SBX_RECORDER_INIT;

	(void)state;
	sbx_recorder_fini(&r);
	assert_int_equal(sbx_fold_new(8, SBX_FOLD_LAUNCHER_MS, 0, 1, &r.fold), 0);
	r.pending = calloc(4, sizeof(*r.pending));
	r.n_pending = 4;
	r.has_row = r.released = true;
	sbx_recorder_fini(&r);
	assert_true(!r.fold && !r.pending && r.n_pending == 0 && !r.has_row && !r.released);
	sbx_recorder_fini(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_dead), TEST(test_alive),	TEST(test_unreadable_list),
		TEST(test_link), TEST(test_remove_dir), cmocka_unit_test(test_recorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
