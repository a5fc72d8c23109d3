/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control socket.
 *
 * Trust: a client has the uid of the sandbox's owner, its caller or root (peer.c), and may do to
 * the sandbox what the operations offer. It may still be hostile to the launcher, or broken: lines
 * are bounded, judged (request.c) and timed, and at most SBX_CONTROL_CLIENTS_MAX are connected.
 * When there are as many, the one that was idle longest makes room; where none is idle, the new one
 * is told to try again. Clients that stay connected for a command or for events never take the last
 * places (SBX_CONTROL_STAY_MAX).
 *
 * A session ends in its own callback (on_session) alone: others mark it broken and make the loop
 * call it. So no handler sees its session freed. A late answer goes by a token, whose serial no
 * second session has.
 */
#include "launcher/control/control.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/control/control_events.h"
#include "launcher/control/session.h"
#include "sys/process/proc.h"

#define REQUESTS_PER_TURN 16
#define ACCEPTS_PER_TURN  16
#define IDLE_US		  1000000 /* a client that asked nothing for so long may make room */
#define RETRY_US	  100000  /* after an accept that failed for lack of descriptors */

struct place {
	struct sbx_control *c;
	struct sbx_control_session s;
	bool broken; /* ends in its next callback */
};

struct sbx_control {
	struct sbx_control_config config;
	int fd; /* listens */
	struct sbx_watch *watch;
	uint32_t last_serial;
	struct sbx_control_events events;
	struct place places[SBX_CONTROL_CLIENTS_MAX];
};

/* --- answers --- */

/* Lets the loop call the session's callback at once. */
static void call_soon(struct place *p)
{
	p->s.watch->at_us = 1;
}

static struct place *find(struct sbx_control *c, struct sbx_control_token t)
{
	if (!t.serial || t.place >= SBX_CONTROL_CLIENTS_MAX)
		return NULL;
	return c->places[t.place].s.serial == t.serial && c->places[t.place].s.fd >= 0 ?
		       &c->places[t.place] :
		       NULL;
}

/* Queues the line and sends what the client takes. */
static void put(struct place *p, json_t *value_take)
{
	size_t n = 0;
	char *line = value_take ? sbx_control_print(value_take, SBX_CONTROL_ANSWER_MAX, &n) : NULL;

	json_decref(value_take);
	if (!line || sbx_control_session_put(&p->s, line, n) < 0 ||
	    sbx_control_session_send(&p->s, sbx_clock_monotonic_us()) < 0)
		p->broken = true;
	call_soon(p);
}

static json_t *refusal_json(enum sbx_control_code code, const char *field, const char *why)
{
	json_t *v = json_pack("{s:i, s:b, s:s}", "v", SBX_CONTROL_VERSION, "ok", 0, "code",
			      sbx_control_code_str(code));

	if (v && field && field[0])
		json_object_set_new(v, "field", sbx_control_text(field));
	if (v)
		json_object_set_new(v, "error", sbx_control_text(why));
	return v;
}

void sbx_control_answer(struct sbx_control *c, struct sbx_control_token t, json_t *values_take)
{
	struct place *p = find(c, t);
	json_t *v = NULL;

	if (p && p->s.asked) {
		p->s.asked = false;
		v = json_pack("{s:i, s:b}", "v", SBX_CONTROL_VERSION, "ok", 1);
		if (v && values_take && json_object_update(v, values_take) < 0) {
			json_decref(v);
			v = NULL;
		}
		put(p, v);
	}
	json_decref(values_take);
}

void sbx_control_refuse(struct sbx_control *c, struct sbx_control_token t,
			enum sbx_control_code code, const char *field, const char *fmt, ...)
{
	struct place *p = find(c, t);
	struct sbx_err err = { 0 };
	va_list ap;

	if (!p || !p->s.asked)
		return;
	va_start(ap, fmt);
	sbx_err_vset(&err, fmt, ap);
	va_end(ap);
	p->s.asked = false;
	put(p, refusal_json(code, field, err.msg));
}

void sbx_control_tell(struct sbx_control *c, struct sbx_control_token t, const char *name,
		      json_t *values_take)
{
	struct place *p = find(c, t);
	json_t *v = p ? json_pack("{s:i, s:s}", "v", SBX_CONTROL_VERSION, "event", name) : NULL;

	if (v && values_take)
		json_object_update(v, values_take);
	json_decref(values_take);
	if (p)
		put(p, v);
}

void sbx_control_hold(struct sbx_control *c, struct sbx_control_token t)
{
	struct place *p = find(c, t);

	if (p)
		p->s.held++;
}

void sbx_control_release(struct sbx_control *c, struct sbx_control_token t)
{
	struct place *p = find(c, t);

	if (!p || p->s.held == 0)
		return;
	p->s.held--;
	call_soon(p);
}

/* --- requests --- */

static bool stays(const struct place *p)
{
	return p->s.fd >= 0 && (p->s.held || p->s.follows);
}

