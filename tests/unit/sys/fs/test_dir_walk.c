/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/fs/dir_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/scratch.h"

static const char *const names[] = { ".aws", ".ssh", "secrets", NULL };

struct world {
	char dir[64];
	int fd;
	char found[4096]; /* "PATH;" of each hit */
	int answer;
};

static void make(const struct world *w, const char *path, int dir)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", w->dir, path);
	if (dir)
		assert_int_equal(mkdir(full, 0700), 0);
	else
		scratch_write(full, "x");
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	strcpy(w->dir, "/tmp/sbx-walk-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	w->fd = open(w->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	make(w, "a", 1);
	make(w, "a/.ssh", 1);
	make(w, "a/.ssh/.aws", 1);
	make(w, "a/b", 1);
	make(w, "a/b/secrets", 0);
	make(w, "a/b/c", 1);
	make(w, "a/b/c/secrets", 0);
	make(w, ".aws", 0);
	make(w, "secretsx", 0);
	make(w, ".sshx", 1);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	close(w->fd);
	scratch_remove(w->dir);
	free(w);
	return 0;
}

static int on_hit(void *userdata, const char *path, const char *name, const struct stat *st)
{
	struct world *w = userdata;

	(void)st;
	if (!name) {
		strcat(w->found, "closed ");
		strcat(w->found, path);
		strcat(w->found, ";");
		return 0;
	}
	assert_string_equal(name, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	strcat(w->found, path);
	strcat(w->found, ";");
	return w->answer;
}

static int walk(struct world *w, unsigned int depth, uint64_t n, int answer)
{
	struct sbx_dir_walk rules = { .names = names, .depth = depth, .n_left = n };

	w->found[0] = '\0';
	w->answer = answer;
	return sbx_dir_walk(w->fd, &rules, on_hit, w);
}

static bool found(const struct world *w, const char *path)
{
	char item[64];

	snprintf(item, sizeof(item), ";%s;", path);
	return strncmp(w->found, item + 1, strlen(item) - 1) == 0 || strstr(w->found, item);
}

static void test_depth(void **state)
{
	struct world *w = *state;

	assert_int_equal(walk(w, 1, 1000, 1), 0);
	assert_string_equal(w->found, ".aws;");
	assert_int_equal(walk(w, 2, 1000, 1), 0);
	assert_true(found(w, ".aws") && found(w, "a/.ssh") && !found(w, "a/b/secrets"));
	assert_int_equal(walk(w, 3, 1000, 1), 0);
	assert_true(found(w, "a/b/secrets") && !found(w, "a/b/c/secrets") &&
		    !found(w, "a/.ssh/.aws"));
	assert_int_equal(walk(w, 4, 1000, 0), 0);
	assert_true(found(w, "a/b/c/secrets") && found(w, "a/.ssh/.aws"));
	assert_int_equal(walk(w, 0, 1000, 0), -EINVAL);
	assert_int_equal(walk(w, SBX_DIR_WALK_DEPTH_MAX + 1, 1000, 0), -EINVAL);
}

/* Ten entries without those below a hit that is not entered. */
static void test_limit(void **state)
{
	struct world *w = *state;

	assert_int_equal(walk(w, 16, 10, 0), 0);
	assert_int_equal(walk(w, 16, 9, 0), SBX_DIR_WALK_E_LIMIT);
	assert_int_equal(walk(w, 16, 9, 1), 0);
	assert_int_equal(walk(w, 16, 0, 1), SBX_DIR_WALK_E_LIMIT);
}

static void test_callback_ends_it(void **state)
{
	struct world *w = *state;

	assert_int_equal(walk(w, 16, 1000, -EXFULL), -EXFULL);
}

static void test_links_are_not_followed(void **state)
{
	struct world *w = *state;
	char from[256];

	snprintf(from, sizeof(from), "%s/link", w->dir);
	assert_int_equal(symlink("a", from), 0);
	snprintf(from, sizeof(from), "%s/secrets", w->dir);
	assert_int_equal(symlink("a/b", from), 0);
	assert_int_equal(walk(w, 16, 1000, 0), 0);
	assert_true(found(w, "secrets") && !strstr(w->found, "link") &&
		    !strstr(w->found, "secrets/"));
}

/* Walk as nobody, where we can. */
static int walk_as_nobody(struct world *w)
{
	int r;

	if (getuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	r = walk(w, 3, 1000, 1);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	return r;
}

/* In another user's directory that can be searched but not listed, known names are tried. Needs two
 * users. */
static void test_unlistable(void **state)
{
	struct world *w = *state;
	char path[256];

	if (getuid() != 0)
		return;
	snprintf(path, sizeof(path), "%s/a", w->dir);
	assert_int_equal(chmod(w->dir, 0755), 0);
	assert_int_equal(chmod(path, 0711), 0);
	assert_int_equal(walk_as_nobody(w), 0);
	assert_true(found(w, "a/.ssh") && !found(w, "a/b/secrets"));
	assert_int_equal(chmod(path, 0700), 0); /* and what they keep closed is passed by */
	assert_int_equal(walk_as_nobody(w), 0);
	assert_string_equal(w->found, ".aws;");
}

/* A directory that the command's user closed is reported: the user can open it again. */
static void test_closed(void **state)
{
	static const mode_t closed[] = { 0, 0400, 0100, 0300, 0277 };
	struct world *w = *state;
	char path[256];

	snprintf(path, sizeof(path), "%s/a", w->dir);
	if (getuid() == 0) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(chmod(w->dir, 0755), 0);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(closed); i++) {
		assert_int_equal(chmod(path, closed[i]), 0);
		assert_int_equal(walk_as_nobody(w), 0);
		assert_true(found(w, "closed a") && !found(w, "a/.ssh"));
	}
	assert_int_equal(chmod(path, 0500), 0);
	assert_int_equal(walk_as_nobody(w), 0);
	assert_true(!found(w, "closed a") && found(w, "a/.ssh"));
	assert_int_equal(chmod(path, 0700), 0);
}

/* A directory with directories is read in any case: they may have changed. */
static void test_unchanged(void **state)
{
	struct world *w = *state;
	struct sbx_dir_walk rules = {
		.names = names, .depth = 4, .n_left = 1000, .changed_since = time(NULL) + 100
	};

	char leaf[256];
	struct stat st;

	snprintf(leaf, sizeof(leaf), "%s/a/b/c", w->dir);
	assert_int_equal(stat(leaf, &st), 0);
	assert_int_equal(sbx_dir_walk(w->fd, &rules, on_hit, w), 0);
	assert_true(found(w, "a/b/secrets"));
	if (st.st_nlink == 2) /* not every file system counts so */
		assert_false(found(w, "a/b/c/secrets"));
	rules.changed_since = time(NULL) - 100;
	w->found[0] = '\0';
	assert_int_equal(sbx_dir_walk(w->fd, &rules, on_hit, w), 0);
	assert_true(found(w, "a/b/secrets") && found(w, "a/b/c/secrets"));
}

/* Everything is found, once, and counted. */
static void test_large(void **state)
{
	enum { N_OUTER = 9, N_INNER = 101, N_ALL = N_OUTER * N_INNER * 3 + N_OUTER };
	static const char *const hits[] = { "big/o0/i3/.ssh",  "big/o4/i0/.ssh",
					    "big/o4/i1/.aws",  "big/o7/i100/secrets",
					    "big/o8/i99/.ssh", "big/o8/.ssh",
					    "big/o7/.aws" };
	struct world *w = *state;
	struct sbx_dir_walk rules = { .names = names, .depth = 4, .n_left = 100000 };
	SBX_AUTO_CLOSE int fd = -1;
	char path[256];

	make(w, "big", 1);
	for (int i = 0; i < N_OUTER; i++) {
		snprintf(path, sizeof(path), "big/o%d", i);
		make(w, path, 1);
		for (int k = 0; k < N_INNER; k++) {
			snprintf(path, sizeof(path), "big/o%d/i%d", i, k);
			make(w, path, 1);
			snprintf(path, sizeof(path), "big/o%d/i%d/d", i, k);
			make(w, path, 1);
			snprintf(path, sizeof(path), "big/o%d/i%d/f", i, k);
			make(w, path, 0);
		}
	}
	snprintf(path, sizeof(path), "%s/big", w->dir);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(sbx_dir_walk(fd, &rules, on_hit, w), 0);
	assert_string_equal(w->found, "");
	assert_int_equal(rules.n_left, 100000 - N_ALL);
	rules.n_left = N_ALL; /* just enough */
	assert_int_equal(sbx_dir_walk(fd, &rules, on_hit, w), 0);
	assert_int_equal(rules.n_left, 0);
	for (unsigned int less = 1; less < N_ALL; less += 97) {
		rules.n_left = N_ALL - less;
		assert_int_equal(sbx_dir_walk(fd, &rules, on_hit, w), SBX_DIR_WALK_E_LIMIT);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(hits); i++)
		make(w, hits[i], 1);
	for (int turn = 0; turn < 2; turn++) {
		size_t n = 0;

		rules.n_left = 100000;
		rules.changed_since = turn; /* nothing is that old */
		w->found[0] = '\0';
		w->answer = 1;
		assert_int_equal(sbx_dir_walk(fd, &rules, on_hit, w), 0);
		for (const char *s = w->found; (s = strchr(s, ';')); s++)
			n++;
		assert_int_equal(n, SBX_N_ELEMENTS(hits));
		for (size_t i = 0; i < SBX_N_ELEMENTS(hits); i++)
			assert_true(found(w, hits[i] + strlen("big/")));
	}
}

static void test_sort(void **state)
{
	const char *v[] = { "b", "a", "b", "aa", "a" };

	(void)state;
	assert_int_equal(sbx_dir_walk_sort(v, 5), 3);
	assert_string_equal(v[0], "a");
	assert_string_equal(v[1], "aa");
	assert_string_equal(v[2], "b");
	assert_int_equal(sbx_dir_walk_sort(v, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_callback_ends_it, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links_are_not_followed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unlistable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unchanged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large, setup, teardown),
		cmocka_unit_test(test_sort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
