/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Protect helpers.
 *
 * A privileged launcher drops its privileges before the command is released, and must not walk a
 * user's directories as root. So before that it forks a protect helper for each user that writable
 * grants are written as (mostly one). A helper has that user's ids, the directories, their locks
 * and a channel, and nothing else. An unprivileged launcher does the work itself, unless new
 * protected paths are checked (new_protected.h) and the command lasts for WATCH_AFTER_MS: then it
 * forks a helper, which watches. That one also makes the check after the launcher was killed;
 * without it the cleanup process does.
 *
 * A privileged launcher's helper begins to watch WATCH_AFTER_MS after its start. All look at what
 * has appeared until then. A shorter command never starts a watch: closing an inotify descriptor
 * takes the kernel 10 ms, and the launcher waits for each of its processes.
 *
 * Protocol: the helper watches until the launcher sends LOOK. It answers with one packet for each
 * finding and END. While it works it sends BEATs, so that the launcher can tell a long search from
 * a process that its user stopped. At END, or at the channel's end, it removes placeholders and
 * exits; the exit status says whether all were removed.
 *
 * The channel also ends when the launcher is killed. Its files are closed before its children, the
 * sandbox among them, are killed. So the helper waits until the launcher is gone and DEATH_MS
 * longer, because a mask must not go before the command that it hides something from. Then it
 * looks.
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
#include "launcher/protect/overmounts.h"
#include "launcher/view/view.h"
#include "sys/process/proc.h"

#define LOOK		'l'
#define END		'e' /* of an answer, and of a run that ended as it should */
#define BEAT		'.'
#define BLOCKED		'b' /* and a path; the others are enum sbx_new_word, a path and a text */
#define PACKET_MAX	(8 * PATH_MAX)
#define ANSWER_MS	5000
#define LOOK_MS		120000 /* for all of an answer, BEATs or not */
#define LINES_MAX	8 /* on stderr; the rest is counted */
#define DEATH_MS	100
#define LEFT		2 /* exit status: some placeholders could not be removed */
#define WATCH_AFTER_MS	30

