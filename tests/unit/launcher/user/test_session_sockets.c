/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sockets that the environment names: each form, what is no path, and that the planner asks. */
#include "tests/unit/plan_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/user/session_sockets.h"

/* @entry alone in the environment: the paths found, joined by blanks. */
static void expect(const char *entry, const char *want)
{
	char copy[1024], *variables[] = { copy, NULL }, got[4096] = "";
	const struct sbx_facts f = { .environ = variables };
	struct sbx_session_sockets s;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", entry);
	assert_int_equal(sbx_session_sockets_find(&f, &s), 0);
	for (size_t i = 0; i < s.n; i++) {
		assert_true(strncmp(entry, s.v[i].said, strlen(s.v[i].said)) == 0);
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%s", i ? " " : "", s.v[i].path);
	}
	assert_string_equal(got, want);
	sbx_session_sockets_fini(&s);
}

static void test_forms(void **state)
{
	(void)state;
	expect("SSH_AUTH_SOCK=/nowhere/agent.1", "/nowhere/agent.1");
	expect("SSH_AUTH_SOCK=//nowhere/./agent.1", "/nowhere/agent.1");
	expect("SSH_AUTH_SOCK=relative", "");
	expect("SSH_AUTH_SOCK=", "");
	expect("SSH_AUTH_SOCKET=/nowhere/agent.1", "");
	expect("SSH_AUTH_SOCK=/run/user/1000/agent", "");
	expect("SSH_AUTH_SOCK=/run/username/agent", "/run/username/agent");
	expect("GNUPGHOME=/nowhere/gnupg", "/nowhere/gnupg/S.gpg-agent");
	expect("GPG_AGENT_INFO=/nowhere/S.gpg-agent:12:1", "/nowhere/S.gpg-agent");
	expect("TMUX=/nowhere/tmux-0/default,12,0", "/nowhere/tmux-0/default");
	expect("DOCKER_HOST=unix:///nowhere/docker.sock", "/nowhere/docker.sock");
	expect("DOCKER_HOST=tcp://127.0.0.1:2375/nowhere", "");
	expect("DOCKER_HOST=ssh://host/nowhere/docker.sock", "");
	expect("PULSE_SERVER=unix:/nowhere/native", "/nowhere/native");
	expect("WAYLAND_DISPLAY=wayland-0", "");
	expect("WAYLAND_DISPLAY=/nowhere/wayland-0", "/nowhere/wayland-0");
	expect("DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere/bus,guid=0123", "/nowhere/bus");
	expect("DBUS_SESSION_BUS_ADDRESS=unix:abstract=/nowhere/bus", "");
	expect("DBUS_SESSION_BUS_ADDRESS=tcp:host=h,port=1;unix:guid=1,path=/a%2fb%20c;unix:dir=/d",
	       "/a/b c /d/dbus-");
	expect("DBUS_SESSION_BUS_ADDRESS=unix:path=/a%2", "/a%2");
	expect("DBUS_SESSION_BUS_ADDRESS=;;unix:;unix:,;unix:path", "");
}

/* More than there is room for is not cut. */
static void test_too_many(void **state)
{
	char entry[8192] = "DBUS_SESSION_BUS_ADDRESS=", *variables[] = { entry, NULL };
	const struct sbx_facts f = { .environ = variables };
	struct sbx_session_sockets s;
	size_t n = strlen(entry);

	(void)state;
	for (int i = 0; i < SBX_SESSION_SOCKETS_MAX; i++)
		n += (size_t)snprintf(entry + n, sizeof(entry) - n, "unix:path=/nowhere/%d;", i);
	assert_int_equal(sbx_session_sockets_find(&f, &s), 0);
	assert_int_equal(s.n, SBX_SESSION_SOCKETS_MAX);
	sbx_session_sockets_fini(&s);
	snprintf(entry + n, sizeof(entry) - n, "unix:path=/nowhere/more");
	assert_int_equal(sbx_session_sockets_find(&f, &s), -E2BIG);
	sbx_session_sockets_fini(&s);
}

/* A directory that holds one is not granted, by whatever name either goes. */
static void test_planned(void **state)
{
	struct plan_world *w = *state;
	char *dir = plan_world_path(w, "home/agent"), *deep = plan_world_path(w, "home/agent/deep"),
	     entry[256];

	plan_world_mkdir(w, "home/agent/deep");
	plan_world_link(w, "home/by-link", "agent");
	plan_world_must(w, "--ro-bind", dir, "--", "true");
	snprintf(entry, sizeof(entry), "SSH_AUTH_SOCK=%s/home/by-link/agent.1", w->dir);
	plan_world_env(w, entry);
	plan_world_refused(w, 125, "SSH_AUTH_SOCK", "--ro-bind", dir, "--", "true");
	plan_world_refused(w, 125, "way out", "--ro-bind", plan_world_path(w, "home/by-link"), "--",
			   "true");
	plan_world_must(w, "--ro-bind", deep, "--", "true");
	plan_world_set(&w->facts.cwd, dir);
	plan_world_refused(w, 125, "SSH_AUTH_SOCK", "--", "true");
	plan_world_must(w, "--scratch", "--", "true");
	assert_null(plan_world_mount(w, dir));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test_setup_teardown(test_planned, plan_world_setup,
						plan_world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
