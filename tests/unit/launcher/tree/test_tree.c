/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tree mounts exactly the file that was judged. In namespaces of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/tree/tree.h"

#define NO_NAMESPACES 77

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "# %s:%d: not true: %s (%s)\n", __FILE__, __LINE__, \
				#condition, strerror(errno)); \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void write_file(const char *path, const char *text)
{
	SBX_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void enter(void)
{
	char uid_map[64], gid_map[64];

	snprintf(uid_map, sizeof(uid_map), "0 %u 1", (unsigned)getuid());
	snprintf(gid_map, sizeof(gid_map), "0 %u 1", (unsigned)getgid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		_exit(NO_NAMESPACES);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", uid_map);
	write_file("/proc/self/gid_map", gid_map);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("tmpfs", "/mnt", "tmpfs", 0, NULL) == 0);
}

/* One mount of @source at /@dest, judged as @st. 0 or -errno, with what is said. */
static int try_one(struct sbx_tree *t, enum sbx_mount_op_kind kind, char *source, char *dest,
		   const struct stat *st, struct sbx_err *err)
{
	struct sbx_mount_op op = { .kind = kind, .dest = dest, .mount_fd = -1 };
	struct sbx_scratch s = { .root = -1, .upper = -1 };

	op.source.fd = -1;
	op.source.resolved = source;
	op.source.st = *st;
	*err = (struct sbx_err){ 0 };
	return sbx_tree_build(t, &op, 1, NULL, 0, &s, err);
}

struct changed {
	const char *what;
	void (*change)(struct stat *st);
};

static void change_dev(struct stat *st)
{
	st->st_dev++;
}

static void change_ino(struct stat *st)
{
	st->st_ino++;
}

static void change_rdev(struct stat *st)
{
	st->st_rdev = makedev(1, 5);
}

static void refuse_changed(struct sbx_tree *t, enum sbx_mount_op_kind kind, char *source,
			   char *dest, size_t n)
{
	static const struct changed changed[] = { { "dev", change_dev },
						  { "ino", change_ino },
						  { "rdev", change_rdev } };
	struct sbx_err err;
	struct stat st;

	CHECK(stat(source, &st) == 0);
	for (size_t i = 0; i < n; i++) {
		struct stat other = st;

		changed[i].change(&other);
		if (try_one(t, kind, source, dest, &other, &err) != -ESTALE ||
		    !strstr(err.msg, "is not what it was")) {
			fprintf(stderr, "# %s with another %s: %s\n", source, changed[i].what,
				err.msg);
			_exit(1);
		}
	}
	if (try_one(t, kind, source, dest, &st, &err) != 0) {
		fprintf(stderr, "# %s: %s\n", source, err.msg);
		_exit(1);
	}
}

static void identity(void)
{
	static char file[] = "/mnt/file", dir[] = "/mnt/dir", null[] = "/dev/null",
		    dev[] = "/dev/x", at_file[] = "/f", at_dir[] = "/d";
	struct sbx_tree t = { .root = -1 };
	struct sbx_err err = { 0 };
	struct stat st;

	write_file(file, "text\n");
	CHECK(mkdir(dir, 0755) == 0);
	if (sbx_tree_begin(&t, &err) < 0) {
		fprintf(stderr, "# %s\n", err.msg);
		_exit(1);
	}
	refuse_changed(&t, SBX_MOUNT_BIND, file, at_file, 2);
	refuse_changed(&t, SBX_MOUNT_BIND, dir, at_dir, 2);
	refuse_changed(&t, SBX_MOUNT_DEVICE, null, dev, 3);
	/* A regular file does not pass for a device. */
	CHECK(stat(file, &st) == 0);
	CHECK(try_one(&t, SBX_MOUNT_DEVICE, file, dev, &st, &err) == -ESTALE);
}

/* A file with a fill lies over the one that is there, which stays; any other is an error. */
static void cover(void)
{
	static char dir[] = "/mnt/etc", at_dir[] = "/etc", store[] = "/etc/store", text[] = "trust",
		    other[] = "/etc/link", made[] = "/new/store", root[] = "/";
	int fills[SBX_N_FILLS];
	struct sbx_tree t = { .root = -1, .fills = fills };
	struct sbx_scratch s = { .root = -1, .upper = -1 };
	struct sbx_mount_op last = { .kind = SBX_MOUNT_REMOUNT_RO, .dest = root, .mount_fd = -1,
				     .source = { .fd = -1 } };
	struct sbx_mount_op op = { .kind = SBX_MOUNT_FILE, .dest = store, .mount_fd = -1,
				   .text = text, .n_text = 5, .mode = 0444,
				   .source = { .fd = -1 } };
	struct sbx_err err = { 0 };
	char buf[8] = "";
	struct stat st;

	memset(fills, -1, sizeof(fills));
	CHECK(mkdir(dir, 0755) == 0);
	write_file("/mnt/etc/store", "host");
	write_file("/mnt/etc/link", "host");
	CHECK(sbx_tree_begin(&t, &err) == 0 && stat(dir, &st) == 0);
	CHECK(try_one(&t, SBX_MOUNT_BIND, dir, at_dir, &st, &err) == 0);
	CHECK(mkdirat(t.root, "run", 0755) == 0 && mkdirat(t.root, "run/sbx", 0755) == 0);
	CHECK(sbx_tree_build(&t, &op, 1, NULL, 0, &s, &err) == -EEXIST);
	op.fill = SBX_FILL_TRUST;
	for (size_t i = 0; i < 2; i++) {
		SBX_AUTO_CLOSE int fd = -1;

		CHECK(sbx_tree_build(&t, &op, 1, NULL, 0, &s, &err) == 0);
		if (i == 0) {
			CHECK(fills[SBX_FILL_TRUST] >= 0 && fills[SBX_FILL_JAVA] < 0);
			CHECK(write(fills[SBX_FILL_TRUST], text, 5) == 5);
		}
		fd = openat(t.root, op.dest + 1, O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0 && read(fd, buf, sizeof(buf)) == 5 && memcmp(buf, text, 5) == 0);
		CHECK(faccessat(t.root, op.dest + 1, W_OK, AT_EACCESS) < 0 && errno == EROFS);
		op.dest = other; /* the second place shows the same file */
	}
	op.dest = made; /* a place where there was nothing */
	CHECK(sbx_tree_build(&t, &op, 1, NULL, 0, &s, &err) == 0);
	CHECK(fstatat(t.root, op.dest + 1, &st, 0) == 0 && st.st_size == 5);
	/* the open file keeps no mount from becoming read-only */
	CHECK(sbx_tree_build(&t, &last, 1, NULL, 0, &s, &err) == 0);
	CHECK(stat("/mnt/etc/store", &st) == 0 && st.st_size == 4);
}

/* A host whose /dev/null is a regular file, as after `rm /dev/null` and a redirection. */
static void null_is_a_file(void)
{
	struct sbx_tree t = { .root = -1 };
	struct sbx_err err = { 0 };

	write_file("/mnt/null", "");
	CHECK(mount("/mnt/null", "/dev/null", NULL, MS_BIND, NULL) == 0);
	CHECK(sbx_tree_begin(&t, &err) == -ENODEV);
	CHECK(strstr(
		err.msg,
		"cannot bind /dev/null into the sandbox's /dev: it is not a character device"));
}

static void in_namespaces(void (*body)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(20);
		enter();
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_NAMESPACES) {
		print_message("no user namespaces for this user\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_identity(void **state)
{
	(void)state;
	in_namespaces(identity);
}

static void test_cover(void **state)
{
	(void)state;
	in_namespaces(cover);
}

static void test_null_is_a_file(void **state)
{
	(void)state;
	in_namespaces(null_is_a_file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_cover),
		cmocka_unit_test(test_null_is_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