static void pause_ms(long ms)
{
	const struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

/* --- the helper --- */

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

static void look(const struct sbx_protect_helpers *h, struct sbx_new *x, uid_t writer)
{
	const struct sbx_plan *p = h->plan;
	const char end = END;

	set_beat(true);
	sbx_overmounts_new_blocked(p->facts, p->profile, p->system, &p->view, &p->protections,
				   &h->placeholders, &writer, tell_blocked, NULL);
	if (x)
		sbx_new_check(x);
	set_beat(false);
	sbx_channel_send(channel_fd, &end, 1, NULL, 0);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Close all descriptors but @fds. Negative ones are ignored. */
static int close_but(int *fds, size_t n)
{
	unsigned int next = 0;

	qsort(fds, n, sizeof(*fds), by_number);
	for (size_t i = 0; i < n; i++) {
		if (fds[i] < 0)
			continue;
		if ((unsigned int)fds[i] > next &&
		    syscall(SYS_close_range, next, (unsigned int)fds[i] - 1, 0) < 0)
			return -errno;
		next = (unsigned int)fds[i] + 1;
	}
	return syscall(SYS_close_range, next, ~0u, 0) < 0 ? -errno : 0;
}

/* Close what the helper does not need. Stdio is closed too: the launcher's caller may wait for its
 * end. */
static int close_others(const struct sbx_protect_helpers *h, int channel, int list, uid_t writer)
{
	const struct sbx_plan *p = h->plan;
	size_t n = 0, n_max = 2 + p->view.n_mounts + 2 * p->protections.n_placeholder_dirs;
	SBX_AUTO_FREE int *fds = calloc(n_max, sizeof(*fds));

	if (!fds)
		return -ENOMEM;
	fds[n++] = channel;
	fds[n++] = list;
	for (size_t i = 0; i < p->view.n_mounts; i++)
		if (sbx_view_is_writable_dir(&p->view.mounts[i]) &&
		    sbx_view_writer(p->facts, &p->view.mounts[i]) == writer)
			fds[n++] = p->view.mounts[i].source.fd;
	for (size_t i = 0; i < p->protections.n_placeholder_dirs; i++) {
		fds[n++] = p->protections.placeholder_dirs[i].fd;
		fds[n++] = h->placeholders.locks[i].fd;
	}
	return close_but(fds, n);
}

static void wait_for_death(pid_t launcher)
{
	for (int i = 0; i < 1000 && getppid() == launcher; i++)
		pause_ms(1);
	pause_ms(DEATH_MS);
}

/* Drop the grants of other writers from the list. True: there were none. */
static bool drop_others(struct sbx_new *x, uid_t writer)
{
	bool all = true;

	for (size_t i = 0; x && i < x->n_grants; i++)
		if (x->grants[i].uid != writer) {
			x->grants[i].fd = -1;
			all = false;
		}
	return all;
}

/* The launcher was killed. @list: the file that says the check is still to be made; it is emptied
 * afterwards. -1: it stays, because other writers' grants are on it. */
static void look_alone(struct sbx_new *x, int list, pid_t launcher)
{
	wait_for_death(launcher);
	if (!x)
		return;
	x->tell = NULL;
	sbx_new_check(x);
	if (list >= 0 && ftruncate(list, 0) < 0)
		return; /* the check is made once more, and finds nothing */
}

static struct sbx_new_watch *start_watch(struct sbx_new *x, int channel)
{
	struct sbx_new_watch *w = sbx_new_watch_open(x, channel);
	char text[256];

	if (w)
		return w;
	sbx_text_cut(text, sizeof(text),
		     "new protected paths are examined only when the sandbox has ended, because "
		     "they cannot be watched: %s",
		     strerror(errno));
	tell_new(NULL, SBX_NEW_UNSEARCHED, "", text);
	return NULL;
}

/* Watch the grants, after @after_ms, until the launcher sends something or ends. @x NULL: nothing
 * is watched. False: the channel is broken. */
static bool wait_for_word(int channel, struct sbx_new *x, int after_ms,
			  struct sbx_new_watch **watch)
{
	for (bool tried = *watch != NULL;;) {
		struct pollfd p[] = { { .fd = channel, .events = POLLIN },
				      { .fd = *watch ? sbx_new_watch_fd(*watch) : -1,
					.events = POLLIN } };
		int timeout_ms = *watch	     ? sbx_new_watch_timeout_ms(*watch) :
				 x && !tried ? after_ms :
					       -1;
		int n = poll(p, SBX_N_ELEMENTS(p), timeout_ms);

		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0 && p[0].revents)
			return true;
		if (n == 0 && !*watch) {
			*watch = start_watch(x, channel);
			tried = true;
		}
		if (n >= 0 && *watch)
			sbx_new_watch_read(*watch);
	}
}

struct helper_input {
	int channel, runtime_fd, watch_after_ms;
	uid_t uid;
	gid_t gid;
	pid_t launcher;
};

static _Noreturn void helper_main(const struct sbx_protect_helpers *h,
				  const struct helper_input *in)
{
	struct sbx_new *x = h->new_protected;
	struct sbx_new_watch *watch = NULL;
	const char ready = LOOK;
	bool ended = false, looked = false;
	int e, list = -1;
	size_t n;
	char said;

	channel_fd = in->channel;
	if (x && drop_others(x, in->uid))
		list = openat(in->runtime_fd, SBX_NEW_LIST, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (x)
		x->tell = tell_new;
	e = close_others(h, in->channel, list, in->uid);
	if (e == 0)
		e = sbx_ids_drop(in->uid, in->gid);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0);
	setsid(); /* a SIGKILL to the launcher's process group does not reach the helper */
	if (e < 0 || sbx_channel_send(in->channel, &ready, 1, NULL, 0) != 0)
		_exit(1);
	while (!ended &&
	       wait_for_word(in->channel, looked ? NULL : x, in->watch_after_ms, &watch)) {
		e = sbx_channel_recv(in->channel, &said, 1, &n, NULL, 0, NULL, NULL);
		if (e == -EINTR)
			continue;
		if (e != 0)
			break;
		looked = true; /* the sandbox is ending, or has ended */
		watch = sbx_new_watch_close(watch);
		if (said == LOOK)
			look(h, x, in->uid);
		ended = ended || said == END;
	}
	if (!ended)
		look_alone(x, list, in->launcher);
	_exit(sbx_placeholders_remove_of(&h->placeholders, &in->uid) ? 0 : LEFT);
}

/* --- the launcher --- */

void sbx_protect_helpers_init(struct sbx_protect_helpers *h)
{
	*h = (struct sbx_protect_helpers){ 0 };
}

void sbx_protect_helpers_fini(struct sbx_protect_helpers *h)
{
	for (size_t i = 0; i < h->n; i++)
		h->v[i].fd = sbx_fd_close(h->v[i].fd);
	h->n = 0;
	h->new_protected = sbx_new_free(h->new_protected);
	sbx_placeholders_fini(&h->placeholders);
}

static int start(struct sbx_protect_helpers *h, const struct sbx_mount_op *grant, int runtime_fd,
		 struct sbx_err *err)
{
	const struct sbx_facts *f = h->plan->facts;
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	struct helper_input in = { .runtime_fd = runtime_fd,
				   .uid = sbx_view_writer(f, grant),
				   .gid = grant->idmap ? grant->source.st.st_gid : f->gid,
				   .launcher = getpid(),
				   .watch_after_ms = f->privileged ? WATCH_AFTER_MS : 0 };
	int e = sbx_channel_pair(&ours, &theirs);
	pid_t pid;

	if (e < 0)
		return e;
	in.channel = theirs;
	pid = sbx_proc_clone(0, NULL, err);
	if (pid == 0)
		helper_main(h, &in);
	if (pid < 0)
		return pid;
	h->v[h->n++] = (struct sbx_protect_helper){ .pid = pid,
						    .fd = sbx_fd_steal(&ours),
						    .writer = in.uid };
	return 0;
}

/* One for each user that writable grants are written as. */
static int start_all(struct sbx_protect_helpers *h, int runtime_fd, struct sbx_err *err)
{
	const struct sbx_view *view = &h->plan->view;
	int e = 0;

	for (size_t i = 0; i < view->n_mounts && e == 0; i++) {
		const struct sbx_mount_op *op = &view->mounts[i];
		bool known = !sbx_view_is_writable_dir(op);

		for (size_t k = 0; k < h->n; k++)
			known = known || h->v[k].writer == sbx_view_writer(h->plan->facts, op);
		if (!known)
			e = start(h, op, runtime_fd, err);
	}
	if (e < 0)
		sbx_err_set(err, "cannot start a protect helper of the writable grants: %s",
			    strerror(-e));
	return e;
}

/* Collect what the check needs. It is written down too, for the case that launcher and helper are
 * killed. */
static int prepare_check(struct sbx_protect_helpers *h, int runtime_fd, struct sbx_err *err)
{
	int e;

	if (h->plan->protections.new_protected == SBX_NEW_PROTECTED_KEEP)
		return 0;
	h->new_protected = sbx_new_of_plan(h->plan, &h->placeholders, NULL);
	e = !h->new_protected		   ? -ENOMEM :
	    h->new_protected->n_grants > 0 ? sbx_new_write(h->new_protected, runtime_fd) :
					     0;
	if (e < 0)
		sbx_err_set(err, "cannot write the list of protected paths: %s", strerror(-e));
	if (e == 0 && h->new_protected->n_grants == 0)
		h->new_protected = sbx_new_free(h->new_protected);
	return e;
}

int sbx_protect_helpers_start(struct sbx_protect_helpers *h, const struct sbx_plan *p,
			      int runtime_fd, sbx_protect_tell tell, void *userdata,
			      struct sbx_err *err)
{
	int e;

	h->plan = p;
	h->tell = tell;
	h->userdata = userdata;
	e = sbx_placeholders_make(&h->placeholders, p->facts, &p->view, &p->protections, runtime_fd,
				  err);
	if (e == 0)
		e = prepare_check(h, runtime_fd, err);
	return e == 0 && p->facts->privileged ? start_all(h, runtime_fd, err) : e;
}

void sbx_protect_helpers_watch(struct sbx_protect_helpers *h, int runtime_fd, struct sbx_err *err)
{
	h->helper_gone = start_all(h, runtime_fd, err) < 0 || h->helper_gone;
	h->watch_at_us = 0;
}

/* --- what the helpers tell --- */

static void record(const struct sbx_protect_helpers *h, enum sbx_reason reason, const char *path)
{
	struct sbx_event e = { .ts_ms = sbx_clock_realtime_ms(),
			       .action = SBX_NOTICE,
			       .proto = SBX_PROTO_OTHER,
			       .reason = (uint8_t)reason,
			       .count = 1 };

	sbx_text_cut(e.rule, sizeof(e.rule), "%s", path);
	h->tell(h->userdata, &e);
}

/* The kinds of notices. Each has its own limit of lines, so that a command that makes many files of
 * one kind hides no notice of another. */
static const struct {
	char word;
	enum sbx_reason reason;
} notices[SBX_N_PROTECT_NOTICES] = {
	{ BLOCKED, SBX_REASON_BLOCKED_NAME },
	{ SBX_NEW_APPEARED, SBX_REASON_NEW_PROTECTED },
	{ SBX_NEW_STAYS, SBX_REASON_NEW_PROTECTED },
	{ SBX_NEW_MOVED, SBX_REASON_UNTRUSTED },
	{ SBX_NEW_STUCK, SBX_REASON_STUCK },
	{ SBX_NEW_UNSEARCHED, SBX_REASON_UNSEARCHED },
};

/* Record the notice @word about @path, and print @text, unless there were too many of its kind. */
static void notice(struct sbx_protect_helpers *h, char word, const char *path, const char *text)
{
	struct sbx_err line = { 0 };

	for (size_t i = 0; i < SBX_N_PROTECT_NOTICES; i++) {
		if (notices[i].word != word)
			continue;
		record(h, notices[i].reason, path);
		if (++h->n_notices[i] > LINES_MAX || h->plan->options->quiet)
			return;
		sbx_err_set(&line, "%s", text); /* escapes */
		fprintf(stderr, "sbx-run: notice: %s\n", line.msg);
	}
}

static int on_blocked(void *userdata, const char *path)
{
	char text[PATH_MAX + 128];

	sbx_text_cut(text, sizeof(text),
		     "'%s' appeared, which is a blocked name: the next sandbox will not see it",
		     path);
	notice(userdata, BLOCKED, path, text);
	return 0;
}

static void on_new(struct sbx_protect_helpers *h, char word, const char *path, const char *text)
{
	if (word == SBX_NEW_PLANTED)
		sbx_err_set(&h->planted, "%s", text);
	else
		notice(h, word, path, text);
}

/* Take in one packet of @c. False: the answer is complete, or the helper ended. */
static bool take(struct sbx_protect_helpers *h, struct sbx_protect_helper *c)
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
		on_blocked(h, packet + 1);
	else
		on_new(h, packet[0], packet + 1, text);
	return true;
}

