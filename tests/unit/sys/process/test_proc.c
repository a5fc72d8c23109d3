/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sys/proc: fds, ids, capabilities, namespaces. Calls that need privileges are tried as
 * root, or in a user namespace of the test's own; without either, the refusal is tested. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sys/process/proc.h"
#include "sys/process/proc_tree.h"
#include "sys/process/userns.h"
#include "sys/seccomp/landlock.h"
#include "tests/unit/scratch.h"

/* In children: a condition that fails becomes the exit status. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ % 200 + 1);                                                 \
	} while (0)

static void reap_ok(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("child: status %#x (exit status - 1 is the line modulo 200)", status);
}

static void test_memfd(void **state)
{
	char buf[16];
	int fd = sbx_memfd_new("test", "hello", 5);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(read(fd, buf, sizeof(buf)), 5);
	assert_memory_equal(buf, "hello", 5);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(pwrite(fd, "x", 1, 5), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	close(fd);
	fd = sbx_memfd_new("empty", NULL, 0);
	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	close(fd);
}

static void test_memfd_read(void **state)
{
	SBX_AUTO_CLOSE int fd = sbx_memfd_new("test", "hello", 5);
	SBX_AUTO_CLOSE int empty = sbx_memfd_new("empty", NULL, 0);
	char buf[16];
	size_t n = 9;

	(void)state;
	assert_int_equal(sbx_memfd_size(fd, 4, &n), -EFBIG);
	assert_int_equal(n, 9);
	assert_int_equal(sbx_memfd_size(fd, 5, &n), 0);
	assert_int_equal(n, 5);
	for (int again = 0; again < 2; again++) {
		memset(buf, 0, sizeof(buf));
		assert_int_equal(sbx_memfd_read(fd, buf, 5), 0);
		assert_string_equal(buf, "hello");
	}
	assert_int_equal(sbx_memfd_read(fd, buf, 6), -EIO);
	assert_int_equal(sbx_memfd_size(empty, 0, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(sbx_memfd_size(-1, 5, &n), -EBADF);
	assert_int_equal(sbx_memfd_read(-1, buf, 1), -EBADF);
}

static void test_memfd_load(void **state)
{
	SBX_AUTO_CLOSE int fd = sbx_memfd_new("test", "hello", 5);
	SBX_AUTO_CLOSE int empty = sbx_memfd_new("empty", NULL, 0);
	void *p = NULL;
	size_t n = 9;

	(void)state;
	assert_int_equal(sbx_memfd_load(fd, 4, &p, &n), -EFBIG);
	assert_int_equal(sbx_memfd_load(-1, 4, &p, &n), -EBADF);
	assert_null(p);
	assert_int_equal(n, 9);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(sbx_memfd_load(fd, 5, &p, &n), 0);
		assert_int_equal(n, 5);
		assert_string_equal(p, "hello");
		free(p);
	}
	assert_int_equal(sbx_memfd_load(empty, 0, &p, &n), 0);
	assert_int_equal(n, 0);
	assert_string_equal(p, "");
	free(p);
}

static void test_memfd_sealed(void **state)
{
	static const struct {
		int seals;
		bool sealed;
	} rows[] = {
		{ 0, false },
		{ F_SEAL_SHRINK | F_SEAL_GROW, false },
		{ F_SEAL_WRITE, false },
		{ F_SEAL_SHRINK | F_SEAL_WRITE, true },
	};
	SBX_AUTO_CLOSE int new = sbx_memfd_new("test", "hello", 5);
	SBX_AUTO_CLOSE int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(sbx_memfd_is_sealed(new));
	assert_true(file >= 0);
	assert_false(sbx_memfd_is_sealed(file));
	assert_false(sbx_memfd_is_sealed(-1));
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++) {
		SBX_AUTO_CLOSE int fd = memfd_create("m", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		assert_int_equal(fcntl(fd, F_ADD_SEALS, rows[i].seals), 0);
		assert_int_equal(sbx_memfd_is_sealed(fd), rows[i].sealed);
	}
}

static int numbered_memfd(char c)
{
	return sbx_memfd_new("n", &c, 1);
}

static char content(int fd)
{
	char c = 0;

	return pread(fd, &c, 1, 0) == 1 ? c : '-';
}

/* Open fds by number, as the kernel lists them. */
static unsigned int count_fds(int max)
{
	unsigned int n = 0;

	for (int fd = 0; fd < max; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Targets that are sources of others (a swap, a cycle), one that stays, a gap, and stdio closed. */
static void test_arrange_fds(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		int fds[5], numbers[5];

		for (int i = 0; i < 5; i++) {
			int fd = numbered_memfd((char)('a' + i));

			CHECK(dup3(fd, 10 + i, O_CLOEXEC) == 10 + i);
			close(fd);
			fds[i] = 10 + i;
		}
		numbers[0] = 11, numbers[1] = 12, numbers[2] = 10, numbers[3] = 13, numbers[4] = 20;
		CHECK(sbx_proc_arrange_fds(fds, numbers, 5) == 0);
		CHECK(content(11) == 'a' && content(12) == 'b' && content(10) == 'c');
		CHECK(content(13) == 'd' && content(20) == 'e');
		for (int i = 0; i < 5; i++)
			CHECK(fcntl(numbers[i], F_GETFD) == 0);
		CHECK(count_fds(256) == 5);
		_exit(0);
	}
	reap_ok(pid);
}

static void test_arrange_fds_edges(void **state)
{
	const int twice[] = { 5, 5 }, zero[] = { 0, 0 }, negative[] = { -1 }, missing[] = { 999 };
	const int one[] = { 1 };
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		CHECK(sbx_proc_arrange_fds(zero, twice, 2) == -EINVAL);
		CHECK(sbx_proc_arrange_fds(zero, negative, 1) == -EINVAL);
		CHECK(sbx_proc_arrange_fds(zero, zero, SBX_PROC_FDS_MAX + 1) == -EINVAL);
		CHECK(sbx_proc_arrange_fds(missing, zero, 1) == -EBADF);
		CHECK(sbx_proc_arrange_fds(one, one, 1) == 0);
		CHECK(count_fds(256) == 1 && fcntl(1, F_GETFD) == 0);
		CHECK(sbx_proc_arrange_fds(NULL, NULL, 0) == 0);
		CHECK(count_fds(256) == 0);
		_exit(0);
	}
	reap_ok(pid);
}

