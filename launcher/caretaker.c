/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Caretakers.
 *
 * A launcher without privileges does it all itself. One with privileges gives them up before the command is
 * released, and must not walk a user's directories with root's eyes; so it forks before that, once for each user that
 * writable grants are written as (mostly one). A caretaker has that user's rights and nothing else: the directories and their
 * locks, and a channel. It is asked once (LOOK), answers with a packet per name and an empty answer, and removes
 * placeholders when the channel ends. That is also what it sees of a launcher that was killed: it waits until the
 * kernel has told that to the sandbox too (the parent's death comes after its files are closed), and then a while,
 * because what a mask covers must not go before who is kept from it.
 */
#include "launcher/caretaker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/placeholders.h"
#include "launcher/record.h"
#include "launcher/view.h"
#include "sys/proc.h"

#define LOOK		'l'
#define END		'e' /* of an answer, and of a run that ended as it should */
#define ANSWER_MS	5000
#define LINES_MAX	8 /* on stderr; the rest is counted */
#define DEATH_MS	100
#define LEFT		2 /* exit status: some placeholders could not be removed */

static void pause_ms(long ms)
{
	const struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

/* --- the process --- */

static int tell(void *userdata, const char *path)
{
	return sbx_channel_send(*(const int *)userdata, path, strlen(path) + 1, NULL, 0) == 0 ? 0 : -EPIPE;
}

static void answer(const struct sbx_plan *p, int channel, uid_t writer)
{
	const char end = END;

	sbx_view_new_blocked(p, &writer, tell, &channel);
	sbx_channel_send(channel, &end, 1, NULL, 0);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Everything else is closed, stdio too: somebody may wait for its end. */
static int keep_fds(const struct sbx_plan *p, int channel, uid_t writer)
{
	size_t n = 0, n_max = 1 + p->n_mounts + 2 * p->n_placeholder_dirs;
	SBX_AUTO_FREE int *fds = calloc(n_max, sizeof(*fds));
	unsigned int next = 0;

	if (!fds)
		return -ENOMEM;
	fds[n++] = channel;
	for (size_t i = 0; i < p->n_mounts; i++)
		if (sbx_view_is_writable_dir(&p->mounts[i]) && sbx_view_writer(p, &p->mounts[i]) == writer)
			fds[n++] = p->mounts[i].source.fd;
	for (size_t i = 0; i < p->n_placeholder_dirs; i++) {
		fds[n++] = p->placeholder_dirs[i].fd;
		if (p->placeholder_dirs[i].lock_fd >= 0)
			fds[n++] = p->placeholder_dirs[i].lock_fd;
	}
	qsort(fds, n, sizeof(*fds), by_number);
	for (size_t i = 0; i < n; i++) {
		if ((unsigned int)fds[i] > next && syscall(SYS_close_range, next, (unsigned int)fds[i] - 1, 0) < 0)
			return -errno;
		next = (unsigned int)fds[i] + 1;
	}
	return syscall(SYS_close_range, next, ~0u, 0) < 0 ? -errno : 0;
}

static void wait_for_death(pid_t launcher)
{
	for (int i = 0; i < 1000 && getppid() == launcher; i++)
		pause_ms(1);
	pause_ms(DEATH_MS);
}

static _Noreturn void caretaker_main(struct sbx_run *r, int channel, uid_t uid, gid_t gid, pid_t launcher)
{
	const struct sbx_plan *p = r->plan;
	const char ready = LOOK;
	bool ended = false;
	size_t n;
	char said;
	int e;

	e = keep_fds(p, channel, uid);
	if (e == 0)
		e = sbx_ids_drop(uid, gid);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0);
	setsid(); /* a SIGKILL to the launcher's group is not for us */
	if (e < 0 || sbx_channel_send(channel, &ready, 1, NULL, 0) != 0)
		_exit(1);
	for (;;) {
		e = sbx_channel_recv(channel, &said, 1, &n, NULL, 0, NULL, NULL);
		if (e == -EINTR)
			continue;
		if (e != 0)
			break;
		if (said == LOOK)
			answer(p, channel, uid);
		ended = ended || said == END;
	}
	if (!ended)
		wait_for_death(launcher);
	_exit(sbx_placeholders_remove_of(p, &uid) ? 0 : LEFT);
}

/* --- the launcher --- */

/* One byte, in time. */
static bool hear(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;
	size_t n;

	return poll(&p, 1, ANSWER_MS) > 0 && sbx_channel_recv(fd, &byte, 1, &n, NULL, 0, NULL, NULL) == 0;
}

static int start(struct sbx_run *r, const struct sbx_mount_op *grant)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	struct sbx_run_caretaker *c = &r->caretakers[r->n_caretakers];
	const uid_t writer = sbx_view_writer(r->plan, grant);
	pid_t launcher = getpid(), pid;
	int e = sbx_channel_pair(&ours, &theirs);

	if (e < 0)
		return e;
	pid = sbx_proc_clone(0, NULL, &r->err);
	if (pid == 0)
		caretaker_main(r, theirs, writer, grant->idmap ? grant->source.st.st_gid : r->facts->gid, launcher);
	if (pid < 0)
		return pid;
	c->pid = pid;
	c->fd = sbx_fd_steal(&ours);
	c->writer = writer;
	r->n_caretakers++;
	sbx_fd_close(theirs);
	theirs = -1;
	return hear(c->fd) ? 0 : -ECHILD;
}

static int start_all(struct sbx_run *r)
{
	int e = 0;

	for (size_t i = 0; i < r->plan->n_mounts && e == 0; i++) {
		const struct sbx_mount_op *op = &r->plan->mounts[i];
		bool known = !sbx_view_is_writable_dir(op);

		for (size_t k = 0; k < r->n_caretakers; k++)
			known = known || r->caretakers[k].writer == sbx_view_writer(r->plan, op);
		if (known)
			continue;
		e = start(r, op);
	}
	if (e < 0)
		sbx_err_set(&r->err, "cannot start a caretaker of the writable grants: %s", strerror(-e));
	return e;
}

void sbx_caretaker_forget(struct sbx_run *r)
{
	for (size_t i = 0; i < r->n_caretakers; i++)
		r->caretakers[i].fd = sbx_fd_close(r->caretakers[i].fd);
}

int sbx_caretaker_begin(struct sbx_run *r)
{
	int e = sbx_placeholders_make(r);

	return e == 0 && r->facts->privileged ? start_all(r) : e;
}

static int notice(void *userdata, const char *path)
{
	struct sbx_run *r = userdata;
	struct sbx_event e = { .ts_ms = sbx_clock_realtime_ms(), .action = SBX_NOTICE, .proto = SBX_PROTO_OTHER,
			       .reason = SBX_REASON_BLOCKED_NAME, .count = 1 };
	struct sbx_err line = { 0 };

	sbx_text_cut(e.rule, sizeof(e.rule), "%s", path);
	sbx_record_event(r, &e);
	if (++r->n_notices <= LINES_MAX && !r->options->quiet) {
		sbx_err_set(&line, "'%s' appeared, which is a blocked name: the next sandbox will not see it", path);
		fprintf(stderr, "sbx-run: notice: %s\n", line.msg);
	}
	return 0;
}

static void take_answer(struct sbx_run *r, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char path[SBX_VIEW_PATH_MAX];
	size_t n;

	while (poll(&p, 1, ANSWER_MS) > 0 &&
	       sbx_channel_recv(fd, path, sizeof(path), &n, NULL, 0, NULL, NULL) == 0 && n > 1) {
		path[n - 1] = '\0';
		notice(r, path);
	}
}

void sbx_caretaker_look(struct sbx_run *r)
{
	const char look = LOOK;

	if (!r->released)
		return;
	if (!r->facts->privileged)
		sbx_view_new_blocked(r->plan, NULL, notice, r);
	for (size_t i = 0; i < r->n_caretakers; i++)
		if (sbx_channel_send(r->caretakers[i].fd, &look, 1, NULL, 0) == 0)
			take_answer(r, r->caretakers[i].fd);
	if (r->n_notices > LINES_MAX && !r->options->quiet)
		fprintf(stderr, "sbx-run: notice: and %u more\n", r->n_notices - LINES_MAX);
}

/* Did it end well, and in time? Its user may stop it or end it. */
static bool wait_for(pid_t *pid)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, *pid, 0), .events = POLLIN };
	int status = -1;

	if (p.fd < 0 || poll(&p, 1, ANSWER_MS) <= 0)
		kill(*pid, SIGKILL); /* our child, not yet reaped */
	sbx_fd_close(p.fd);
	while (waitpid(*pid, &status, 0) < 0 && errno == EINTR)
		;
	*pid = 0;
	return status == 0;
}

void sbx_caretaker_end(struct sbx_run *r)
{
	bool done = r->facts->privileged || sbx_placeholders_remove_of(r->plan, NULL);
	const char end = END;

	sbx_placeholders_forget(r); /* a lock that we share would be another's */
	for (size_t i = 0; i < r->n_caretakers; i++) {
		sbx_channel_send(r->caretakers[i].fd, &end, 1, NULL, 0);
		r->caretakers[i].fd = sbx_fd_close(r->caretakers[i].fd);
		done = wait_for(&r->caretakers[i].pid) && done;
	}
	r->n_caretakers = 0;
	r->swept_later = !done && r->plan->n_placeholders > 0;
	if (r->swept_later)
		fprintf(stderr, "sbx-run: placeholders of protected paths are left in writable grants; the next start, or "
				"sbx-run --gc, removes them where it can\n");
	else
		sbx_placeholders_settled(r);
}
