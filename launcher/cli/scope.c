/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-scope --system|--user NAME.scope SLICE PID DESCRIPTION
 *
 * Asks systemd over D-Bus for a transient scope around process PID, waits until it exists, and
 * prints the path of its cgroup below the root of the cgroup file system. It is a program of its
 * own because sbx-run is static and few runs need it.
 *
 * The scope is delegated: sbx may arrange its cgroup. It sets no limits, and systemd removes it
 * when its last process ends, even after a failure. Exit status: 0, with one line on stdout; or 1,
 * with one line on stderr. After a timeout the scope may still appear; it ends with PID.
 *
 * Trust: the caller is the launcher, perhaps as root. From the environment only the variables that
 * name the user's bus are read, and only the address of a unix socket is accepted. All fds but 0-2
 * are closed. systemd is trusted, because it owns the cgroup tree; its answers are bounded and
 * escaped all the same. A timer ends the program after TIME_LIMIT_S, because libsystemd waits
 * longer in places.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "base/version.h"
#include "launcher/cli/scope_args.h"
#include "sys/process/proc.h"

SBX_VERSION_MARK;

#define TIME_LIMIT_S 10

#define MANAGER "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define MANAGER_INTERFACE MANAGER ".Manager"

#define AUTO_BUS __attribute__((cleanup(sd_bus_flush_close_unrefp)))
#define AUTO_MESSAGE __attribute__((cleanup(sd_bus_message_unrefp)))
#define AUTO_SLOT __attribute__((cleanup(sd_bus_slot_unrefp)))
#define AUTO_ERROR __attribute__((cleanup(sd_bus_error_free)))

/* --- the process --- */

static void on_alarm(int signal_number)
{
	static const char line[] = "sbx-scope: systemd did not answer in 10 s\n";

	(void)signal_number;
	(void)!write(STDERR_FILENO, line, sizeof(line) - 1);
	_exit(1);
}
_Static_assert(TIME_LIMIT_S == 10, "the message has the number");

/* Unblocks all signals, too: the launcher blocks them. */
static void start_timer(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	sigset_t none;

	sigemptyset(&none);
	sigaction(SIGALRM, &action, NULL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	alarm(TIME_LIMIT_S);
}

static int only_stdio(void)
{
	static const int stdio[] = { 0, 1, 2 };
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd < 0)
		return -errno;
	return sbx_proc_arrange_fds(stdio, stdio, 3); /* closes this one, too */
}

/* Removes all variables but those that name the user's bus. 0, or -errno with @err. */
static int clear_environment(bool user, struct sbx_err *err)
{
	const char *names[] = { "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR" };
	const char *values[] = { getenv(names[0]), getenv(names[1]) };

	if (clearenv() != 0)
		return -ENOMEM;
	if (!user)
		return 0;
	if (values[0] && !sbx_scope_address_ok(values[0])) {
		sbx_err_set(err,
			    "DBUS_SESSION_BUS_ADDRESS: it must be the address of one unix socket");
		return -EINVAL;
	}
	if (values[1] && values[1][0] != '/') {
		sbx_err_set(err, "XDG_RUNTIME_DIR is not an absolute path");
		return -EINVAL;
	}
	/* clearenv(3) frees only the array: the strings are still valid. */
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		if (values[i] && setenv(names[i], values[i], 1) < 0)
			return -errno;
	return 0;
}

/* --- the manager --- */

struct job {
	const char *path;
	char result[32]; /* "": not removed yet */
};

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct job *job = userdata;
	const char *path, *result;
	uint32_t id;

	(void)error;
	if (sd_bus_message_read(m, "uoss", &id, &path, NULL, &result) >= 0 && job->path &&
	    strcmp(path, job->path) == 0)
		sbx_text_cut(job->result, sizeof(job->result), "%s",
			     result[0] ? result : "nothing");
	return 0;
}

static int make_request(sd_bus *bus, const struct sbx_scope_args *a, sd_bus_message **ret_m)
{
	AUTO_MESSAGE sd_bus_message *m = NULL;
	int r = sd_bus_message_new_method_call(bus, &m, MANAGER, MANAGER_PATH, MANAGER_INTERFACE,
					       "StartTransientUnit");

	if (r >= 0)
		r = sd_bus_message_append(m, "ss", a->name, "fail");
	if (r >= 0)
		r = sd_bus_message_append(m, "a(sv)", 5,
					  "Description", "s", a->description,
					  "Slice", "s", a->slice,
					  "PIDs", "au", 1, a->pid,
					  "Delegate", "b", 1,
					  "CollectMode", "s", "inactive-or-failed");
	if (r >= 0)
		r = sd_bus_message_append(m, "a(sa(sv))", 0);
	if (r >= 0)
		*ret_m = sbx_steal_ptr(&m);
	return r;
}

