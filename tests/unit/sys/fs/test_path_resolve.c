/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sys/path_resolve: lengths, kernel file systems, and what is renamed between its steps. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sys/fs/path_resolve.h"
#include "tests/unit/scratch.h"

/* The file system that everything is said to be on; 0: what it is. */
static long said_magic;
int __real_fstatfs(int fd, struct statfs *buf);
int __wrap_fstatfs(int fd, struct statfs *buf);

int __wrap_fstatfs(int fd, struct statfs *buf)
{
	int r = __real_fstatfs(fd, buf);

	if (said_magic)
		buf->f_type = said_magic;
	return r;
}

/* Called when a walk is over, before the kernel is asked for the name of what it found. */
static void (*between)(void *userdata);
static void *between_userdata;
static unsigned int n_between;
ssize_t __real_readlink(const char *path, char *buf, size_t n);
ssize_t __wrap_readlink(const char *path, char *buf, size_t n);

ssize_t __wrap_readlink(const char *path, char *buf, size_t n)
{
	if (between && strncmp(path, "/proc/self/fd/", 14) == 0) {
		n_between++;
		between(between_userdata);
	}
	return __real_readlink(path, buf, n);
}

/* @base is a fresh directory, resolved: ws/dir/file, other/file. */
struct world {
	char base[PATH_MAX];
};

static char *at(const struct world *w, const char *rel)
{
	static char buf[4][PATH_MAX * 2];
	static unsigned int i;
	char *p = buf[i++ % 4];

	snprintf(p, sizeof(buf[0]), "%s/%s", w->base, rel);
	return p;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	char tmp[] = "/tmp/sbx-resolve-XXXXXX";

	assert_non_null(w);
	assert_non_null(mkdtemp(tmp));
	assert_non_null(realpath(tmp, w->base));
	assert_int_equal(mkdir(at(w, "ws"), 0755), 0);
	assert_int_equal(mkdir(at(w, "ws/dir"), 0755), 0);
	assert_int_equal(mkdir(at(w, "other"), 0755), 0);
	scratch_write(at(w, "ws/dir/file"), "");
	scratch_write(at(w, "other/file"), "");
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	between = NULL;
	said_magic = 0;
	scratch_remove(w->base);
	free(w);
	return 0;
}

static int resolve(const char *path, struct sbx_resolved *ret, struct sbx_err *err)
{
	*err = (struct sbx_err){ 0 };
	return sbx_path_resolve(path, err, ret);
}

/* "./././dir" of @n bytes. */
static void long_text(char *text, size_t n, const char *end)
{
	size_t at = n - strlen(end);

	for (size_t i = 0; i < at; i++)
		text[i] = "./"[i % 2];
	if (at % 2)
		text[at - 1] = '/'; /* .//dir */
	strcpy(text + at, end);
}

/* A link's text and what is left of the path behind it must fit together. */
static void test_long_link(void **state)
{
	const struct world *w = *state;
	char text[PATH_MAX];

	for (size_t n = 4070; n < PATH_MAX; n++)
		for (size_t n_rest = 0; n_rest < 20; n_rest++) {
			static const char more[] = "/./././././././././.";
			SBX_AUTO_FREE char *path = NULL;
			struct sbx_resolved found;
			struct sbx_err err;
			int r;

			if (n_rest % 7 != 0 && n + 1 + n_rest != PATH_MAX &&
			    n + 1 + n_rest != PATH_MAX - 1)
				continue;
			long_text(text, n, "dir");
			assert_int_equal(symlink(text, at(w, "ws/long")), 0);
			assert_true(asprintf(&path, "%s%.*s", at(w, "ws/long"), (int)n_rest, more) >
				    0);
			r = resolve(path, &found, &err);
			assert_int_equal(r, n + 1 + n_rest < PATH_MAX ? 0 : SBX_PATH_E_ACCESS);
			if (r == 0) {
				assert_string_equal(found.path, at(w, "ws/dir"));
				sbx_resolved_fini(&found);
			} else {
				assert_non_null(strstr(err.msg, strerror(ENAMETOOLONG)));
			}
			assert_int_equal(unlink(at(w, "ws/long")), 0);
		}
}

/* Directories in one another below @dir until their path has @n bytes. Its fd. */
static int make_deep(const char *dir, size_t n, char *ret_path)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t have = strlen(dir);

	assert_true(fd >= 0);
	strcpy(ret_path, dir);
	while (have < n) {
		char name[NAME_MAX + 1];
		size_t left = n - have - 1, part = left > 200 ? left - 201 > 0 ? 200 : 199 : left;
		int next;

		memset(name, 'd', part);
		name[part] = '\0';
		assert_int_equal(mkdirat(fd, name, 0755), 0);
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
		ret_path[have] = '/';
		strcpy(ret_path + have + 1, name);
		have += 1 + part;
	}
	return fd;
}