/* May this client stay connected for a command or for events? */
static bool may_stay(const struct place *p)
{
	const struct sbx_control *c = p->c;
	size_t n = 0;

	for (size_t i = 0; i < SBX_CONTROL_CLIENTS_MAX; i++)
		n += stays(&c->places[i]);
	return stays(p) || n < SBX_CONTROL_STAY_MAX;
}

static void ask(struct place *p, struct sbx_span line, size_t n_fds)
{
	struct sbx_control *c = p->c;
	struct sbx_control_request rq = {
		.fds = { -1, -1, -1 },
		.n_fds = n_fds,
		.uid = p->s.peer.uid,
		.pid = p->s.peer.pid,
		.token = { (uint32_t)(p - c->places), p->s.serial },
	};
	struct sbx_control_refusal refusal;
	const struct sbx_control_op *op;
	json_t *body;

	_Static_assert(SBX_CONTROL_FDS_MAX == 3, "every descriptor begins as -1");
	for (size_t i = 0; i < n_fds; i++)
		rq.fds[i] = p->s.fds[i];
	p->s.asked = true;
	p->s.used_us = sbx_clock_monotonic_us();
	op = sbx_control_request_parse(line, n_fds, c->config.ops, c->config.n_ops, &body,
				       &refusal);
	rq.body = body;
	if (!op)
		sbx_control_refuse(c, rq.token, refusal.code, refusal.field, "%s", refusal.err.msg);
	else if (op->stays && !may_stay(p))
		sbx_control_refuse(c, rq.token, SBX_CONTROL_BUSY, NULL,
				   "%d clients run commands or follow events: try again when one "
				   "has ended",
				   SBX_CONTROL_STAY_MAX);
	else
		op->handle(c->config.userdata, &rq);
	for (size_t i = 0; i < n_fds; i++)
		sbx_fd_close(rq.fds[i]);
	json_decref(body);
}

static bool is_ready(const struct place *p)
{
	return !p->broken && !p->s.asked && sbx_control_session_n_waiting(&p->s) == 0;
}

/* Handles the lines that are there. Are there perhaps more? */
static bool ask_all(struct place *p)
{
	for (int i = 0; i < REQUESTS_PER_TURN && is_ready(p); i++) {
		struct sbx_span line;
		size_t n_fds;
		int r = sbx_control_session_next(&p->s, &line, &n_fds);

		if (r < 0)
			p->broken = true;
		if (r <= 0)
			return false;
		ask(p, line, n_fds);
	}
	return is_ready(p);
}

/* --- sessions --- */

static void end(struct place *p)
{
	struct sbx_control_token t = { (uint32_t)(p - p->c->places), p->s.serial };
	bool tell = p->s.held > 0 && p->c->config.gone;

	sbx_control_session_fini(&p->s);
	p->broken = false;
	if (tell)
		p->c->config.gone(p->c->config.userdata, t);
}

/* The client sends no more, and nothing is left to send it. */
static bool is_done(const struct place *p)
{
	return p->s.eof && is_ready(p) && !p->s.held && !p->s.follows;
}

/* Sends what the client takes, events as long as it takes them: the kept ones at most. */
static void send_all(struct place *p, uint64_t now)
{
	struct sbx_control_session *s = &p->s;
	bool more = false;

	do {
		if (s->follows && !p->broken)
			more = sbx_control_events_fill(&p->c->events, s);
		if (!p->broken && sbx_control_session_send(s, now) < 0)
			p->broken = true;
	} while (!p->broken && more && sbx_control_session_n_waiting(s) == 0 &&
		 s->next_event <= p->c->events.n);
}

static void on_session(void *userdata, short revents)
{
	struct place *p = userdata;
	struct sbx_control_session *s = &p->s;
	uint64_t now = sbx_clock_monotonic_us();
	bool more;

	/* Both directions are shut. Requests that came before are still read. */
	if ((revents & (POLLERR | POLLHUP)) && !(s->watch->events & POLLIN))
		p->broken = true;
	if ((revents & (POLLIN | POLLHUP)) && !p->broken && is_ready(p) &&
	    sbx_control_session_read(s, now) < 0)
		p->broken = true;
	more = ask_all(p);
	send_all(p, now);
	if (p->broken || (is_done(p) && !more) || sbx_control_session_is_late(s, now)) {
		end(p);
		return;
	}
	sbx_control_session_watch(s, now);
	if (more)
		call_soon(p);
}

/* A refusal to one that gets no session. */
static void turn_away(int fd, enum sbx_control_code code, const char *why)
{
	json_t *v = refusal_json(code, NULL, why);
	size_t n = 0;
	SBX_AUTO_FREE char *line = v ? sbx_control_print(v, SBX_CONTROL_ANSWER_MAX, &n) : NULL;

	json_decref(v);
	if (line)
		sbx_control_write(fd, line, n, NULL, 0);
}

static bool is_idle(const struct place *p, uint64_t now)
{
	return is_ready(p) && !stays(p) && p->s.used_us + IDLE_US < now;
}

/* A free place, or that of the client that was idle longest. NULL: none is. */
static struct place *find_place(struct sbx_control *c, uint64_t now)
{
	struct place *oldest = NULL;