static int wait_for_job(sd_bus *bus, const struct job *job)
{
	int r = 0;

	while (r >= 0 && !job->result[0]) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
	}
	return r < 0 ? r : 0;
}

static int start_scope(sd_bus *bus, const struct sbx_scope_args *a, struct sbx_err *err)
{
	AUTO_ERROR sd_bus_error error = SD_BUS_ERROR_NULL;
	AUTO_MESSAGE sd_bus_message *m = NULL, *reply = NULL;
	struct job job = { 0 };
	AUTO_SLOT sd_bus_slot *slot = NULL;
	int r;

	/* Subscribe before the call: the job may end before the answer has been read. */
	r = sd_bus_match_signal(bus, &slot, MANAGER, MANAGER_PATH, MANAGER_INTERFACE, "JobRemoved",
				on_job_removed, &job);
	if (r >= 0)
		r = make_request(bus, a, &m);
	if (r >= 0)
		r = sd_bus_call(bus, m, 0, &error, &reply);
	if (r >= 0)
		r = sd_bus_message_read(reply, "o", &job.path);
	if (r >= 0)
		r = wait_for_job(bus, &job);
	if (r < 0) {
		sbx_err_set(err, "cannot make %s: %s", a->name,
			    error.message ? error.message : strerror(-r));
		return r;
	}
	if (strcmp(job.result, "done") == 0)
		return 0;
	sbx_err_set(err, "cannot make %s: systemd's job ended as '%s'", a->name, job.result);
	return -ECANCELED;
}

/* @ret_path is malloc'ed. */
static int control_group(sd_bus *bus, const char *name, char **ret_path, struct sbx_err *err)
{
	AUTO_ERROR sd_bus_error error = SD_BUS_ERROR_NULL;
	SBX_AUTO_FREE char *object = NULL, *path = NULL;
	char shown[4096];
	int r = sd_bus_path_encode(MANAGER_PATH "/unit", name, &object);

	if (r >= 0)
		r = sd_bus_get_property_string(bus, MANAGER, object, MANAGER ".Scope",
					       "ControlGroup", &error, &path);
	if (r < 0) {
		sbx_err_set(err, "cannot ask for the cgroup of %s: %s", name,
			    error.message ? error.message : strerror(-r));
		return r;
	}
	/* The path is "" if PID, and the scope with it, has ended. */
	if (path[0] != '/' ||
	    strcmp(sbx_escape(path, strlen(path), shown, sizeof(shown)), path) != 0) {
		sbx_err_set(err, "%s has no cgroup: '%s'", name, path);
		return -ESRCH;
	}
	*ret_path = sbx_steal_ptr(&path);
	return 0;
}

static int run(const struct sbx_scope_args *a, struct sbx_err *err)
{
	AUTO_BUS sd_bus *bus = NULL;
	SBX_AUTO_FREE char *path = NULL;
	int r = clear_environment(a->user, err);

	if (r < 0)
		return r;
	r = a->user ? sd_bus_open_user(&bus) : sd_bus_open_system(&bus);
	if (r < 0) {
		sbx_err_set(err, "cannot reach the %s bus: %s", a->user ? "user's" : "system",
			    strerror(-r));
		return r;
	}
	r = start_scope(bus, a, err);
	if (r == 0)
		r = control_group(bus, a->name, &path, err);
	if (r == 0 && (puts(path) < 0 || fflush(stdout) != 0)) {
		r = -errno;
		sbx_err_set(err, "cannot write: %s", strerror(-r));
	}
	return r;
}

int main(int argc, char **argv)
{
	struct sbx_scope_args args;
	struct sbx_err err = { 0 };
	int r;

	r = only_stdio();
	if (r < 0)
		return 1;
	start_timer();
	r = sbx_scope_args_parse(argc, argv, &args, &err);
	if (r == 0)
		r = run(&args, &err);
	if (r < 0)
		sbx_err_set(&err, "%s", strerror(-r));
	if (r != 0)
		fprintf(stderr, "sbx-scope: %s\n", err.msg);
	return r == 0 ? 0 : 1;
}
