/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each exec below a filter is told with its path, and goes on; what cannot be
 * read is told without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/seccomp/seccomp_execs.h"

static struct sbx_exec_seen seen;

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #x);                          \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static int watch(void)
{
	int fd;

	alarm(20);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	fd = sbx_seccomp_watch_execs();
	CHECK(fd >= 0);
	CHECK(sbx_seccomp_watch_execs() == -EBUSY);
	CHECK(sbx_seccomp_exec_next(fd, &seen) == -EAGAIN);
	return fd;
}

/* A child that executes @path. */
static pid_t executes(const char *path)
{
	static char *argv[] = { NULL, NULL };
	static char name[] = "x";
	pid_t pid = fork();

	argv[0] = name;
	if (pid != 0)
		return pid;
	execv(path, argv);
	_exit(errno == ENOENT ? 3 : errno == EFAULT ? 4 : errno == ENOSYS ? 5 : 6);
}

static int status_of(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK(poll(&p, 1, 10000) == 1);
}

static int goes_on(int fd, const char *path, const char *told)
{
	pid_t pid = executes(path);

	wait_for(fd);
	CHECK(sbx_seccomp_exec_next(fd, &seen) == 0);
	CHECK(seen.pid == pid && strcmp(seen.path, told) == 0);
	CHECK(sbx_seccomp_exec_continue(fd, &seen) == 0);
	return status_of(pid);
}

/* A string at the very end of a page, behind which nothing is mapped. */
static const char *at_the_end(const char *text, bool ended)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = strlen(text) + ended;
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED && munmap(p + page, page) == 0);
	memcpy(p + page - n, text, n);
	return p + page - n;
}

static void paths(void)
{
	static char longest[PATH_MAX + 1];
	SBX_AUTO_CLOSE int fd = watch();

	CHECK(goes_on(fd, "/bin/true", "/bin/true") == 0);
	CHECK(goes_on(fd, "./no-such", "./no-such") == 3);
	CHECK(goes_on(fd, at_the_end("/bin/true", true), "/bin/true") == 0);
	CHECK(goes_on(fd, at_the_end("/bin/true", false), "") == 4);
	CHECK(goes_on(fd, (const char *)(uintptr_t)8, "") == 4);
	memset(longest, 'x', PATH_MAX);
	CHECK(goes_on(fd, longest, "") == 6); /* no NUL in as much as a path may have */
}

/* A process that is killed while it waits. */
static void killed(void)
{
	SBX_AUTO_CLOSE int fd = watch();
	pid_t pid = executes("/bin/true");

	wait_for(fd);
	CHECK(sbx_seccomp_exec_next(fd, &seen) == 0);
	CHECK(kill(pid, SIGKILL) == 0 && status_of(pid) == 100 + SIGKILL);
	CHECK(sbx_seccomp_exec_continue(fd, &seen) == -ENOENT);
	CHECK(sbx_seccomp_exec_next(fd, &seen) == -EAGAIN);
}

static void listener_gone(void)
{
	close(watch());
	CHECK(status_of(executes("/bin/true")) == 5);
}

static void in_a_child(void (*body)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_paths(void **state)
{
	(void)state;
	in_a_child(paths);
}

static void test_killed(void **state)
{
	(void)state;
	in_a_child(killed);
}

static void test_listener_gone(void **state)
{
	(void)state;
	in_a_child(listener_gone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_listener_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
