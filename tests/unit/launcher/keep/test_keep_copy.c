/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An overlay's upper layer, as the command may have left it, to plain files. Directories stand in
 * for the layers; the marks are those the kernel makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/grants/keep_target.h"
#include "launcher/keep/keep_copy.h"
#include "tests/unit/scratch.h"

struct layers {
	char path[64];
	int upper, lower, out;
	struct sbx_keep_bounds bounds;
	struct sbx_keep_counts counts;
	struct sbx_err err;
};

static int make_dir(int at, const char *name)
{
	int fd;

	assert_int_equal(mkdirat(at, name, 0755), 0);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int setup(void **state)
{
	struct layers *l = calloc(1, sizeof(*l));
	SBX_AUTO_CLOSE int base = -1;

	umask(022);
	strcpy(l->path, "/tmp/sbx-keep-XXXXXX");
	if (!mkdtemp(l->path))
		return -1;
	base = open(l->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	l->upper = make_dir(base, "upper");
	l->lower = make_dir(base, "lower");
	l->out = make_dir(base, "out");
	l->bounds = (struct sbx_keep_bounds){ 1 << 20, 1000 };
	*state = l;
	return 0;
}

/* As a user to whom the file's mode gives no access. */
static int setup_user(void **state)
{
	const uid_t nobody = 65534;
	struct layers *l;

	if (setup(state) < 0)
		return -1;
	l = *state;
	if (geteuid() != 0)
		return 0;
	if (chown(l->path, nobody, nobody) < 0 || fchown(l->upper, nobody, nobody) < 0 ||
	    fchown(l->lower, nobody, nobody) < 0 || fchown(l->out, nobody, nobody) < 0)
		return -1;
	return seteuid(nobody);
}

static int teardown(void **state)
{
	struct layers *l = *state;

	if (getuid() == 0 && seteuid(0) < 0)
		return -1;
	close(l->upper);
	close(l->lower);
	close(l->out);
	scratch_remove(l->path);
	free(l);
	return 0;
}

static void put(int at, const char *name, const char *text, mode_t mode)
{
	SBX_AUTO_CLOSE int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
}

static void whiteout(int at, const char *name)
{
	assert_int_equal(mknodat(at, name, S_IFCHR, 0), 0); /* everybody may since Linux 5.8 */
}

static int copy(struct layers *l)
{
	memset(&l->err, 0, sizeof(l->err));
	return sbx_keep_copy(l->upper, l->lower, l->out, &l->bounds, &l->counts, &l->err);
}

static void must(struct layers *l)
{
	int r = copy(l);

	if (r < 0)
		fail_msg("%d: %s", r, l->err.msg);
}

/* A failure says what, and leaves no list. */
static void refused(struct layers *l, int error, const char *part)
{
	assert_int_equal(copy(l), error);
	if (!strstr(l->err.msg, part))
		fail_msg("'%s' was not said, but: %s", part, l->err.msg);
	assert_int_equal(faccessat(l->out, "removed", F_OK, 0), -1);
}

static struct stat out_stat(const struct layers *l, const char *name)
{
	struct stat st = { 0 };
	char path[512];

	snprintf(path, sizeof(path), "files/%s", name);
	if (fstatat(l->out, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fail_msg("%s: %s", name, strerror(errno));
	return st;
}

static void expect(const struct layers *l, const char *path, const char *text)
{
	SBX_AUTO_CLOSE int fd = openat(l->out, path, O_RDONLY | O_CLOEXEC);
	char buf[512] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, buf, sizeof(buf)), strlen(text));
	assert_string_equal(buf, text);
}

/* The list holds each of the @n names, and nothing else. */
static void expect_removed(const struct layers *l, const char *const *names, size_t n)
{
	SBX_AUTO_CLOSE int fd = openat(l->out, "removed", O_RDONLY | O_CLOEXEC);
	char buf[4096];
	ssize_t size = read(fd, buf, sizeof(buf));
	size_t sum = 0;

	assert_true(fd >= 0 && size >= 0);
	for (size_t i = 0; i < n; i++) {
		bool found = false;

		for (const char *s = buf; s < buf + size; s += strlen(s) + 1)
			found = found || strcmp(s, names[i]) == 0;
		if (!found)
			fail_msg("%s is not listed", names[i]);
		sum += strlen(names[i]) + 1;
	}
	assert_int_equal(size, sum);
	assert_int_equal(l->counts.removed, n);
}

static void test_empty(void **state)
{
	struct layers *l = *state;

	must(l);
	expect_removed(l, NULL, 0);
	assert_int_equal(l->counts.entries, 0);
	assert_true(S_ISDIR(out_stat(l, "").st_mode));
	/* A second time there is something. */
	assert_int_equal(copy(l), -ENOTEMPTY);
}

static void test_files(void **state)
{
	struct layers *l = *state;
	const struct timespec times[2] = { { 1000, 0 }, { 2000, 5 } };
	SBX_AUTO_CLOSE int d = make_dir(l->upper, "d");
	char target[64];

	put(l->upper, "plain", "content", 0644);
	put(l->upper, "setuid", "x", 06755);
	put(l->upper, "open", "x", 0666);
	put(l->upper, "closed", "unread", 0000);
	put(d, "below", "deep", 0600);
	assert_int_equal(symlinkat("/etc/shadow", d, "link"), 0);
	assert_int_equal(symlinkat("../../..", l->upper, "up"), 0);
	assert_int_equal(utimensat(l->upper, "plain", times, 0), 0);
	assert_int_equal(utimensat(d, "link", times, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(fchmod(d, 03555), 0);
	must(l);
	expect(l, "files/plain", "content");
	expect(l, "files/d/below", "deep");
	assert_int_equal(out_stat(l, "plain").st_mode, S_IFREG | 0644);
	assert_int_equal(out_stat(l, "plain").st_mtim.tv_sec, 2000);
	assert_int_equal(out_stat(l, "setuid").st_mode, S_IFREG | 0755);
	assert_int_equal(out_stat(l, "open").st_mode, S_IFREG | 0644);
	assert_int_equal(out_stat(l, "closed").st_mode, S_IFREG);
	assert_int_equal(out_stat(l, "closed").st_size, 6);
	assert_int_equal(out_stat(l, "d").st_mode, S_IFDIR | 0755);
	assert_true(S_ISLNK(out_stat(l, "up").st_mode));
	assert_int_equal(readlinkat(l->out, "files/d/link", target, sizeof(target)), 11);
	assert_memory_equal(target, "/etc/shadow", 11);
	assert_int_equal(out_stat(l, "d/link").st_mtim.tv_sec, 2000);
	expect_removed(l, NULL, 0);
}

/* A directory that its owner closed is copied as well. */
static void test_closed_directory(void **state)
{
	struct layers *l = *state;
	SBX_AUTO_CLOSE int d = make_dir(l->upper, "d");

	put(d, "below", "deep", 0600);
	assert_int_equal(fchmod(d, 0), 0);
	must(l);
	expect(l, "files/d/below", "deep");
	assert_int_equal(out_stat(l, "d").st_mode, S_IFDIR | 0700);
}

static void test_removed(void **state)
{
	struct layers *l = *state;
	static const char *const names[] = { "gone",	"d/gone\nbelow", "replaced",
					     "was-dir", "was-file",	 "was-link" };
	SBX_AUTO_CLOSE int d = make_dir(l->upper, "d"), low_d = make_dir(l->lower, "d");
	SBX_AUTO_CLOSE int replaced = make_dir(l->upper, "replaced"),
			   low = make_dir(l->lower, "replaced");
	SBX_AUTO_CLOSE int was_dir = make_dir(l->lower, "was-dir"),
			   was_file = make_dir(l->upper, "was-file");

	assert_true(was_dir >= 0 && was_file >= 0);
	put(l->lower, "gone", "", 0644);
	whiteout(l->upper, "gone");
	put(low_d, "gone\nbelow", "", 0644);
	whiteout(d, "gone\nbelow");
	put(low_d, "same", "old", 0644);
	put(d, "same", "new", 0644); /* overwritten: not removed */
	put(l->upper, "was-dir", "now a file", 0644);
	put(l->lower, "was-file", "", 0644);
	put(l->lower, "was-link", "", 0644);
	assert_int_equal(symlinkat("x", l->upper, "was-link"), 0);
	put(low, "old", "", 0644);
	put(replaced, "old", "", 0644);
	if (fsetxattr(replaced, "user.overlay.opaque", "y", 1, 0) < 0) {
		assert_int_equal(errno, EOPNOTSUPP); /* a tmpfs before Linux 6.6 */
		skip();
	}
	must(l);
	expect_removed(l, names, SBX_N_ELEMENTS(names));
	expect(l, "files/d/same", "new");
	expect(l, "files/was-dir", "now a file");
	assert_int_equal(faccessat(l->out, "files/gone", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

static void test_left_out(void **state)
{
	struct layers *l = *state;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	SBX_AUTO_CLOSE int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(mkfifoat(l->upper, "fifo", 0666), 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/upper/sock", l->path);
	assert_int_equal(bind(s, (struct sockaddr *)&sa, sizeof(sa)), 0);
	put(l->upper, "file", "x", 0644);
	must(l);
	assert_int_equal(l->counts.left_out, 2);
	assert_int_equal(faccessat(l->out, "files/fifo", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(faccessat(l->out, "files/sock", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	expect(l, "files/file", "x");
}

/* Names with a meaning for sbx or for a terminal are copied like any other. */
static void test_names(void **state)
{
	struct layers *l = *state;
	char longest[256];

	memset(longest, 'n', 255);
	longest[255] = '\0';
	put(l->upper, "removed", "mine", 0644);
	put(l->upper, ".removed.part", "mine", 0644);
	put(l->upper, "files", "mine", 0644);
	put(l->upper, "\x1b[31m\xff", "mine", 0644);
	put(l->upper, longest, "mine", 0644);
	assert_int_equal(symlinkat("..", l->upper, "out"), 0);
	must(l);
	expect_removed(l, NULL, 0);
	expect(l, "files/removed", "mine");
	expect(l, "files/.removed.part", "mine");
	expect(l, "files/files", "mine");
	expect(l, "files/\x1b[31m\xff", "mine");
	assert_int_equal(out_stat(l, longest).st_size, 4);
}

static void test_error_names_are_escaped(void **state)
{
	struct layers *l = *state;

	put(l->upper, "\x1b[31m", "0123456789", 0644);
	l->bounds.bytes = 5;
	refused(l, -EFBIG, "limits.disk");
	assert_null(strchr(l->err.msg, '\x1b'));
}

static void test_hard_links(void **state)
{
	struct layers *l = *state;
	SBX_AUTO_CLOSE int d = make_dir(l->upper, "d");
	char name[32];

	put(l->upper, "first", "0123456789", 0644);
	for (int i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(linkat(l->upper, "first", d, name, 0), 0);
	}
	for (int i = 0; i < 300; i++) { /* more files with two names than the table begins with */
		snprintf(name, sizeof(name), "a%d", i);
		put(l->upper, name, "", 0644);
		assert_int_equal(linkat(l->upper, name, d, name, 0), 0);
	}
	l->bounds.bytes = 10; /* once, not 401 times */
	l->bounds.entries = 2000;
	must(l);
	assert_int_equal(out_stat(l, "first").st_nlink, 401);
	assert_int_equal(out_stat(l, "first").st_ino, out_stat(l, "d/399").st_ino);
	assert_int_equal(out_stat(l, "a7").st_ino, out_stat(l, "d/a7").st_ino);
	assert_int_equal(out_stat(l, "a7").st_nlink, 2);
}

/* --- somebody else is at work meanwhile --- */

/* Hooks, each called once: when a directory of files/ is whole, and before a mode is changed. */
static void (*when_whole)(const struct layers *l, const char *name);
static void (*before_chmod)(const struct layers *l);
static const struct layers *meddled;
static bool done;

int __real_futimens(int fd, const struct timespec times[2]);
int __real_chmod(const char *path, mode_t mode);
int __real_fchmodat(int dir, const char *path, mode_t mode, int flags);
int __wrap_futimens(int fd, const struct timespec times[2]);
int __wrap_chmod(const char *path, mode_t mode);
int __wrap_fchmodat(int dir, const char *path, mode_t mode, int flags);

int __wrap_futimens(int fd, const struct timespec times[2])
{
	int r = __real_futimens(fd, times);
	struct stat st, named;

	assert_int_equal(fstat(fd, &st), 0);
	for (const char *name = "a"; when_whole && !done && *name <= 'b';
	     name = *name == 'a' ? "b" : "c") {
		char path[] = "files/?";

		path[6] = *name;
		if (fstatat(meddled->out, path, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		    named.st_ino != st.st_ino)
			continue;
		done = true;
		when_whole(meddled, path);
	}
	return r;
}

static void meddle_before_chmod(void)
{
	if (before_chmod && !done) {
		done = true;
		before_chmod(meddled);
	}
}

int __wrap_chmod(const char *path, mode_t mode)
{
	meddle_before_chmod();
	return __real_chmod(path, mode);
}

int __wrap_fchmodat(int dir, const char *path, mode_t mode, int flags)
{
	meddle_before_chmod();
	return __real_fchmodat(dir, path, mode, flags);
}

static int copy_meddled(struct layers *l)
{
	int r;

	meddled = l;
	done = false;
	r = copy(l);
	when_whole = NULL;
	before_chmod = NULL;
	assert_true(done);
	return r;
}

/* A file outside of the layers: the copy must neither link it nor change its mode. */
static void put_victim(const struct layers *l)
{
	SBX_AUTO_CLOSE int victim = -1;

	assert_int_equal(mkdirat(l->upper, "../victim", 0755), 0);
	victim = openat(l->upper, "../victim", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(victim >= 0);
	put(victim, "same", "the victim's", 0444);
}

static void expect_victim(const struct layers *l, nlink_t links)
{
	struct stat st;

	assert_int_equal(fstatat(l->upper, "../victim", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(fstatat(l->upper, "../victim/same", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0444);
	assert_int_equal(st.st_nlink, links);
	expect(l, "../victim/same", "the victim's");
}

static void dir_to_victim(const struct layers *l, const char *name)
{
	assert_int_equal(renameat(l->out, name, l->out, "moved"), 0);
	assert_int_equal(symlinkat("../../victim", l->out, name), 0);
}

static void dir_to_itself(const struct layers *l, const char *name)
{
	assert_int_equal(renameat(l->out, name, l->out, "files/moved"), 0);
	assert_int_equal(symlinkat("moved", l->out, name), 0);
}

static void file_to_victim(const struct layers *l, const char *name)
{
	char path[32];

	snprintf(path, sizeof(path), "%s/same", name);
	assert_int_equal(renameat(l->out, path, l->out, "moved"), 0);
	assert_int_equal(linkat(l->out, "../victim/same", l->out, path, 0), 0);
}

/* One file has a name in each of two directories; the file system chooses which comes first. The
 * name that was not meddled with has its own copy. The victim has at most @links links. */
static void link_meddled(struct layers *l, void (*how)(const struct layers *l, const char *name),
			 nlink_t links)
{
	SBX_AUTO_CLOSE int a = make_dir(l->upper, "a"), b = make_dir(l->upper, "b");
	struct stat st, victim;
	unsigned int n = 0;

	put(a, "same", "the command's", 0644);
	assert_int_equal(linkat(a, "same", b, "same", 0), 0);
	put_victim(l);
	when_whole = how;
	if (copy_meddled(l) < 0)
		fail_msg("%s", l->err.msg);
	expect_victim(l, links);
	assert_int_equal(fstatat(l->out, "../victim/same", &victim, 0), 0);
	for (const char *name = "a"; *name <= 'b'; name = *name == 'a' ? "b" : "c") {
		char path[] = "files/?/same";

		path[6] = *name;
		st = out_stat(l, path + 6);
		if (st.st_ino == victim.st_ino || st.st_nlink != 1)
			continue;
		expect(l, path, "the command's");
		n++;
	}
	assert_true(n > 0);
}

static void test_dir_led_to_victim(void **state)
{
	link_meddled(*state, dir_to_victim, 1);
}

static void test_dir_behind_symlink(void **state)
{
	link_meddled(*state, dir_to_itself, 1);
}

static void test_copy_is_the_victim(void **state)
{
	link_meddled(*state, file_to_victim, 2); /* one is the meddler's own */
}

static void closed_dir_to_victim(const struct layers *l)
{
	assert_int_equal(renameat(l->upper, "closed", l->upper, "moved"), 0);
	assert_int_equal(symlinkat("../victim", l->upper, "closed"), 0);
}

static void closed_file_to_victim(const struct layers *l)
{
	assert_int_equal(renameat(l->upper, "closed", l->upper, "moved"), 0);
	assert_int_equal(symlinkat("../victim/same", l->upper, "closed"), 0);
}

/* The directory that was opened is copied. The rest of the copy may fail at a name that is there
 * twice. */
static void test_closed_dir_led_to_victim(void **state)
{
	struct layers *l = *state;
	SBX_AUTO_CLOSE int d = make_dir(l->upper, "closed");

	put(d, "below", "deep", 0600);
	assert_int_equal(fchmod(d, 0), 0);
	put_victim(l);
	before_chmod = closed_dir_to_victim;
	copy_meddled(l);
	expect_victim(l, 1);
	expect(l, "files/closed/below", "deep");
}

static void test_closed_file_led_to_victim(void **state)
{
	struct layers *l = *state;

	put(l->upper, "closed", "unread", 0);
	put_victim(l);
	before_chmod = closed_file_to_victim;
	copy_meddled(l);
	expect_victim(l, 1);
	assert_int_equal(out_stat(l, "closed").st_size, 6);
}

static void test_sparse(void **state)
{
	struct layers *l = *state;
	SBX_AUTO_CLOSE int fd = openat(l->upper, "huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	const off_t size = (off_t)1 << 40;

	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(pwrite(fd, "middle", 6, size / 2), 6);
	must(l);
	assert_int_equal(out_stat(l, "huge").st_size, size);
	assert_true(out_stat(l, "huge").st_blocks < 2048);
	assert_true(l->counts.bytes <= 65536);
}

static void test_bounds(void **state)
{
	struct layers *l = *state;

	put(l->upper, "ten", "0123456789", 0644);
	put(l->upper, "five", "01234", 0644);
	l->bounds = (struct sbx_keep_bounds){ 15, 2 };
	must(l);
	assert_int_equal(l->counts.bytes, 15);
	assert_int_equal(l->counts.entries, 2);
}

static void test_too_many_bytes(void **state)
{
	struct layers *l = *state;

	put(l->upper, "ten", "0123456789", 0644);
	put(l->upper, "six", "012345", 0644);
	l->bounds = (struct sbx_keep_bounds){ 15, 2 };
	refused(l, -EFBIG, "limits.disk");
}

static void test_too_many_files(void **state)
{
	struct layers *l = *state;

	put(l->upper, "ten", "0123456789", 0644);
	put(l->upper, "five", "01234", 0644);
	l->bounds = (struct sbx_keep_bounds){ 15, 1 };
	refused(l, -EFBIG, "more files");
}

static void nest(const struct layers *l, int depth)
{
	SBX_AUTO_CLOSE int at = fcntl(l->upper, F_DUPFD_CLOEXEC, 0);

	for (int i = 0; i < depth; i++) {
		int next = make_dir(at, "a");

		close(at);
		at = next;
	}
	put(at, "last", "x", 0644);
}

/* The workspace itself is the first. */
static void test_depth(void **state)
{
	struct layers *l = *state;

	nest(l, SBX_KEEP_DEPTH_MAX - 1);
	must(l);
	assert_int_equal(l->counts.entries, SBX_KEEP_DEPTH_MAX);
}

static void test_too_deep(void **state)
{
	struct layers *l = *state;

	nest(l, SBX_KEEP_DEPTH_MAX);
	refused(l, -ELOOP, "in each other");
}

#define TEST(f)	     cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TEST_USER(f) cmocka_unit_test_setup_teardown(f, setup_user, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_empty),	   TEST_USER(test_files),
		TEST_USER(test_closed_directory), TEST(test_removed),
		TEST(test_left_out),	   TEST(test_names),
		TEST(test_error_names_are_escaped), TEST(test_hard_links),
		TEST(test_sparse),	   TEST(test_bounds),
		TEST(test_too_many_bytes), TEST(test_too_many_files),
		TEST(test_depth),	   TEST(test_too_deep),
		TEST(test_dir_led_to_victim), TEST(test_dir_behind_symlink),
		TEST(test_copy_is_the_victim),
		TEST_USER(test_closed_dir_led_to_victim), TEST_USER(test_closed_file_led_to_victim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
