/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/dir_cache.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "scratch.h"
#include "sys/dir_walk.h"

#define N_DIRS 400 /* of 16 files: enough to be kept */

static const char *const names[] = { ".aws", ".ssh", NULL };
static const char *const others[] = { ".aws", ".ssh", "secrets", NULL };

struct world {
	char dir[64];
	int fd, at;
	unsigned int n_hits;
	uint64_t n_left; /* after the walk */
};

/* On a file system whose times are trusted. */
static void find_place(char ret_template[64])
{
	static const char *const places[] = { "/tmp", "/var/tmp", "/dev/shm" };
	struct statfs sfs;
	size_t i = 0;

	while (statfs(places[i], &sfs) < 0 || (sfs.f_type != EXT4_SUPER_MAGIC && sfs.f_type != TMPFS_MAGIC))
		assert_true(++i < SBX_N_ELEMENTS(places));
	snprintf(ret_template, 64, "%s/sbx-cache-XXXXXX", places[i]);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	find_place(w->dir);
	assert_non_null(mkdtemp(w->dir));
	w->fd = open(w->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(w->fd, "tree", 0700), 0);
	w->at = openat(w->fd, "tree", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < N_DIRS; i++) {
		char name[64];

		snprintf(name, sizeof(name), "d%d", i);
		assert_int_equal(mkdirat(w->at, name, 0700), 0);
		for (int k = 0; k < 16; k++) {
			snprintf(name, sizeof(name), "d%d/f%d", i, k);
			assert_int_equal(mknodat(w->at, name, S_IFREG | 0600, 0), 0);
		}
	}
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	close(w->fd);
	close(w->at);
	scratch_remove(w->dir);
	free(w);
	return 0;
}

static int on_hit(void *userdata, const char *path, const char *name, const struct stat *st)
{
	struct world *w = userdata;

	(void)path;
	(void)name;
	(void)st;
	w->n_hits++;
	return 1;
}

static int kept(const struct world *w)
{
	return openat(w->fd, "walked", O_RDONLY | O_CLOEXEC);
}

/* One walk as a start does it. The answer: was the file written? */
static bool walk(struct world *w, const char *const *for_names, unsigned int depth, uint64_t n)
{
	struct sbx_dir_cache *c = sbx_dir_cache_new(kept(w), for_names);
	struct sbx_dir_walk rules = { .names = for_names, .depth = depth, .n_left = n, .cache = c };
	bool stored;
	int r;

	assert_non_null(c);
	w->n_hits = 0;
	r = sbx_dir_walk(w->at, &rules, on_hit, w);
	assert_true(r == 0 || r == SBX_DIR_WALK_E_LIMIT);
	w->n_left = rules.n_left;
	stored = sbx_dir_cache_is_worth_storing(c);
	if (stored)
		assert_int_equal(sbx_dir_cache_store(c, w->fd, "walked", "walked.new"), 0);
	sbx_dir_cache_free(c);
	return stored;
}

/* Times in the past are nobody's to set; so the clock is waited for. False: a kernel that does not tell mounts apart,
 * before Linux 6.8, on which nothing is kept. */
static bool settled(struct world *w)
{
	uint64_t mount;
	struct stat st;

	sleep(7);
	assert_int_equal(sbx_dir_cache_stat(w->at, "", &st, &mount), 0);
	if (!mount)
		assert_false(walk(w, names, 3, 100000));
	return mount != 0;
}

static void test_fresh_is_not_kept(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < N_DIRS; i++) { /* a slow disk took long to make them */
		char name[16];

		snprintf(name, sizeof(name), "d%d", i);
		assert_int_equal(fchmodat(w->at, name, 0700, 0), 0);
	}
	assert_false(walk(w, names, 3, 100000));
	assert_int_equal(kept(w), -1);
}

static void test_kept(void **state)
{
	struct world *w = *state;
	uint64_t left;
	struct stat st;
	int fd;

	if (!settled(w))
		return;
	assert_true(walk(w, names, 3, 100000));
	left = w->n_left;
	assert_int_equal(left, 100000 - N_DIRS * 17);
	assert_false(walk(w, names, 3, 100000));
	assert_int_equal(w->n_left, left);
	assert_int_equal(w->n_hits, 0);

	/* What comes into a directory that is known is found. */
	assert_int_equal(mkdirat(w->at, "d399/.ssh", 0700), 0);
	assert_int_equal(mknodat(w->at, "d200/.aws", S_IFREG | 0600, 0), 0);
	assert_false(walk(w, names, 3, 100000));
	assert_int_equal(w->n_hits, 2);
	assert_int_equal(unlinkat(w->at, "d200/.aws", 0), 0);
	assert_int_equal(renameat(w->at, "d399/.ssh", w->at, "d200/.ssh"), 0);
	walk(w, names, 3, 100000);
	assert_int_equal(w->n_hits, 1);

	/* A limit ends the walk in the same place. */
	walk(w, names, 3, 1000);
	assert_int_equal(w->n_left, 0);

	/* For other names it says nothing. */
	assert_int_equal(mknodat(w->at, "d7/secrets", S_IFREG | 0600, 0), 0);
	assert_true(walk(w, others, 3, 100000));
	assert_int_equal(w->n_hits, 2);

	/* Nothing is left under the other name, and what a killed one left is taken over. */
	assert_true(faccessat(w->fd, "walked.new", F_OK, 0) < 0);
	fd = openat(w->fd, "walked.new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "half", 4), 4);
	close(fd);
	assert_true(walk(w, names, 3, 100000));
	assert_int_equal(fstatat(w->fd, "walked", &st, 0), 0);
	assert_true(st.st_size > N_DIRS * 16 && faccessat(w->fd, "walked.new", F_OK, 0) < 0);
}

static void rewrite(const struct world *w, const char *text, size_t n)
{
	int fd;

	unlinkat(w->fd, "walked", 0);
	fd = openat(w->fd, "walked", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, text, n), n);
	close(fd);
}

/* Cut anywhere, or with a byte changed in the head or the names, it is none; and nothing it says hides a name in a
 * directory that has one. */
static void test_hostile_files(void **state)
{
	struct world *w = *state;
	static char text[1 << 20];
	ssize_t n;
	int fd;

	if (!settled(w))
		return;
	assert_true(walk(w, names, 3, 100000));
	fd = kept(w);
	n = read(fd, text, sizeof(text));
	close(fd);
	assert_true(n > 1000);
	assert_int_equal(mkdirat(w->at, "d5/.ssh", 0700), 0);
	for (size_t cut = 0; cut < (size_t)n; cut += cut < 64 ? 1 : 777) {
		rewrite(w, text, cut);
		walk(w, names, 3, 100000);
		assert_int_equal(w->n_hits, 1);
	}
	for (size_t i = 0; i < 96; i++) {
		text[i] ^= 0x41;
		rewrite(w, text, (size_t)n);
		walk(w, names, 3, 100000);
		assert_int_equal(w->n_hits, 1);
		text[i] ^= 0x41;
	}
	rewrite(w, text, (size_t)n);
	assert_int_equal(fchmodat(w->fd, "walked", 0666, 0), 0);
	assert_true(walk(w, names, 3, 100000)); /* others could have written it */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fresh_is_not_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_files, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
