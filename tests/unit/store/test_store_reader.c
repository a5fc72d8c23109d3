/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The database is made while another user, root, reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/store.h"
#include "tests/unit/scratch.h"

#define NOBODY 65534

struct fixture {
	char root[64]; /* removed at the end */
	char state[96], db[128], migrations[256];
	struct sbx_err err;
};

/* Copy the migrations to a place that every user can read. */
static void copy_migrations(const char *to)
{
	const char *src = getenv("SBX_SRCDIR");
	char from[512];
	struct dirent *e;
	DIR *dir;

	snprintf(from, sizeof(from), "%s/migrations", src ? src : ".");
	dir = opendir(from);
	assert_non_null(dir);
	assert_int_equal(mkdir(to, 0755), 0);
	while ((e = readdir(dir))) {
		char path[1024], text[16384];
		FILE *in;

		if (!strstr(e->d_name, ".sql"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", from, e->d_name);
		in = fopen(path, "r");
		assert_non_null(in);
		text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
		assert_true(feof(in));
		fclose(in);
		snprintf(path, sizeof(path), "%s/%s", to, e->d_name);
		scratch_write(path, text);
	}
	closedir(dir);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	umask(022);
	strcpy(f->root, "/tmp/sbx-test-store.XXXXXX");
	if (!mkdtemp(f->root) || chmod(f->root, 0755) < 0)
		return -1;
	snprintf(f->state, sizeof(f->state), "%s/state", f->root);
	snprintf(f->db, sizeof(f->db), "%s/sbx.db", f->state);
	snprintf(f->migrations, sizeof(f->migrations), "%s/migrations", f->root);
	copy_migrations(f->migrations);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	scratch_remove(f->root);
	free(f);
	return 0;
}

/* Another's -wal or -shm, as root's reader makes it; @release: after 30 ms it is ours, as SQLite
 * does it. */
static int open_beside(struct fixture *f, const char *suffix, mode_t mode, bool release)
{
	struct sbx_store *store = NULL;
	char path[160];
	pid_t pid;
	int status, fd, r;

	scratch_remove(f->state);
	assert_int_equal(mkdir(f->state, 0755), 0);
	assert_int_equal(chown(f->state, NOBODY, NOBODY), 0);
	snprintf(path, sizeof(path), "%s%s", f->db, suffix);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	sbx_fd_close(fd);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		usleep(30 * 1000);
		_exit(release && chown(path, NOBODY, NOBODY) < 0);
	}
	memset(&f->err, 0, sizeof(f->err));
	assert_int_equal(seteuid(NOBODY), 0);
	r = sbx_store_open(f->state, f->migrations, &f->err, &store);
	assert_int_equal(seteuid(0), 0);
	sbx_store_close(store);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return r;
}

/* Root's reader at the moment we make it: its files are waited for, and not for ever. */
static void test_create_beside_a_reader(void **state)
{
	struct fixture *f = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(open_beside(f, "-shm", 0644, true), 0);
	assert_int_equal(open_beside(f, "-shm", 0600, true), 0);
	assert_int_equal(open_beside(f, "-shm", 0644, false), -EROFS);
	assert_non_null(strstr(f->err.msg, "readonly"));
	assert_int_equal(open_beside(f, "-shm", 0600, false), -ENOENT);
	assert_non_null(strstr(f->err.msg, "unable to open"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_create_beside_a_reader, setup, teardown),
	};

	return cmocka_run_group_tests_name("store_reader", tests, NULL, NULL);
}
