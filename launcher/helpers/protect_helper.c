/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Caretakers.
 *
 * A launcher with privileges gives them up before the command is released, and must not walk a user's directories with
 * root's eyes; so it forks before that, once for each user that writable grants are written as (mostly one). A caretaker has
 * that user's rights and nothing else: the directories and their locks, and a channel. A launcher without privileges does
 * it all itself, unless new protected paths are checked (new_protected.h): that is done for a launcher that was killed, too.
 *
 * A caretaker begins to watch WATCH_AFTER_MS after its start and looks at what has appeared until then. A short
 * command ends before that: closing an inotify descriptor takes the kernel 10 ms, and the launcher waits for each of its
 * processes. The caretaker watches until it is asked once (LOOK). It answers with a packet per
 * thing that it has to tell and END, removes placeholders when the channel ends or at END, and exits; its exit status
 * says how that went. While it works it sends BEATs, so that the launcher can tell a long search from a process that its
 * user stopped. The channel's end is also what it sees of a launcher that was killed: it waits until the kernel has told
 * that to the sandbox too (the parent's death comes after its files are closed), and then a while, because what a mask
 * covers must not go before who is kept from it, and looks then.
 */
#include "launcher/helpers/protect_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/helpers/new_protected.h"
#include "launcher/helpers/new_watch.h"
#include "launcher/protect/placeholders.h"
#include "launcher/protect/view_overmounts.h"
#include "launcher/record/record.h"
#include "launcher/rootfs/view.h"
#include "sys/process/proc.h"

#define LOOK		'l'
#define END		'e' /* of an answer, and of a run that ended as it should */
#define BEAT		'.'
#define BLOCKED		'b' /* and a path; the others are enum sbx_new_word, a path and a text */
#define PACKET_MAX	(8 * PATH_MAX)
#define ANSWER_MS	5000
#define LOOK_MS		120000 /* however much it beats */
#define LINES_MAX	8 /* on stderr; the rest is counted */
#define DEATH_MS	100
#define LEFT		2 /* exit status: some placeholders could not be removed */
#define WATCH_AFTER_MS	30 /* from the caretaker's start */

static void pause_ms(long ms)
{
	const struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

/* --- the process --- */

static int channel_fd = -1; /* for the signal handler */

static void send_word(char word, const char *path, const char *text)
{
	static char packet[PACKET_MAX];
	size_t n_path = strlen(path) + 1, n_text = strlen(text) + 1;

	if (1 + n_path + n_text > sizeof(packet))
		return;
	packet[0] = word;
	memcpy(packet + 1, path, n_path);
	memcpy(packet + 1 + n_path, text, n_text);
	sbx_channel_send(channel_fd, packet, 1 + n_path + n_text, NULL, 0);
}

static int tell_blocked(void *userdata, const char *path)
{
	(void)userdata;
	send_word(BLOCKED, path, "");
	return 0;
}

static void tell_new(void *userdata, enum sbx_new_word word, const char *path, const char *text)
{
	(void)userdata;
	send_word((char)word, path, text);
}

static void beat(int sig)
{
	const char word = BEAT;
	int error = errno;

	(void)sig;
	send(channel_fd, &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	errno = error;
}

static void set_beat(bool on)
{
	const struct sigaction act = { .sa_handler = beat, .sa_flags = SA_RESTART };
	const struct timeval second = { .tv_sec = on };
	const struct itimerval timer = { second, second };
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigaction(SIGALRM, &act, NULL);
	sigprocmask(SIG_UNBLOCK, &alarms, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void look(const struct sbx_plan *p, struct sbx_new *x, uid_t writer)
{
	const char end = END;

	set_beat(true);
	sbx_view_new_blocked(p->facts, p->profile, p->system, &p->view, &p->protections, &writer, tell_blocked, NULL);
	if (x)
		sbx_new_check(x);
	set_beat(false);
	sbx_channel_send(channel_fd, &end, 1, NULL, 0);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Everything else is closed. Negative ones are none. */
static int close_but(int *fds, size_t n)
{
	unsigned int next = 0;

	qsort(fds, n, sizeof(*fds), by_number);
	for (size_t i = 0; i < n; i++) {
		if (fds[i] < 0)
			continue;
		if ((unsigned int)fds[i] > next && syscall(SYS_close_range, next, (unsigned int)fds[i] - 1, 0) < 0)
			return -errno;
		next = (unsigned int)fds[i] + 1;
	}
	return syscall(SYS_close_range, next, ~0u, 0) < 0 ? -errno : 0;
}

/* Stdio is closed too: somebody may wait for its end. */
static int keep_fds(const struct sbx_plan *p, int channel, int list, uid_t writer)
{
	size_t n = 0, n_max = 2 + p->view.n_mounts + 2 * p->protections.n_placeholder_dirs;
	SBX_AUTO_FREE int *fds = calloc(n_max, sizeof(*fds));

	if (!fds)
		return -ENOMEM;
	fds[n++] = channel;
	fds[n++] = list;
	for (size_t i = 0; i < p->view.n_mounts; i++)
		if (sbx_view_is_writable_dir(&p->view.mounts[i]) && sbx_view_writer(p->facts, &p->view.mounts[i]) == writer)
			fds[n++] = p->view.mounts[i].source.fd;
	for (size_t i = 0; i < p->protections.n_placeholder_dirs; i++) {
		fds[n++] = p->protections.placeholder_dirs[i].fd;
		fds[n++] = p->protections.placeholder_dirs[i].lock_fd;
	}
	return close_but(fds, n);
}

static void wait_for_death(pid_t launcher)
{
	for (int i = 0; i < 1000 && getppid() == launcher; i++)
		pause_ms(1);
	pause_ms(DEATH_MS);
}

/* Of the list, what is ours. True: all of it. */
static bool keep_grants(struct sbx_new *x, uid_t writer)
{
	bool all = true;

	for (size_t i = 0; x && i < x->n_grants; i++)
		if (x->grants[i].uid != writer) {
			x->grants[i].fd = -1;
			all = false;
		}
	return all;
}

/* The launcher was killed. @list: what says that the check is to be done, for who comes after us; -1. */
static void look_alone(struct sbx_new *x, int list, pid_t launcher)
{
	wait_for_death(launcher);
	if (!x)
		return;
	x->tell = NULL;
	sbx_new_check(x);
	if (list >= 0 && ftruncate(list, 0) < 0)
		return; /* it is done again, and finds nothing */
}

static struct sbx_new_watch *start_watch(struct sbx_new *x)
{
	struct sbx_new_watch *w = sbx_new_watch_open(x);
	char text[256];

	if (w)
		return w;
	sbx_text_cut(text, sizeof(text), "what the command makes is looked at only when it has ended, for it cannot be watched: %s",
		 strerror(errno));
	tell_new(NULL, SBX_NEW_STUCK, "", text);
	return NULL;
}

/* Until the launcher says something, or ended; meanwhile, what happens in the grants. @x NULL: nothing is watched. */
static bool wait_for_word(int channel, struct sbx_new *x, struct sbx_new_watch **watch)
{
	for (bool tried = *watch != NULL;;) {
		struct pollfd p[] = { { .fd = channel, .events = POLLIN },
				      { .fd = *watch ? sbx_new_watch_fd(*watch) : -1, .events = POLLIN } };
		int timeout_ms = *watch ? sbx_new_watch_timeout_ms(*watch) : x && !tried ? WATCH_AFTER_MS : -1;
		int n = poll(p, SBX_N_ELEMENTS(p), timeout_ms);

		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0 && p[0].revents)
			return true;
		if (n == 0 && !*watch) {
			*watch = start_watch(x);
			tried = true;
		}
		if (n >= 0 && *watch)
			sbx_new_watch_read(*watch);
	}
}

static _Noreturn void caretaker_main(struct sbx_run *r, int channel, uid_t uid, gid_t gid, pid_t launcher)
{
	const struct sbx_plan *p = r->plan;
	struct sbx_new *x = r->new_protected;
	struct sbx_new_watch *watch = NULL;
	const char ready = LOOK;
	bool ended = false, looked = false;
	int e, list = -1;
	size_t n;
	char said;

	channel_fd = channel;
	if (x && keep_grants(x, uid))
		list = openat(r->runtime.fd, SBX_NEW_LIST, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (x)
		x->tell = tell_new;
	e = keep_fds(p, channel, list, uid);
	if (e == 0)
		e = sbx_ids_drop(uid, gid);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0);
	setsid(); /* a SIGKILL to the launcher's group is not for us */
	if (e < 0 || sbx_channel_send(channel, &ready, 1, NULL, 0) != 0)
		_exit(1);
	while (!ended && wait_for_word(channel, looked ? NULL : x, &watch)) {
		e = sbx_channel_recv(channel, &said, 1, &n, NULL, 0, NULL, NULL);
		if (e == -EINTR)
			continue;
		if (e != 0)
			break;
		looked = true; /* the sandbox is ending, or has ended */
		watch = sbx_new_watch_close(watch);
		if (said == LOOK)
			look(p, x, uid);
		ended = ended || said == END;
	}
	if (!ended)
		look_alone(x, list, launcher);
	_exit(sbx_placeholders_remove_of(p, &uid) ? 0 : LEFT);
}

/* --- the launcher --- */

static int start(struct sbx_run *r, const struct sbx_mount_op *grant)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	struct sbx_run_caretaker *c = &r->caretakers[r->n_caretakers];
	const uid_t writer = sbx_view_writer(r->plan->facts, grant);
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
	return 0;
}

static int start_all(struct sbx_run *r)
{
	int e = 0;

	for (size_t i = 0; i < r->plan->view.n_mounts && e == 0; i++) {
		const struct sbx_mount_op *op = &r->plan->view.mounts[i];
		bool known = !sbx_view_is_writable_dir(op);

		for (size_t k = 0; k < r->n_caretakers; k++)
			known = known || r->caretakers[k].writer == sbx_view_writer(r->plan->facts, op);
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

/* What the check goes by, also written down for who does it when we and the caretaker are killed. */
static int prepare_check(struct sbx_run *r)
{
	int e;

	if (r->plan->protections.new_protected == SBX_NEW_PROTECTED_KEEP)
		return 0;
	r->new_protected = sbx_new_of_plan(r->plan, NULL);
	e = !r->new_protected ? -ENOMEM : r->new_protected->n_grants > 0 ? sbx_new_write(r->new_protected, r->runtime.fd) : 0;
	if (e < 0)
		sbx_err_set(&r->err, "cannot write the list of protected paths: %s", strerror(-e));
	if (e == 0 && r->new_protected->n_grants == 0)
		r->new_protected = sbx_new_free(r->new_protected);
	return e;
}

int sbx_caretaker_begin(struct sbx_run *r)
{
	int e = sbx_placeholders_make(r);

	if (e == 0)
		e = prepare_check(r);
	return e == 0 && (r->facts->privileged || r->new_protected) ? start_all(r) : e;
}

/* --- what they tell --- */

static void record(struct sbx_run *r, enum sbx_action action, enum sbx_reason reason, const char *path)
{
	struct sbx_event e = { .ts_ms = sbx_clock_realtime_ms(), .action = (uint8_t)action, .proto = SBX_PROTO_OTHER,
			       .reason = (uint8_t)reason, .count = 1 };

	sbx_text_cut(e.rule, sizeof(e.rule), "%s", path);
	sbx_record_event(&r->recorder, &e);
}

/* A line, unless there were too many of its kind. */
__attribute__((format(printf, 3, 4))) static void notice(struct sbx_run *r, unsigned int *n, const char *fmt, ...)
{
	struct sbx_err line = { 0 };
	va_list ap;

	if (++*n > LINES_MAX || r->options->quiet)
		return;
	va_start(ap, fmt);
	sbx_err_vset(&line, fmt, ap); /* escapes */
	va_end(ap);
	fprintf(stderr, "sbx-run: notice: %s\n", line.msg);
}

static int on_blocked(void *userdata, const char *path)
{
	struct sbx_run *r = userdata;

	record(r, SBX_NOTICE, SBX_REASON_BLOCKED_NAME, path);
	notice(r, &r->n_notices.blocked, "'%s' appeared, which is a blocked name: the next sandbox will not see it", path);
	return 0;
}

static void on_new(struct sbx_run *r, char word, const char *path, const char *text)
{
	switch (word) {
	case SBX_NEW_APPEARED:
		record(r, SBX_NOTICE, SBX_REASON_NEW_PROTECTED, path);
		notice(r, &r->n_notices.appeared, "%s", text);
		return;
	case SBX_NEW_KEPT:
		record(r, SBX_NOTICE, SBX_REASON_NEW_PROTECTED, path);
		notice(r, &r->n_notices.kept, "%s", text);
		return;
	case SBX_NEW_MOVED:
	case SBX_NEW_STUCK:
		record(r, SBX_NOTICE, SBX_REASON_UNTRUSTED, path);
		notice(r, &r->n_notices.moved, "%s", text);
		return;
	case SBX_NEW_PLANTED:
		sbx_err_set(&r->planted, "%s", text);
		return;
	default:
		return;
	}
}

/* One packet. False: the answer ends, or the caretaker did. */
static bool take(struct sbx_run *r, struct sbx_run_caretaker *c)
{
	static char packet[PACKET_MAX + 1];
	const char *text;
	size_t n;
	int e = sbx_channel_recv(c->fd, packet, PACKET_MAX, &n, NULL, 0, NULL, NULL);

	if (e == -EINTR || e == SBX_CHANNEL_E_AGAIN)
		return true;
	c->gone = e != 0;
	if (e != 0 || packet[0] == END)
		return false;
	packet[n] = '\0';
	c->ready = c->ready || packet[0] == LOOK;
	if (n <= 1)
		return true;
	text = packet + 1 + strlen(packet + 1);
	text += text < packet + n;
	if (packet[0] == BLOCKED)
		on_blocked(r, packet + 1);
	else
		on_new(r, packet[0], packet + 1, text);
	return true;
}

int sbx_caretaker_ready(struct sbx_run *r)
{
	for (size_t i = 0; i < r->n_caretakers; i++) {
		struct sbx_run_caretaker *c = &r->caretakers[i];
		struct pollfd p = { .fd = c->fd, .events = POLLIN };

		while (!c->ready && poll(&p, 1, ANSWER_MS) > 0 && take(r, c))
			;
		if (!c->ready) {
			sbx_err_set(&r->err, "a caretaker of the writable grants did not start");
			return -ECHILD;
		}
	}
	return 0;
}

void sbx_caretaker_hear(struct sbx_run *r, size_t i)
{
	take(r, &r->caretakers[i]);
	r->caretaker_gone = r->caretaker_gone || r->caretakers[i].gone;
}

static void take_answer(struct sbx_run *r, struct sbx_run_caretaker *c)
{
	uint64_t deadline = sbx_clock_monotonic_us() + LOOK_MS * 1000ull;
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	while (sbx_clock_monotonic_us() < deadline && poll(&p, 1, ANSWER_MS) > 0)
		if (!take(r, c)) {
			c->looked = !c->gone;
			return;
		}
}

static void count_rest(struct sbx_run *r)
{
	const unsigned int n[] = { r->n_notices.blocked, r->n_notices.appeared, r->n_notices.moved, r->n_notices.kept };
	unsigned int rest = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(n); i++)
		rest += n[i] > LINES_MAX ? n[i] - LINES_MAX : 0;
	if (rest > 0 && !r->options->quiet)
		fprintf(stderr, "sbx-run: notice: and %u more\n", rest);
}

static void tell_here(void *userdata, enum sbx_new_word word, const char *path, const char *text)
{
	on_new(userdata, (char)word, path, text);
}

/* Without a caretaker, and with the rights for it. */
static void look_here(struct sbx_run *r)
{
	sbx_view_new_blocked(r->plan->facts, r->plan->profile, r->plan->system, &r->plan->view, &r->plan->protections, NULL, on_blocked, r);
	if (!r->new_protected)
		return;
	r->new_protected->tell = tell_here;
	r->new_protected->userdata = r;
	sbx_new_check(r->new_protected);
	for (size_t i = 0; i < r->n_caretakers; i++)
		r->caretakers[i].looked = true;
}

void sbx_caretaker_look(struct sbx_run *r)
{
	const char look = LOOK;

	if (!r->released)
		return;
	if (r->n_caretakers == 0 || (r->caretaker_gone && !r->facts->privileged))
		look_here(r);
	for (size_t i = 0; i < r->n_caretakers; i++)
		if (!r->caretakers[i].looked && sbx_channel_send(r->caretakers[i].fd, &look, 1, NULL, 0) == 0)
			take_answer(r, &r->caretakers[i]);
	count_rest(r);
}

/* Did it end well, and in time? Its user may stop it or end it. */
static bool wait_for(struct sbx_run_caretaker *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	bool ended = false;
	int status = -1;
	char byte;
	size_t n;

	while (!ended && poll(&p, 1, ANSWER_MS) > 0) {
		int e = sbx_channel_recv(c->fd, &byte, 1, &n, NULL, 0, NULL, NULL);

		ended = e != 0 && e != -EINTR && e != SBX_CHANNEL_E_BROKEN; /* what is longer is not read any more */
	}
	if (!ended)
		kill(c->pid, SIGKILL); /* our child, not yet reaped */
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	c->fd = sbx_fd_close(c->fd);
	return status == 0;
}

/* A check that was not made is for a sweep. */
static void end_check(struct sbx_run *r, bool looked)
{
	if (!r->new_protected)
		return;
	if (!looked)
		fprintf(stderr, "sbx-run: what the command made was not looked at for what tools of this host would execute; the "
				"next start, or sbx-run --gc, does it\n");
	else if (r->runtime.fd >= 0)
		unlinkat(r->runtime.fd, SBX_NEW_LIST, 0);
}

void sbx_caretaker_end(struct sbx_run *r)
{
	bool done = r->facts->privileged || (r->n_caretakers > 0 && !r->caretaker_gone) ||
		    sbx_placeholders_remove_of(r->plan, NULL), looked = true;
	const char end = END;

	sbx_placeholders_forget(r); /* a lock that we share would be another's */
	for (size_t i = 0; i < r->n_caretakers; i++) {
		sbx_channel_send(r->caretakers[i].fd, &end, 1, NULL, 0);
		looked = looked && (r->caretakers[i].looked || !r->released);
		done = (wait_for(&r->caretakers[i]) || (r->caretaker_gone && !r->facts->privileged)) && done;
	}
	r->n_caretakers = 0;
	end_check(r, looked);
	done = done || r->plan->protections.n_placeholders == 0;
	r->swept_later = !done || (r->new_protected && !looked);
	if (!done)
		fprintf(stderr, "sbx-run: placeholders of protected paths are left in writable grants; the next start, or "
				"sbx-run --gc, removes them where it can\n");
	else
		sbx_placeholders_settled(r);
}
