/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The helper that reads secrets again. */
#include "launcher/secrets/secret_helper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "tests/unit/scratch.h"

#define WAIT_MS 20000

static char file_name[] = "FILE", env_name[] = "ENV", path[64], no_home[] = "/nonexistent";
static char *no_environ[] = { NULL };
static struct sbx_secret secrets[] = {
	{ .name = env_name, .from = SBX_SECRET_ENV, .source = env_name },
	{ .name = file_name, .from = SBX_SECRET_FILE, .source = path },
};

static void put(const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Is there an answer in time? */
static bool hears(const struct sbx_secret_helper *h, int timeout_ms)
{
	struct pollfd p = { .fd = h->fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

static void expect(const struct sbx_secret_helper *h, uint32_t i, const char *value)
{
	SBX_AUTO_CLOSE int fd = -1;
	uint8_t packet[64];
	uint32_t index;
	size_t n, n_fds;
	char text[64];

	assert_true(hears(h, WAIT_MS));
	assert_int_equal(sbx_channel_recv(h->fd, packet, sizeof(packet), &n, &fd, 1, &n_fds, NULL),
			 0);
	assert_int_equal(sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_SECRET, &index), 0);
	assert_int_equal(index, i);
	assert_int_equal(n_fds, 1);
	assert_int_equal(pread(fd, text, sizeof(text), 0), strlen(value));
	assert_memory_equal(text, value, strlen(value));
}

static void test_read_again(void **state)
{
	const struct sbx_profile p = { .n_secrets = 2, .secrets = secrets };
	const struct sbx_facts f = { .environ = no_environ, .home = no_home };
	struct sbx_secret_helper h;
	struct sbx_err err = { 0 };

	(void)state;
	put("one\n");
	sbx_secret_helper_init(&h);
	assert_int_equal(sbx_secret_helper_start(&h, &p, &f, &err), 0);
	assert_true(h.pid > 0);
	put("two\n");
	sbx_secret_helper_ask(&h, &p, 0); /* it cannot change */
	sbx_secret_helper_ask(&h, &p, 2); /* there is none */
	sbx_secret_helper_ask(&h, &p, 1);
	expect(&h, 1, "two");
	sbx_secret_helper_ask(&h, &p, 1); /* too early */
	assert_false(hears(&h, 100));
	h.asked_us[1] = 0;
	put("three\n");
	sbx_secret_helper_ask(&h, &p, 1);
	expect(&h, 1, "three");

	/* one that cannot be read is not answered, and the helper stays */
	put("");
	h.asked_us[1] = 0;
	sbx_secret_helper_ask(&h, &p, 1);
	assert_false(hears(&h, 100));
	put("four\n");
	h.asked_us[1] = 0;
	sbx_secret_helper_ask(&h, &p, 1);
	expect(&h, 1, "four");
	sbx_secret_helper_fini(&h);
	assert_int_equal(h.pid, 0);
}

/* A sandbox whose secrets cannot change has no helper. */
static void test_none(void **state)
{
	const struct sbx_profile p = { .n_secrets = 1, .secrets = secrets };
	const struct sbx_facts f = { .environ = no_environ, .home = no_home };
	struct sbx_secret_helper h;
	struct sbx_err err = { 0 };

	(void)state;
	sbx_secret_helper_init(&h);
	assert_int_equal(sbx_secret_helper_start(&h, &p, &f, &err), 0);
	assert_int_equal(h.pid, 0);
	assert_int_equal(h.fd, -1);
	sbx_secret_helper_ask(&h, &p, 0);
	sbx_secret_helper_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_again),
		cmocka_unit_test(test_none),
	};
	char dir[] = "/tmp/sbx-helper-XXXXXX";
	int failed;

	if (!mkdtemp(dir))
		return 99;
	sbx_text_fit(path, sizeof(path), "%s/token", dir);
	failed = cmocka_run_group_tests_name("secret_helper", tests, NULL, NULL);
	scratch_remove(dir);
	return failed;
}
