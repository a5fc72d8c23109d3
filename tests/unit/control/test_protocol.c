/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/protocol.h"

/* --- JSON --- */

static void expect_refused(const char *p, size_t n, const char *why)
{
	struct sbx_err err = { 0 };
	json_t *value = sbx_control_parse(sbx_span(p, n), &err);

	if (value || !strstr(err.msg, why))
		print_message("%.60s: %s\n", p, value ? "taken" : err.msg);
	assert_null(value);
	assert_non_null(strstr(err.msg, why));
}

static void expect_taken(const char *text)
{
	struct sbx_err err = { 0 };
	json_t *value = sbx_control_parse(sbx_span_str(text), &err);

	if (!value)
		print_message("%s: %s\n", text, err.msg);
	assert_non_null(value);
	json_decref(value);
}

static void test_objects_are_taken(void **state)
{
	(void)state;
	expect_taken("{}");
	expect_taken("{\"v\":1,\"op\":\"show\"}");
	expect_taken(" {\"a\":\"\\\"[[[[[[[[[[[[\"}\t");
	expect_taken("{\"a\":[[[[[[[1]]]]]]]}");
	expect_taken("{\"a\":\"\xc3\xa9\"}");
}

static void test_all_else_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"x",
		"1",
		"\"a\"",
		"null",
		"[]",
		"[{}]",
		"{",
		"}",
		"{]",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{a:1}",
		"{'a':1}",
		"{}{}",
		"{} x",
		"{\"a\":01}",
		"{\"a\":1e999}",
		"{\"a\":NaN}",
		"{\"a\":\"\\ud800\"}",
		"{\"a\":\"\xff\"}",
		"{\"a\":\"\xc0\x80\"}",
		"{\"a\":\"\xed\xa0\x80\"}",
		"{\"a\":\"\t\"}",
		"{\"a\":99999999999999999999}",
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		expect_refused(bad[i], strlen(bad[i]), "no JSON object");
	expect_refused("{\"a\":\"x\0y\"}", 11, "no JSON object");
	expect_refused("{\"a\":\"x\\u0000y\"}", 16, "no JSON object");
	expect_refused("{\"a\":1,\"b\":2,\"a\":3}", 19, "no JSON object");
	expect_refused("{\"o\":{\"a\":1,\"a\":1}}", 19, "no JSON object");
	expect_refused("{}\0", 3, "no JSON object");
}

static void test_one_level_too_many(void **state)
{
	SBX_AUTO_FREE char *deep = malloc(60000);

	(void)state;
	expect_refused("{\"a\":[[[[[[[[1]]]]]]]]}", 23, "in one another");
	assert_non_null(deep);
	memset(deep, '[', 60000);
	expect_refused(deep, 60000, "in one another");
	memset(deep, '{', 60000);
	expect_refused(deep, 60000, "in one another");
}

/* A key more or less: every cut of a request is refused, or is the whole. */
static void test_every_prefix(void **state)
{
	static const char text[] = "{\"v\":1,\"op\":\"signal\",\"a\":[true,{\"x\":\"\\u00e9\"}]}";

	(void)state;
	for (size_t n = 0; n < sizeof(text) - 1; n++)
		expect_refused(text, n, "no JSON object");
	expect_taken(text);
}

static void test_print(void **state)
{
	json_t *value = json_pack("{s:s}", "a", "x\ny");
	SBX_AUTO_FREE char *line = NULL;
	size_t n = 0;

	(void)state;
	line = sbx_control_print(value, 64, &n);
	assert_non_null(line);
	assert_string_equal(line, "{\"a\":\"x\\ny\"}\n");
	assert_int_equal(n, strlen(line));
	assert_null(sbx_control_print(value, n - 1, &n));
	json_decref(value);
}

static void test_codes(void **state)
{
	(void)state;
	for (int i = 0; i < SBX_N_CONTROL_CODES; i++)
		assert_int_equal(sbx_control_code_parse(sbx_control_code_str(i)), i);
	assert_int_equal(sbx_control_code_parse("other"), SBX_CONTROL_FAILED);
	assert_int_equal(sbx_control_code_parse(NULL), SBX_CONTROL_FAILED);
}

