/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Locks that go with a name: taken, held by another, of what is gone, of what is called otherwise
 * by now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/scratch.h"
#include "sys/fs/file_lock.h"

struct world {
	char dir[64];
	int fd, lock; /* lock is "x" */
};

static int open_it(struct world *w, const char *name)
{
	return openat(w->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	strcpy(w->dir, "/tmp/sbx-lock-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	w->fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(w->fd >= 0);
	assert_int_equal(mkdirat(w->fd, "x", 0700), 0);
	w->lock = open_it(w, "x");
	assert_true(w->lock >= 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	sbx_fd_close(w->lock);
	sbx_fd_close(w->fd);
	scratch_remove(w->dir);
	free(w);
	return 0;
}

static void test_taken(void **state)
{
	struct world *w = *state;
	SBX_AUTO_CLOSE int other = open_it(w, "x");

	assert_int_equal(sbx_file_lock(w->fd, "x", w->lock), 0);
	assert_int_equal(sbx_file_lock(w->fd, "x", w->lock), 0);
	assert_int_equal(sbx_file_lock(w->fd, "x", other), -EWOULDBLOCK);
	w->lock = sbx_fd_close(w->lock);
	assert_int_equal(sbx_file_lock(w->fd, "x", other), 0);
	assert_int_equal(sbx_file_lock(w->fd, "x", -1), -EBADF);
}

static void test_gone(void **state)
{
	struct world *w = *state;

	assert_int_equal(unlinkat(w->fd, "x", AT_REMOVEDIR), 0);
	assert_int_equal(sbx_file_lock(w->fd, "x", w->lock), -ESTALE);
	assert_int_equal(mkdirat(w->fd, "x", 0700), 0);
	assert_int_equal(sbx_file_lock(w->fd, "x", w->lock), -ESTALE);
}

static void test_renamed(void **state)
{
	struct world *w = *state;

	assert_int_equal(renameat(w->fd, "x", w->fd, "y"), 0);
	assert_int_equal(sbx_file_lock(w->fd, "x", w->lock), -ESTALE);
	assert_int_equal(sbx_file_lock(w->fd, "y", w->lock), 0);
}

/* A symlink that leads to it is not what was opened. */
static void test_symlink(void **state)
{
	struct world *w = *state;

	assert_int_equal(symlinkat("x", w->fd, "y"), 0);
	assert_int_equal(sbx_file_lock(w->fd, "y", w->lock), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_renamed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_symlink, setup, teardown),
	};

	return cmocka_run_group_tests_name("file_lock", tests, NULL, NULL);
}