int sbx_protect_helpers_ready(struct sbx_protect_helpers *h, struct sbx_err *err)
{
	for (size_t i = 0; i < h->n; i++) {
		struct sbx_protect_helper *c = &h->v[i];
		struct pollfd p = { .fd = c->fd, .events = POLLIN };

		while (!c->ready && poll(&p, 1, ANSWER_MS) > 0 && take(h, c))
			;
		if (!c->ready) {
			sbx_err_set(err, "a protect helper of the writable grants did not start");
			return -ECHILD;
		}
	}
	if (h->new_protected && h->n == 0)
		h->watch_at_us = sbx_clock_monotonic_us() + WATCH_AFTER_MS * 1000;
	return 0;
}

void sbx_protect_helpers_hear(struct sbx_protect_helpers *h, size_t i)
{
	take(h, &h->v[i]);
	h->helper_gone = h->helper_gone || h->v[i].gone;
}

static void take_answer(struct sbx_protect_helpers *h, struct sbx_protect_helper *c)
{
	uint64_t deadline = sbx_clock_monotonic_us() + LOOK_MS * 1000ull;
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	while (sbx_clock_monotonic_us() < deadline && poll(&p, 1, ANSWER_MS) > 0)
		if (!take(h, c)) {
			c->looked = !c->gone;
			return;
		}
}