/* The paths below are too long for nftw(3). */
static void remove_deep(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	SBX_AUTO_CLOSEDIR DIR *list = fdopendir(fd);
	const struct dirent *e;

	assert_non_null(list);
	while ((e = readdir(list)))
		if (e->d_name[0] != '.' && unlinkat(fd, e->d_name, 0) < 0)
			remove_deep(fd, e->d_name);
	assert_int_equal(unlinkat(dir, name, AT_REMOVEDIR), 0);
}

/* Two links, each well below PATH_MAX, lead to a path of @n bytes. @there: to the end of it. */
static void two_links(const struct world *w, size_t n, bool there)
{
	SBX_AUTO_CLOSE int middle = -1;
	char first[PATH_MAX], second[2 * PATH_MAX], third[2 * PATH_MAX];
	struct sbx_resolved found;
	struct sbx_err err;
	int fd, r;

	assert_int_equal(mkdir(at(w, "deep"), 0755), 0);
	middle = make_deep(at(w, "deep"), 2100, first);
	fd = fcntl(middle, F_DUPFD_CLOEXEC, 3);
	memset(second, 0, sizeof(second));
	for (size_t i = 2100; i < n; i++) /* names of 99 bytes */
		second[i - 2100] = (i - 2100) % 100 == 0 ? '/' : 'x';
	strcpy(third, second);
	for (char *name = strtok(third, "/"); name && there; name = strtok(NULL, "/")) {
		int next;

		assert_int_equal(mkdirat(fd, name, 0755), 0);
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	close(fd);
	assert_int_equal(symlink(first, at(w, "one")), 0);
	assert_int_equal(symlinkat(second + 1, middle, "two"), 0);
	r = resolve(at(w, "one/two"), &found, &err);
	assert_int_equal(r, n < PATH_MAX ? 0 : SBX_PATH_E_ACCESS);
	if (r == 0) {
		assert_int_equal(found.missing, !there);
		assert_int_equal(strlen(found.path), n);
		assert_memory_equal(found.path, first, 2100);
		assert_string_equal(found.path + 2100, second);
		sbx_resolved_fini(&found);
	} else {
		assert_string_equal(err.msg, "the resolved path is too long");
	}
	assert_int_equal(unlink(at(w, "one")), 0);
	remove_deep(AT_FDCWD, at(w, "deep"));
}

static void test_two_links(void **state)
{
	const struct world *w = *state;

	for (size_t n = PATH_MAX - 3; n <= PATH_MAX + 3; n++) {
		two_links(w, n, false);
		two_links(w, n, true);
	}
	two_links(w, PATH_MAX + 100, true);
	two_links(w, PATH_MAX + 1900, false);
}

/* More of them than there are directories above. */
static void test_many_dotdots(void **state)
{
	const struct world *w = *state;
	SBX_AUTO_FREE char *text = NULL;
	struct sbx_resolved found;
	struct sbx_err err;

	assert_true(asprintf(&text, "../../../../../../../../../../../../../../..%s",
			     at(w, "ws/dir")) > 0);
	assert_int_equal(symlink(text, at(w, "ws/up")), 0);
	assert_int_equal(resolve(at(w, "ws/up"), &found, &err), 0);
	assert_string_equal(found.path, at(w, "ws/dir"));
	sbx_resolved_fini(&found);
	assert_int_equal(symlink("../../../../../../../../../../../../..", at(w, "ws/root")), 0);
	assert_int_equal(resolve(at(w, "ws/root"), &found, &err), 0);
	assert_string_equal(found.path, "/");
	sbx_resolved_fini(&found);
}

static void test_short_link(void **state)
{
	const struct world *w = *state;
	struct sbx_resolved found;
	struct sbx_err err;

	assert_int_equal(mkdir(at(w, "ws/d"), 0755), 0);
	assert_int_equal(symlink("d", at(w, "ws/l")), 0);
	assert_int_equal(resolve(at(w, "ws/l"), &found, &err), 0);
	assert_string_equal(found.path, at(w, "ws/d"));
	sbx_resolved_fini(&found);
}

/* Said with the directory's mode and owner, unless others may enter it: then it is the one above
 * that is closed. */
static void test_closed(void **state)
{
	const struct world *w = *state;
	uid_t uid = geteuid();
	struct sbx_resolved found;
	struct sbx_err err;

	assert_int_equal(chmod(w->base, 0755), 0);
	assert_int_equal(chmod(at(w, "ws"), 02700), 0);
	if (uid == 0)
		assert_int_equal(seteuid(65534), 0);
	else
		assert_int_equal(chmod(at(w, "ws"), 02600), 0);
	assert_int_equal(resolve(at(w, "ws/dir"), &found, &err), SBX_PATH_E_ACCESS);
	if (uid == 0)
		assert_int_equal(seteuid(uid), 0);
	assert_non_null(strstr(err.msg, uid == 0 ? "has mode 2700 and belongs to uid 0:" :
						   "has mode 2600 and belongs to uid"));
	assert_int_equal(chmod(at(w, "ws"), 0755), 0);
}

/* By each of the names, on a file system that is another one than the root's. */
static void test_kernel_filesystems(void **state)
{
	static const struct {
		long magic;
		const char *name;
	} kinds[] = {
		{ PROC_SUPER_MAGIC, "proc" },	  { SYSFS_MAGIC, "sysfs" },
		{ CGROUP_SUPER_MAGIC, "cgroup" }, { CGROUP2_SUPER_MAGIC, "cgroup2" },
		{ DEVPTS_SUPER_MAGIC, "devpts" }, { DEBUGFS_MAGIC, "debugfs" },
		{ TRACEFS_MAGIC, "tracefs" },	  { SECURITYFS_MAGIC, "securityfs" },
		{ SELINUX_MAGIC, "selinuxfs" },	  { BPF_FS_MAGIC, "bpf" },
		{ NSFS_MAGIC, "nsfs" },		  { PSTOREFS_MAGIC, "pstore" },
		{ EFIVARFS_MAGIC, "efivarfs" },	  { BINFMTFS_MAGIC, "binfmt_misc" },
		{ 0x62656570, "configfs" },	  { 0x19800202, "mqueue" },
	};
	struct sbx_resolved found;
	struct sbx_err err;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++) {
		char want[64];

		said_magic = kinds[i].magic;
		assert_int_equal(resolve("/proc/sys", &found, &err), SBX_PATH_E_FORBIDDEN);
		snprintf(want, sizeof(want), "/proc is on a kernel file system (%s)",
			 kinds[i].name);
		assert_non_null(strstr(err.msg, want));
	}
	said_magic = TMPFS_MAGIC;
	assert_int_equal(resolve("/proc/sys", &found, &err), 0);
	sbx_resolved_fini(&found);
	said_magic = 0;
	assert_int_equal(resolve("/proc/sys", &found, &err), SBX_PATH_E_FORBIDDEN);
}

