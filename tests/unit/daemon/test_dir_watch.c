/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that is made in a watched directory is told, also where no inotify is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/hub/dir_watch.h"
#include "tests/unit/scratch.h"

struct asker {
	struct event_base *base;
	char path[128]; /* of the file that it waits for */
	bool found;
};

static void look(void *userdata)
{
	struct asker *a = userdata;

	if (access(a->path, F_OK) == 0) {
		a->found = true;
		event_base_loopbreak(a->base);
	}
}

static void give_up(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(userdata);
}

static void watch(bool inotify)
{
	const struct timeval long_enough = { .tv_sec = 10 };
	char dir[] = "/tmp/sbx-test-watch.XXXXXX";
	struct asker a = { .base = event_base_new() };
	struct sbx_dir_watches *all = NULL;
	struct sbx_dir_watch *w = NULL;
	struct rlimit had, none;
	struct event *end;

	assert_non_null(mkdtemp(dir));
	snprintf(a.path, sizeof(a.path), "%s/log", dir);
	getrlimit(RLIMIT_NOFILE, &had);
	none = had;
	none.rlim_cur = 0;
	if (!inotify)
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(sbx_dir_watches_new(a.base, &all), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &had), 0);
	assert_true(sbx_dir_watch_new(all, "/tmp/sbx-test-watch.none", look, &a, &w) < 0);
	assert_int_equal(sbx_dir_watch_new(all, dir, look, &a, &w), 0);
	event_base_loop(a.base, EVLOOP_NONBLOCK);
	assert_false(a.found);
	close(open(a.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	end = evtimer_new(a.base, give_up, a.base);
	event_add(end, &long_enough);
	event_base_dispatch(a.base);
	assert_true(a.found);
	event_free(end);
	assert_null(sbx_dir_watch_free(w));
	assert_null(sbx_dir_watches_free(all));
	event_base_free(a.base);
	scratch_remove(dir);
}

static void test_inotify(void **state)
{
	(void)state;
	watch(true);
}

static void test_no_inotify(void **state)
{
	(void)state;
	watch(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inotify),
		cmocka_unit_test(test_no_inotify),
	};

	return cmocka_run_group_tests_name("dir_watch", tests, NULL, NULL);
}