static void count_rest(const struct sbx_protect_helpers *h)
{
	unsigned int rest = 0;

	for (size_t i = 0; i < SBX_N_PROTECT_NOTICES; i++)
		rest += h->n_notices[i] > LINES_MAX ? h->n_notices[i] - LINES_MAX : 0;
	if (rest > 0 && !h->plan->options->quiet)
		fprintf(stderr, "sbx-run: notice: and %u more\n", rest);
}

static void tell_here(void *userdata, enum sbx_new_word word, const char *path, const char *text)
{
	on_new(userdata, (char)word, path, text);
}

/* Look in this process: there is no helper, or it is gone and the launcher has the same
 * privileges. */
static void look_here(struct sbx_protect_helpers *h)
{
	const struct sbx_plan *p = h->plan;

	sbx_overmounts_new_blocked(p->facts, p->profile, p->system, &p->view, &p->protections,
				   &h->placeholders, NULL, on_blocked, h);
	if (!h->new_protected)
		return;
	h->new_protected->tell = tell_here;
	h->new_protected->userdata = h;
	sbx_new_check(h->new_protected);
	for (size_t i = 0; i < h->n; i++)
		h->v[i].looked = true;
}

static bool is_lost_but_ours(const struct sbx_protect_helpers *h)
{
	return h->helper_gone && !h->plan->facts->privileged;
}