/* --- what is renamed between the walk and the question --- */

static void move_away_once(void *userdata)
{
	const struct world *w = userdata;

	if (n_between == 1)
		assert_int_equal(rename(at(w, "ws/dir"), at(w, "other/dir")), 0);
}

static void exchange_once(void *userdata)
{
	const struct world *w = userdata;

	if (n_between == 1)
		assert_int_equal(renameat2(AT_FDCWD, at(w, "ws/dir"), AT_FDCWD, at(w, "other"),
					   RENAME_EXCHANGE),
				 0);
}

static void move_on(void *userdata)
{
	const struct world *w = userdata;
	char from[32], to[32];

	snprintf(from, sizeof(from), "ws/at%u", n_between - 1);
	snprintf(to, sizeof(to), "ws/at%u", n_between);
	assert_int_equal(rename(at(w, from), at(w, to)), 0);
	assert_int_equal(symlink(to + 3, at(w, from)), 0);
}

static void hook(struct world *w, void (*fn)(void *userdata))
{
	between = fn;
	between_userdata = w;
	n_between = 0;
}

/* The file that was found has been renamed meanwhile: the walk starts again. */
static void test_moved_away(void **state)
{
	struct world *w = *state;
	struct sbx_resolved found;
	struct sbx_err err;

	hook(w, move_away_once);
	assert_int_equal(resolve(at(w, "ws/dir/file"), &found, &err), 0);
	assert_int_equal(n_between, 2);
	assert_true(found.missing);
	assert_string_equal(found.parent, at(w, "ws"));
	assert_string_equal(found.path, at(w, "ws/dir/file"));
	sbx_resolved_fini(&found);
	hook(NULL, NULL);
}

static void test_exchanged(void **state)
{
	struct world *w = *state;
	struct sbx_resolved found;
	struct sbx_err err;
	struct stat st;

	hook(w, exchange_once);
	assert_int_equal(resolve(at(w, "ws/dir/file"), &found, &err), 0);
	assert_int_equal(n_between, 2);
	assert_int_equal(lstat(at(w, "ws/dir/file"), &st), 0);
	assert_int_equal(found.st.st_ino, st.st_ino); /* the one that came in its place */
	sbx_resolved_fini(&found);
	hook(NULL, NULL);
}

/* A path that changes each time is refused in the end. */
static void test_always_moved(void **state)
{
	struct world *w = *state;
	struct sbx_resolved found;
	struct sbx_err err;

	assert_int_equal(mkdir(at(w, "ws/at0"), 0755), 0);
	hook(w, move_on);
	assert_int_equal(resolve(at(w, "ws/at0"), &found, &err), SBX_PATH_E_ACCESS);
	assert_int_equal(n_between, 8);
	assert_non_null(strstr(err.msg, "does not hold still"));
	hook(NULL, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_long_link),	       TEST(test_two_links),  TEST(test_many_dotdots),
		TEST(test_kernel_filesystems), TEST(test_moved_away), TEST(test_exchanged),
		TEST(test_always_moved),       TEST(test_short_link), TEST(test_closed),
	};

	return cmocka_run_group_tests_name("path_resolve", tests, NULL, NULL);
}