/* --- the socket --- */

struct pair {
	int fds[2];
	struct sbx_lines lines;
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	*state = p;
	sbx_lines_init(&p->lines, SBX_CONTROL_LINE_MAX);
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p->fds);
}

static int teardown(void **state)
{
	struct pair *p = *state;

	sbx_fd_close(p->fds[0]);
	sbx_fd_close(p->fds[1]);
	sbx_lines_fini(&p->lines);
	free(p);
	return 0;
}

static int n_open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_descriptors_come_with_their_line(void **state)
{
	struct pair *p = *state;
	int sent[SBX_CONTROL_FDS_MAX], got[SBX_CONTROL_FDS_MAX];
	struct sbx_span line;
	size_t n_got;

	for (size_t i = 0; i < SBX_N_ELEMENTS(sent); i++)
		sent[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sbx_control_write(p->fds[0], "one\n", 4, NULL, 0), 4);
	assert_int_equal(sbx_control_write(p->fds[0], "two\n", 4, sent, 3), 4);
	assert_int_equal(sbx_control_write(p->fds[0], "three\n", 6, NULL, 0), 6);
	/* one read has the first two lines, and ends with the bytes of the descriptors */
	assert_int_equal(sbx_control_read(p->fds[1], &p->lines, got, &n_got), 8);
	assert_int_equal(n_got, 3);
	for (size_t i = 0; i < n_got; i++) {
		assert_true(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
		sbx_fd_close(got[i]);
		sbx_fd_close(sent[i]);
	}
	assert_int_equal(sbx_lines_next(&p->lines, &line), 1);
	assert_int_equal(sbx_lines_next(&p->lines, &line), 1);
	assert_int_equal(sbx_control_read(p->fds[1], &p->lines, got, &n_got), 6);
	assert_int_equal(n_got, 0);
	assert_int_equal(sbx_control_read(p->fds[1], &p->lines, got, &n_got), -EAGAIN);
	p->fds[0] = sbx_fd_close(p->fds[0]);
	assert_int_equal(sbx_control_read(p->fds[1], &p->lines, got, &n_got), 0);
}

/* More than a line may have: refused, and nothing stays open. */
static void test_too_many_descriptors(void **state)
{
	struct pair *p = *state;
	union {
		char room[CMSG_SPACE(sizeof(int) * 100)];
		struct cmsghdr align;
	} control;
	int got[SBX_CONTROL_FDS_MAX];
	size_t n_got;

	for (size_t n = SBX_CONTROL_FDS_MAX + 1; n <= 100; n += n < 6 ? 1 : 94) {
		struct iovec iov = { .iov_base = (char[]){ "x" }, .iov_len = 1 };
		struct msghdr msg = { .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control.room,
				      .msg_controllen = CMSG_SPACE(sizeof(int) * n) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		int before = n_open_fds();

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n);
		for (size_t i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &p->fds[0], sizeof(int));
		assert_int_equal(sendmsg(p->fds[0], &msg, 0), 1);
		assert_int_equal(sbx_control_read(p->fds[1], &p->lines, got, &n_got), -EPROTO);
		assert_int_equal(n_got, 0);
		assert_int_equal(n_open_fds(), before);
	}
}

static void test_writing_to_nobody(void **state)
{
	struct pair *p = *state;

	p->fds[1] = sbx_fd_close(p->fds[1]);
	assert_int_equal(sbx_control_write(p->fds[0], "x", 1, NULL, 0), -EPIPE);
	assert_int_equal(sbx_control_write(p->fds[0], "", 0, NULL, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects_are_taken),
		cmocka_unit_test(test_all_else_is_refused),
		cmocka_unit_test(test_one_level_too_many),
		cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_codes),
		cmocka_unit_test_setup_teardown(test_descriptors_come_with_their_line, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_too_many_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_writing_to_nobody, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