void sbx_protect_helpers_look(struct sbx_protect_helpers *h)
{
	const char look = LOOK;

	if (h->n == 0 || is_lost_but_ours(h))
		look_here(h);
	for (size_t i = 0; i < h->n; i++)
		if (!h->v[i].looked && sbx_channel_send(h->v[i].fd, &look, 1, NULL, 0) == 0)
			take_answer(h, &h->v[i]);
	count_rest(h);
}

/* Wait for the end of @c, and kill it when that takes too long: its user may stop or end it. True:
 * all its placeholders are removed. */
static bool wait_for(struct sbx_protect_helper *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	bool ended = false;
	int status = -1;
	char byte;
	size_t n;

	while (!ended && poll(&p, 1, ANSWER_MS) > 0) {
		int e = sbx_channel_recv(c->fd, &byte, 1, &n, NULL, 0, NULL, NULL);

		/* longer packets are ignored by now */
		ended = e != 0 && e != -EINTR && e != SBX_CHANNEL_E_BROKEN;
	}
	if (!ended)
		kill(c->pid, SIGKILL); /* our child, not yet reaped */
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	c->fd = sbx_fd_close(c->fd);
	return status == 0;
}

/* Remove the list of a check that was made. One that was not made is left to a sweep. */
static void end_check(const struct sbx_protect_helpers *h, bool looked, int runtime_fd)
{
	if (!h->new_protected)
		return;
	if (!looked)
		fprintf(stderr,
			"sbx-run: the command's work was not looked at for new files that tools of "
			"this host would execute; the next start, or sbx-run --gc, does it\n");
	else if (runtime_fd >= 0)
		unlinkat(runtime_fd, SBX_NEW_LIST, 0);
}

bool sbx_protect_helpers_end(struct sbx_protect_helpers *h, bool ran, int runtime_fd)
{
	bool looked = true, done, settled;
	const char end = END;

	if (!h->plan)
		return true;
	done = h->plan->facts->privileged || (h->n > 0 && !h->helper_gone) ||
	       sbx_placeholders_remove_of(&h->placeholders, NULL);
	/* the helpers share our locks: held here, they would count as another sandbox's */
	sbx_placeholders_fini(&h->placeholders);
	for (size_t i = 0; i < h->n; i++) {
		sbx_channel_send(h->v[i].fd, &end, 1, NULL, 0);
		looked = looked && (h->v[i].looked || !ran);
		done = (wait_for(&h->v[i]) || is_lost_but_ours(h)) && done;
	}
	h->n = 0;
	end_check(h, looked, runtime_fd);
	done = done || h->plan->protections.n_placeholders == 0;
	settled = done && (!h->new_protected || looked);
	if (!done)
		fprintf(stderr, "sbx-run: placeholders of protected paths are left in writable "
				"grants; the next start, or "
				"sbx-run --gc, removes them where it can\n");
	else if (h->plan->protections.n_placeholders > 0 && runtime_fd >= 0)
		sbx_placeholders_settled(runtime_fd);
	h->new_protected = sbx_new_free(h->new_protected);
	return settled;
}