	for (size_t i = 0; i < SBX_CONTROL_CLIENTS_MAX; i++) {
		struct place *p = &c->places[i];

		if (p->s.fd < 0)
			return p;
		if (is_idle(p, now) && (!oldest || p->s.used_us < oldest->s.used_us))
			oldest = p;
	}
	if (oldest)
		end(oldest);
	return oldest;
}

static void take_client(struct sbx_control *c, int fd_take)
{
	SBX_AUTO_CLOSE int fd = fd_take;
	uint64_t now = sbx_clock_monotonic_us();
	struct sbx_control_peer peer;
	struct place *p;
	const char *why;

	if (sbx_control_peer_judge(fd, c->config.owner, c->config.caller, &peer, &why) < 0) {
		turn_away(fd, SBX_CONTROL_DENIED, why);
		return;
	}
	p = find_place(c, now);
	if (!p) {
		turn_away(fd, SBX_CONTROL_BUSY,
			  "too many clients are connected to the sandbox: try again in a second");
		return;
	}
	if (++c->last_serial == 0)
		c->last_serial = 1;
	sbx_control_session_init(&p->s, sbx_fd_steal(&fd), c->last_serial);
	p->s.peer = peer;
	p->s.used_us = now;
	p->s.watch = sbx_watch_add(c->config.watches, p->s.fd, POLLIN, on_session, p);
	if (p->s.watch)
		return;
	turn_away(p->s.fd, SBX_CONTROL_BUSY, "sbx-run waits for too much: try again");
	sbx_control_session_fini(&p->s);
}

static void on_listener(void *userdata, short revents)
{
	struct sbx_control *c = userdata;

	(void)revents;
	c->watch->events = POLLIN;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			take_client(c, fd);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			/* Descriptors are short, and the socket stays readable: try later. */
			c->watch->events = 0;
			c->watch->at_us = sbx_clock_monotonic_us() + RETRY_US;
			return;
		}
	}
}

/* --- events --- */

void sbx_control_follow(struct sbx_control *c, struct sbx_control_token t, uint64_t since)
{
	struct place *p = find(c, t);

	if (!p)
		return;
	p->s.follows = true;
	p->s.next_event = since < c->events.n ? since + 1 : c->events.n + 1;
	call_soon(p);
}

void sbx_control_event(struct sbx_control *c, const struct sbx_event *e)
{
	if (!c)
		return;
	sbx_control_events_add(&c->events, e);
	for (size_t i = 0; i < SBX_CONTROL_CLIENTS_MAX; i++)
		if (c->places[i].s.fd >= 0 && c->places[i].s.follows)
			call_soon(&c->places[i]);
}

/* --- open, close --- */

static int no_socket(int e, struct sbx_err *err)
{
	sbx_err_set(err, "cannot make the control socket: %s", strerror(-e));
	return e;
}

/* By a descriptor of the directory: an address has 108 bytes, and a path may have more. The mode
 * of the file is the socket's own: so it is 0600 from its first moment. */
static int listen_in(int dir_fd, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	sbx_text_fit(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" SBX_CONTROL_SOCKET,
		     dir_fd);
	if (fd < 0 || fchmod(fd, 0600) < 0 ||
	    bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(fd, SBX_CONTROL_CLIENTS_MAX) < 0)
		return no_socket(-errno, err);
	return sbx_fd_steal(&fd);
}

int sbx_control_open(const struct sbx_control_config *config, struct sbx_control **ret_control,
		     struct sbx_err *err)
{
	struct sbx_control *c;
	int fd = listen_in(config->dir_fd, err);

	*ret_control = NULL;
	if (fd < 0)
		return fd;
	c = calloc(1, sizeof(*c));
	if (!c) {
		sbx_fd_close(fd);
		return no_socket(-ENOMEM, err);
	}
	c->config = *config;
	c->fd = fd;
	for (size_t i = 0; i < SBX_CONTROL_CLIENTS_MAX; i++) {
		c->places[i].c = c;
		c->places[i].s.fd = -1;
	}
	c->watch = sbx_watch_add(config->watches, fd, POLLIN, on_listener, c);
	if (!c->watch) {
		sbx_control_close(c);
		return no_socket(-ENOSPC, err);
	}
	*ret_control = c;
	return 0;
}

struct sbx_control *sbx_control_close(struct sbx_control *c)
{
	if (!c)
		return NULL;
	c->watch = sbx_watch_remove(c->watch);
	sbx_fd_close(c->fd);
	unlinkat(c->config.dir_fd, SBX_CONTROL_SOCKET, 0);
	for (size_t i = 0; i < SBX_CONTROL_CLIENTS_MAX; i++) {
		struct sbx_control_session *s = &c->places[i].s;

		if (s->fd < 0)
			continue;
		if (s->follows)
			sbx_control_events_fill(&c->events, s);
		sbx_control_session_send(s, 0);
		sbx_control_session_fini(s);
	}
	sbx_control_events_fini(&c->events);
	free(c);
	return NULL;
}