static void test_end(void **state)
{
	pid_t none = 0, failed = -EAGAIN, pid = fork(), was = pid;

	(void)state;
	if (pid == 0) {
		pause();
		_exit(1);
	}
	assert_true(pid > 0);
	sbx_proc_end(&pid);
	assert_int_equal(pid, 0);
	assert_int_equal(waitpid(was, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
	sbx_proc_end(&none); /* a signal to 0 would be for our group, and so for us */
	sbx_proc_end(&failed);
	assert_int_equal(failed, 0);
}

static void test_exe_dir(void **state)
{
	char dir[4096], small[8], exe[4200];
	struct stat a, b;

	(void)state;
	assert_int_equal(sbx_proc_exe_dir(dir, sizeof(dir)), 0);
	snprintf(exe, sizeof(exe), "%s/%s", dir, program_invocation_short_name);
	assert_int_equal(stat(exe, &a), 0);
	assert_int_equal(stat("/proc/self/exe", &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(sbx_proc_exe_dir(small, sizeof(small)), -ENAMETOOLONG);
}

static void test_random_id(void **state)
{
	char a[13], b[13];

	(void)state;
	sbx_random_id(a);
	sbx_random_id(b);
	assert_int_equal(strspn(a, "0123456789abcdef"), 12);
	assert_int_equal(strlen(a), 12);
	assert_string_not_equal(a, b);
}

static void test_clocks(void **state)
{
	uint64_t us = sbx_clock_monotonic_us(), ms = sbx_clock_realtime_ms();

	(void)state;
	assert_true(ms > 1600000000000ull && ms < 10000000000000ull);
	usleep(2000);
	assert_true(sbx_clock_monotonic_us() - us >= 2000);
}

static void test_clone(void **state)
{
	struct sbx_err err = { 0 };
	struct pollfd p = { .events = POLLIN };
	pid_t parent = getpid(), pid;

	(void)state;
	pid = sbx_proc_clone(0, &p.fd, &err);
	if (pid == 0) {
		CHECK(getppid() == parent && getpid() != parent);
		free(malloc(100));
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(fcntl(p.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(poll(&p, 1, 10000), 1);
	close(p.fd);
	reap_ok(pid);
	pid = sbx_proc_clone(0, NULL, NULL);
	if (pid == 0)
		_exit(0);
	sbx_proc_reap(&pid);
	assert_int_equal(pid, 0);
	sbx_proc_reap(&pid);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* A sibling: its parent is ours, and learns of its end. */
static void test_clone_parent(void **state)
{
	int fds[2], status;
	pid_t helper, sibling = 0;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	helper = fork();
	if (helper == 0) {
		pid_t pid = sbx_proc_clone(CLONE_PARENT, NULL, NULL);

		if (pid == 0)
			_exit(7);
		CHECK(pid > 0 && write(fds[1], &pid, sizeof(pid)) == sizeof(pid));
		_exit(0);
	}
	assert_int_equal(read(fds[0], &sibling, sizeof(sibling)), sizeof(sibling));
	reap_ok(helper);
	assert_int_equal(waitpid(sibling, &status, 0), sibling);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	close(fds[0]);
	close(fds[1]);
}

static bool map_is(const char *path, unsigned int id)
{
	unsigned int inside = ~0u, outside = ~0u, n = 0;
	FILE *f = fopen(path, "re");
	int r = f ? fscanf(f, "%u %u %u", &inside, &outside, &n) : 0;

	if (f)
		fclose(f);
	return r == 3 && inside == id && outside == id && n == 1;
}

/* All capabilities to begin with; then few; then none, also in the bounding set. */
static void caps_in_namespace(void)
{
	const uint64_t two = 1ull << CAP_NET_RAW | 1ull << CAP_SETPCAP;
	uint64_t mask = 0;
	struct sbx_caps c;

	CHECK(sbx_caps_read(&c) == 0);
	CHECK((c.effective & two) == two && (c.bounding & two) == two);
	CHECK(sbx_caps_effective(&mask) == 0 && mask == c.effective);
	CHECK(sbx_caps_use(false) == 0);
	CHECK(sbx_caps_effective(&mask) == 0 && mask == 0);
	CHECK(sbx_caps_permitted(&mask) == 0 && mask == c.permitted);
	CHECK(sbx_caps_use(true) == 0);
	CHECK(sbx_caps_keep(two) == 0);
	CHECK(sbx_caps_read(&c) == 0);
	CHECK(c.effective == two && c.permitted == two && c.bounding == two);
	CHECK(c.inheritable == 0 && c.ambient == 0);
	CHECK(prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 0);
	CHECK(sbx_caps_keep(two | 1ull << CAP_SYS_ADMIN) == -EPERM);
	CHECK(sbx_caps_keep(0) == 0);
	CHECK(sbx_caps_read(&c) == 0);
	CHECK(!(c.effective | c.permitted | c.inheritable | c.bounding | c.ambient));
	CHECK(sbx_caps_keep(1ull << CAP_NET_RAW) == -EPERM);
}

static void test_userns(void **state)
{
	struct sbx_err err = { 0 };
	uid_t uid = geteuid();
	gid_t gid = getegid();
	pid_t pid = sbx_proc_clone(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID, NULL, &err);

	(void)state;
	if (pid == 0) {
		CHECK(geteuid() != uid || uid == 65534);
		CHECK(sbx_userns_map_self(uid, gid, NULL) == 0);
		CHECK(map_is("/proc/self/uid_map", uid) && map_is("/proc/self/gid_map", gid));
		CHECK(geteuid() == uid && getegid() == gid && getpid() == 1);
		CHECK(setgroups(0, NULL) == -1);
		/* A second time is refused, and says what was tried. */
		CHECK(sbx_userns_map_self(uid, gid, &err) == -EPERM);
		CHECK(strstr(err.msg, "/proc/self/"));
		caps_in_namespace();
		_exit(0);
	}
	if (pid < 0) { /* not here: then with a cause and a remedy */
		assert_true(strlen(err.msg) > 40);
		return;
	}
	reap_ok(pid);
}

/* The kernel's refusal, for real: no namespaces are left in a namespace of the test's own. */
static void test_userns_refused(void **state)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	pid_t pid = sbx_proc_clone(CLONE_NEWUSER, NULL, NULL);

	(void)state;
	if (pid == 0) {
		struct sbx_err err = { 0 };
		int fd;

		CHECK(sbx_userns_map_self(uid, gid, NULL) == 0);
		fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			_exit(0); /* mounted read-only: nothing to see */
		CHECK(write(fd, "0", 1) == 1);
		CHECK(sbx_proc_clone(CLONE_NEWUSER, NULL, &err) == -ENOSPC);
		CHECK(strstr(err.msg, "max_user_namespaces is 0"));
		_exit(0);
	}
	if (pid > 0)
		reap_ok(pid);
}

static void test_userns_explain(void **state)
{
	static const struct {
		int error;
		struct sbx_userns_facts facts;
		const char *cause, *remedy;
	} cases[] = {
		{ ENOSPC,
		  { 0, -1, -1, NULL },
		  "max_user_namespaces is 0",
		  "sysctl -w user.max_user_namespaces=" },
		{ ENOSPC, { 5, -1, -1, NULL }, "max_user_namespaces is 5", "raise" },
		{ ENOSPC,
		  { 5, -1, -1, "net" },
		  "max_net_namespaces is 0",
		  "sysctl -w user.max_net_namespaces=" },
		{ EPERM,
		  { 5, 0, -1, NULL },
		  "unprivileged_userns_clone is 0",
		  "unprivileged_userns_clone=1" },
		{ EPERM, { 5, 1, 1, NULL }, "AppArmor", "restrict_unprivileged_userns=0" },
		{ EACCES, { 5, -1, 1, NULL }, "AppArmor", "userns," },
		{ EPERM, { 5, 1, 0, NULL }, "container", "seccomp=unconfined" },
		{ ENOSYS, { 5, -1, -1, NULL }, "container", "seccomp=unconfined" },
		{ EINVAL, { -1, -1, -1, NULL }, "CONFIG_USER_NS", "another kernel" },
		{ ENOMEM, { 5, 1, 0, NULL }, "Cannot allocate memory", "" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		char buf[512];

		sbx_userns_explain(cases[i].error, &cases[i].facts, buf, sizeof(buf));
		assert_non_null(strstr(buf, cases[i].cause));
		assert_non_null(strstr(buf, cases[i].remedy));
		assert_null(strchr(buf, '\n'));
	}
}

static void test_ids_drop(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		uid_t uid = geteuid() ? geteuid() : 12345;
		gid_t gid = geteuid() ? getegid() : 54321;
		bool root = geteuid() == 0;
		struct sbx_caps c;
		gid_t groups[8];

		if (!root)
			CHECK(sbx_ids_drop(uid + 1, gid) == -EPERM);
		CHECK(sbx_ids_drop(uid, gid) == 0);
		CHECK(getuid() == uid && geteuid() == uid && getgid() == gid && getegid() == gid);
		CHECK(seteuid(0) == -1 && setuid(0) == -1 && setgid(0) == -1);
		if (root) {
			CHECK(getgroups(8, groups) == 0);
			CHECK(sbx_caps_read(&c) == 0 && c.effective == 0 && c.permitted == 0);
		}
		CHECK(sbx_ids_drop(uid, gid) == 0); /* already there */
		_exit(0);
	}
	reap_ok(pid);
}

/* Capabilities that survive the change of uid would make it revocable: they go. As root only. */
static void test_ids_drop_surviving_caps(void **state)
{
	uint64_t permitted = ~0ull;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		if (geteuid() != 0)
			_exit(0);
		CHECK(prctl(PR_SET_SECUREBITS, 1 << 2, 0, 0, 0) == 0); /* SECBIT_NO_SETUID_FIXUP */
		CHECK(sbx_ids_drop(12345, 54321) == 0);
		CHECK(sbx_caps_permitted(&permitted) == 0 && permitted == 0);
		CHECK(setresuid((uid_t)-1, 0, (uid_t)-1) < 0 && errno == EPERM);
		_exit(0);
	}
	reap_ok(pid);
}

/* Inside the scope a signal arrives, also one to the whole group; the parent, of the same group,
 * does not get it. */
static void test_signal_scope(void **state)
{
	int status, root;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		root = open("/", O_PATH | O_CLOEXEC);
		if (sbx_landlock_abi() < 2)
			CHECK(sbx_landlock_confine(root) == -EOPNOTSUPP);
		if (sbx_landlock_abi() < 6)
			_exit(0);
		CHECK(kill(getppid(), 0) == 0);
		CHECK(sbx_landlock_confine(root) == 0);
		CHECK(kill(getppid(), 0) < 0 && errno == EPERM);
		pid = fork();
		if (pid == 0) {
			pause();
			_exit(0);
		}
		CHECK(kill(pid, SIGTERM) == 0 && waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
		signal(SIGWINCH, SIG_IGN);
		CHECK(kill(0, SIGWINCH) == 0);
		_exit(0);
	}
	reap_ok(pid);
}

/* Names are made, moved and removed below the root that was given, and nowhere else; what is there
 * can be written. */
static void test_directory_scope(void **state)
{
	char dir[] = "/tmp/sbx-test-XXXXXX";
	pid_t pid;
	int top, fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(top >= 0 && mkdirat(top, "in", 0700) == 0 &&
		    mkdirat(top, "in/sub", 0700) == 0 && mkdirat(top, "out", 0700) == 0);
	assert_true((fd = openat(top, "out/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) >= 0 &&
		    close(fd) == 0);
	pid = fork();
	if (pid == 0) {
		if (sbx_landlock_abi() < 2)
			_exit(0);
		CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		CHECK(sbx_landlock_confine(openat(top, "in", O_PATH | O_CLOEXEC)) == 0);
		CHECK(openat(top, "out/new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0 &&
		      errno == EACCES);
		CHECK(mkdirat(top, "out/new", 0700) < 0 && errno == EACCES);
		CHECK(unlinkat(top, "out/file", 0) < 0 && errno == EACCES);
		CHECK(renameat(top, "out/file", top, "out/moved") < 0 && errno == EACCES);
		CHECK(renameat(top, "out/file", top, "in/moved") < 0);
		CHECK(openat(top, "out/file", O_WRONLY | O_CLOEXEC) >= 0);
		CHECK(openat(top, "in/new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0);
		CHECK(renameat(top, "in/new", top, "in/sub/moved") == 0);
		CHECK(linkat(top, "in/sub/moved", top, "in/again", 0) == 0);
		CHECK(unlinkat(top, "in/again", 0) == 0 && mkfifoat(top, "in/fifo", 0600) == 0);
		_exit(0);
	}
	reap_ok(pid);
	close(top);
	scratch_remove(dir);
}

/* A child that does what @how says, a letter a step. */
static int output_of(const char *how, uint64_t timeout_ms, char *buf, size_t n_buf, size_t *ret_n,
		     int *ret_status)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	pid_t pid;

	assert_int_equal(sbx_fd_pipe(&ours, &theirs), 0);
	pid = fork();
	assert_true(pid >= 0);
	for (; pid == 0 && *how; how++) {
		if (*how == 'h')
			CHECK(write(theirs, "hello", 5) == 5);
		else if (*how == 'c')
			close(theirs);
		else
			pause();
	}
	if (pid == 0)
		_exit(7);
	theirs = sbx_fd_close(theirs);
	return sbx_proc_output(pid, ours, sbx_clock_monotonic_us() + timeout_ms * 1000, buf, n_buf,
			       ret_n, ret_status);
}

static void test_output(void **state)
{
	char buf[16];
	int status = 0;
	size_t n = 0;

	(void)state;
	assert_int_equal(output_of("hh", 10000, buf, 11, &n, &status), 0);
	assert_int_equal(n, 10);
	assert_memory_equal(buf, "hellohello", n);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_int_equal(output_of("", 10000, buf, 1, &n, &status), 0);
	assert_int_equal(n, 0);
	/* one byte too many; a child that holds the pipe; one that closed it */
	assert_int_equal(output_of("hhp", 10000, buf, 10, &n, &status), -EFBIG);
	assert_int_equal(output_of("hp", 50, buf, 16, &n, &status), -ETIMEDOUT);
	assert_int_equal(output_of("hcp", 50, buf, 16, &n, &status), -ETIMEDOUT);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* all are reaped */
	assert_int_equal(errno, ECHILD);
}

/* A process, its child and its grandchild. */
static void test_tree(void **state)
{
	struct sbx_proc_tree before, after, gone;
	int fds[2];
	char c;
	pid_t pid;

	(void)state;
	assert_int_equal(sbx_proc_tree_read(getpid(), &before), 0);
	assert_true(before.pids >= 1 && before.memory_bytes > 100000 && before.cpu_us >= 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		CHECK(setpgid(0, 0) == 0);
		if (fork() == 0)
			CHECK(write(fds[1], "x", 1) == 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(sbx_proc_tree_read(getpid(), &after), 0);
	assert_int_equal(after.pids, before.pids + 2);
	assert_true(after.memory_bytes > before.memory_bytes);
	assert_int_equal(sbx_proc_tree_read(pid, &after), 0);
	assert_int_equal(after.pids, 2);
	assert_int_equal(sbx_proc_tree_read(INT32_MAX, &gone), -ENOENT);
	kill(-pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_memfd),
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_memfd_read),
		cmocka_unit_test(test_memfd_load),
		cmocka_unit_test(test_memfd_sealed),
		cmocka_unit_test(test_arrange_fds),
		cmocka_unit_test(test_arrange_fds_edges),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_exe_dir),
		cmocka_unit_test(test_random_id),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_clone),
		cmocka_unit_test(test_clone_parent),
		cmocka_unit_test(test_userns),
		cmocka_unit_test(test_userns_refused),
		cmocka_unit_test(test_userns_explain),
		cmocka_unit_test(test_ids_drop),
		cmocka_unit_test(test_ids_drop_surviving_caps),
		cmocka_unit_test(test_signal_scope),
		cmocka_unit_test(test_directory_scope),
	};

	return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
