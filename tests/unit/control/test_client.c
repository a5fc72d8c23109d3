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
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "control/client.h"
#include "tests/unit/scratch.h"

#define TIMEOUT_MS 2000

/* A runtime directory whose path is longer than an address of a socket has room for. */
struct world {
	char top[32], dir[256];
	int listener; /* the last that was made */
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	char segment[121];

	*state = w;
	w->listener = -1;
	strcpy(w->top, "/tmp/sbx-client-XXXXXX");
	if (!mkdtemp(w->top))
		return -1;
	memset(segment, 'd', sizeof(segment) - 1);
	segment[sizeof(segment) - 1] = '\0';
	sbx_text_fit(w->dir, sizeof(w->dir), "%s/%s", w->top, segment);
	return mkdir(w->dir, 0700);
}

static int teardown(void **state)
{
	struct world *w = *state;

	sbx_fd_close(w->listener);
	scratch_remove(w->top);
	free(w);
	return 0;
}

static void make_sandbox(struct world *w, const char *id, int backlog)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char dir[300];
	int fd;

	sbx_text_fit(dir, sizeof(dir), "%s/%s", w->dir, id);
	assert_int_equal(mkdir(dir, 0700), 0);
	fd = open(dir, O_PATH | O_CLOEXEC);
	sbx_text_fit(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/control.sock", fd);
	sbx_fd_close(w->listener);
	w->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(w->listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(w->listener, backlog), 0);
	sbx_fd_close(fd);
}

static int note_id(const char *id, void *userdata)
{
	strcat(userdata, id);
	strcat(userdata, " ");
	return 0;
}

static void test_find(void **state)
{
	struct world *w = *state;
	struct sbx_err err = { 0 };
	char id[SBX_ID_LEN + 1], all[100] = "", dir[300];

	assert_int_equal(sbx_control_find(w->dir, "aa", id, &err), SBX_CONTROL_E_NONE);
	assert_non_null(strstr(err.msg, "sbxctl ps"));
	make_sandbox(w, "bb0000000001", 1);
	make_sandbox(w, "aa0000000002", 1);
	make_sandbox(w, "aa0000000001", 1);
	sbx_text_fit(dir, sizeof(dir), "%s/cc0000000001", w->dir); /* without a socket */
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(sbx_control_find(w->dir, "bb", id, &err), 0);
	assert_string_equal(id, "bb0000000001");
	assert_int_equal(sbx_control_find(w->dir, "aa0000000002", id, &err), 0);
	assert_string_equal(id, "aa0000000002");
	assert_int_equal(sbx_control_find(w->dir, "aa", id, &err), SBX_CONTROL_E_MANY);
	assert_int_equal(sbx_control_find(w->dir, "b", id, &err), SBX_CONTROL_E_NONE);
	assert_int_equal(sbx_control_find(w->dir, "", id, &err), SBX_CONTROL_E_NONE);
	assert_int_equal(sbx_control_find(w->dir, "cc", id, &err), SBX_CONTROL_E_NONE);
	assert_int_equal(sbx_control_find(w->dir, "../x", id, &err), SBX_CONTROL_E_NONE);
	assert_int_equal(sbx_control_each(w->dir, note_id, all, &err), 0);
	assert_string_equal(all, "aa0000000001 aa0000000002 bb0000000001 ");
}

static void test_a_directory_that_is_missing_has_no_sandbox(void **state)
{
	struct sbx_err err = { 0 };
	char all[16] = "";

	(void)state;
	assert_int_equal(sbx_control_each("/nonexistent", note_id, all, &err), 0);
	assert_string_equal(all, "");
}

static void say(int fd, const char *line)
{
	assert_int_equal(send(fd, line, strlen(line), MSG_NOSIGNAL), strlen(line));
}

static void test_ask(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c;
	struct sbx_err err = { 0 };
	json_t *answer;
	char line[200] = "";
	int peer;

	make_sandbox(w, "aa0000000001", 1);
	assert_int_equal(sbx_control_connect(w->dir, "aa0000000001", TIMEOUT_MS, &c, &err), 0);
	peer = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
	say(peer, "{\"v\":1,\"ok\":true,\"n\":7}\n{\"v\":1,\"ok\":false,\"code\":\"busy\","
		  "\"error\":\"later\"}\n{\"v\":1,\"event\":\"x\"}\nrubbish\n");
	assert_false(sbx_control_has_line(c));
	assert_int_equal(sbx_control_ask(c, json_pack("{s:s}", "op", "a"), NULL, 0, &answer, &err),
			 0);
	assert_int_equal(json_integer_value(json_object_get(answer, "n")), 7);
	json_decref(answer);
	assert_true(recv(peer, line, sizeof(line) - 1, 0) > 0);
	assert_string_equal(line, "{\"op\":\"a\",\"v\":1}\n");
	assert_int_equal(sbx_control_ask(c, json_pack("{s:s}", "op", "b"), NULL, 0, &answer, &err),
			 SBX_CONTROL_E_REFUSED);
	assert_string_equal(err.msg, "later");
	assert_int_equal(sbx_control_refusal_code(answer), SBX_CONTROL_BUSY);
	json_decref(answer);
	assert_true(sbx_control_has_line(c));
	assert_int_equal(sbx_control_receive(c, 0, &answer, &err), 0);
	json_decref(answer);
	assert_int_equal(sbx_control_receive(c, 0, &answer, &err), -EBADMSG);
	assert_null(answer);
	assert_int_equal(sbx_control_receive(c, 0, &answer, &err), SBX_CONTROL_E_TIMED_OUT);
	sbx_fd_close(peer);
	assert_int_equal(sbx_control_receive(c, -1, &answer, &err), SBX_CONTROL_E_GONE);
	assert_null(sbx_control_disconnect(c));
}

/* The launcher sends a refusal and closes: the client hears it, before and after it asks. */
static void test_turned_away(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c;
	struct sbx_err err = { 0 };
	json_t *answer;
	int peer;

	make_sandbox(w, "aa0000000001", 1);
	assert_int_equal(sbx_control_connect(w->dir, "aa0000000001", TIMEOUT_MS, &c, &err), 0);
	peer = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
	say(peer, "{\"v\":1,\"ok\":false,\"code\":\"denied\",\"error\":\"not you\"}\n");
	sbx_fd_close(peer);
	assert_int_equal(sbx_control_ask(c, json_pack("{s:s}", "op", "a"), NULL, 0, &answer, &err),
			 SBX_CONTROL_E_REFUSED);
	assert_string_equal(err.msg, "not you");
	json_decref(answer);
	err.msg[0] = '\0';
	assert_int_equal(sbx_control_ask(c, json_pack("{s:s}", "op", "a"), NULL, 0, &answer, &err),
			 SBX_CONTROL_E_GONE);
	assert_null(answer);
	sbx_control_disconnect(c);
}

static void test_a_dead_launcher(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c;
	struct sbx_err err = { 0 };

	make_sandbox(w, "aa0000000001", 1);
	w->listener = sbx_fd_close(w->listener);
	assert_int_equal(sbx_control_connect(w->dir, "aa0000000001", TIMEOUT_MS, &c, &err),
			 SBX_CONTROL_E_NONE);
	assert_null(c);
	assert_int_equal(sbx_control_connect(w->dir, "ab0000000001", TIMEOUT_MS, &c, &err),
			 SBX_CONTROL_E_NONE);
	assert_int_equal(sbx_control_connect(w->dir, "../aa", TIMEOUT_MS, &c, &err), -EINVAL);
}

/* Nobody accepts: the wait ends. */
static void test_a_stopped_launcher(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c[8] = { NULL };
	struct sbx_err err = { 0 };
	json_t *answer;
	size_t n = 0;
	int e = 0;

	make_sandbox(w, "aa0000000001", 0);
	while (n < SBX_N_ELEMENTS(c) && e == 0) {
		e = sbx_control_connect(w->dir, "aa0000000001", 50, &c[n], &err);
		n += e == 0;
	}
	assert_int_equal(e, SBX_CONTROL_E_TIMED_OUT);
	assert_true(n > 0);
	assert_int_equal(
		sbx_control_ask(c[0], json_pack("{s:s}", "op", "a"), NULL, 0, &answer, &err),
		SBX_CONTROL_E_TIMED_OUT);
	while (n > 0)
		sbx_control_disconnect(c[--n]);
}

static void test_a_request_that_is_too_long(void **state)
{
	struct world *w = *state;
	SBX_AUTO_FREE char *text = malloc(SBX_CONTROL_LINE_MAX + 1);
	struct sbx_control_client *c;
	struct sbx_err err = { 0 };

	assert_non_null(text);
	memset(text, 'a', SBX_CONTROL_LINE_MAX);
	text[SBX_CONTROL_LINE_MAX] = '\0';
	make_sandbox(w, "aa0000000001", 1);
	assert_int_equal(sbx_control_connect(w->dir, "aa0000000001", TIMEOUT_MS, &c, &err), 0);
	assert_int_equal(sbx_control_send(c, json_pack("{s:s}", "op", text), NULL, 0, &err),
			 -EMSGSIZE);
	text[SBX_CONTROL_LINE_MAX - 100] = '\0';
	assert_int_equal(sbx_control_send(c, json_pack("{s:s}", "op", text), NULL, 0, &err), 0);
	sbx_control_disconnect(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test(test_a_directory_that_is_missing_has_no_sandbox),
		cmocka_unit_test_setup_teardown(test_ask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turned_away, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_dead_launcher, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_stopped_launcher, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_request_that_is_too_long, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
