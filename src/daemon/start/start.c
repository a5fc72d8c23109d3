/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/start/start.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/output/log_read.h"
#include "daemon/start/place.h"

/* sbx-output ends a late start after SBX_START_S, and needs some time for that. */
#define LATE_S (SBX_START_S + 8)
#define TIDY_S 3600
#define KEEP_S (7 * 86400)

struct start {
	struct sbx_starts *all;
	struct start *next;
	char id[SBX_ID_LEN + 1];
	char *text; /* while it waits; NULL: it has begun */
	sbx_start_fn fn;
	void *userdata;
	int fd; /* to sbx-output; -1: it has answered */
	char answer[SBX_START_ANSWER_MAX];
	size_t n_answer;
	struct event *on_answer, *on_late;
	struct sbx_dir_watch *watch;
	struct sbx_log_reader log;
	struct sbx_start_result result;
	bool done;
	size_t n_said;
	char said[SBX_START_SAID_MAX];
};

struct sbx_starts {
	struct sbx_start_places places;
	struct event *tidy;
	struct start *under_way, *waiting, **waiting_end;
	size_t n_under_way, n_waiting;
};

static void begin_waiting(struct sbx_starts *all);

static void start_free(struct start *s)
{
	sbx_dir_watch_free(s->watch);
	sbx_log_reader_close(&s->log);
	if (s->on_answer)
		event_free(s->on_answer);
	if (s->on_late)
		event_free(s->on_late);
	sbx_fd_close(s->fd);
	free(s->text);
	free(s);
}

/* Tells the end of a start that was under way. */
static void finish(struct start *s, enum sbx_start_end end, int number)
{
	struct sbx_starts *all = s->all;
	struct start **at = &all->under_way;
	struct sbx_start_result result = { .end = end, .said = s->said, .n_said = s->n_said };

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	all->n_under_way--;
	if (end == SBX_START_FAILED || end == SBX_START_NO_UNIT)
		result.error = number;
	else
		result.status = number;
	if (end != SBX_START_RUNS && end != SBX_START_LATE)
		sbx_place_remove(all->places.facts, s->id);
	s->fn(s->userdata, &result);
	start_free(s);
	begin_waiting(all);
}

/* --- the log --- */

_Static_assert(SBX_START_SAID_MAX >= SBX_FRAME_WARNINGS_MAX, "there is room for the warnings");

static void keep(struct start *s, struct sbx_span text)
{
	size_t room = sizeof(s->said) - s->n_said, n = text.n < room ? text.n : room;

	memcpy(s->said + s->n_said, text.p, n);
	s->n_said += n;
}

static bool take(const struct sbx_frame *f, uint64_t next, void *userdata)
{
	struct start *s = userdata;
	enum sbx_frame_end end;
	uint32_t status;

	(void)next;
	switch (f->kind) {
	case SBX_FRAME_STDERR:
		keep(s, f->payload);
		return true;
	case SBX_FRAME_READY: /* what the command wrote meanwhile is no warning */
		s->n_said = 0;
		keep(s, f->payload);
		s->result.end = SBX_START_RUNS;
		s->done = true;
		return false;
	case SBX_FRAME_END:
		sbx_frame_end(f, &status, &end);
		s->result.end = end == SBX_FRAME_LATE ? SBX_START_LATE : SBX_START_REFUSED;
		s->result.status = (int)status;
		s->done = true;
		return false;
	default:
		return true;
	}
}

static void on_log(void *userdata)
{
	struct start *s = userdata;
	char dir[4096];
	uint64_t lost;
	int r = 1;

	if (s->log.fd < 0 && (sbx_start_dir(s->all->places.facts, s->id, dir, sizeof(dir)) < 0 ||
			      sbx_log_reader_open(&s->log, dir, 0) < 0))
		return; /* it is not there yet */
	while (r > 0 && !s->done)
		r = sbx_log_read(&s->log, take, s, &lost);
	if (s->done)
		finish(s, s->result.end, s->result.status);
	else if (r < 0)
		finish(s, SBX_START_FAILED, -r);
}

/* No answer of sbx-output, or one that it does not give. */
static void fail_to_begin(struct start *s, int error)
{
	finish(s, s->all->places.start_socket ? SBX_START_NO_UNIT : SBX_START_FAILED, error);
}

static void on_late(evutil_socket_t fd, short what, void *userdata)
{
	struct start *s = userdata;

	(void)fd;
	(void)what;
	sbx_place_kill(s->all->places.facts, s->id);
	if (s->fd >= 0) /* sbx-output that comes later finds no job, and cannot answer */
		fail_to_begin(s, ETIMEDOUT);
	else
		finish(s, SBX_START_LATE, 0);
}

/* sbx-output says that the log has begun, or why not. */
static void on_answer(evutil_socket_t fd, short what, void *userdata)
{
	struct start *s = userdata;
	ssize_t n = read(fd, s->answer + s->n_answer, sizeof(s->answer) - s->n_answer);
	int error = 0, r;

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	s->n_answer += n > 0 ? (size_t)n : 0;
	r = n > 0 ? sbx_start_line_answer_parse(sbx_span(s->answer, s->n_answer), &error) : -EPIPE;
	if (r == 0)
		return;
	if (r < 0 || error) {
		if (r < 0)
			fail_to_begin(s, -r);
		else
			finish(s, SBX_START_FAILED, error);
		return;
	}
	event_free(s->on_answer);
	s->on_answer = NULL;
	s->fd = sbx_fd_close(s->fd);
	on_log(s);
}

/* --- beginning --- */

/* 0 or -errno. */
static int watch(struct start *s)
{
	static const struct timeval late = { .tv_sec = LATE_S };
	const struct sbx_start_places *p = &s->all->places;
	char dir[4096];
	int r = sbx_start_dir(p->facts, s->id, dir, sizeof(dir));

	r = r ? r : sbx_dir_watch_new(p->watches, dir, on_log, s, &s->watch);
	if (r < 0)
		return r;
	s->on_late = evtimer_new(p->base, on_late, s);
	return s->on_late && evtimer_add(s->on_late, &late) == 0 ? 0 : -ENOMEM;
}

static void begin_process(struct start *s)
{
	const struct sbx_start_places *p = &s->all->places;

	s->fd = sbx_place_begin(p->facts, p->start_socket, s->id);
	if (s->fd < 0) {
		fail_to_begin(s, -s->fd);
		return;
	}
	s->on_answer = event_new(p->base, s->fd, EV_READ | EV_PERSIST, on_answer, s);
	if (!s->on_answer || event_add(s->on_answer, NULL) < 0)
		finish(s, SBX_START_FAILED, ENOMEM);
}

static void begin(struct start *s)
{
	struct sbx_starts *all = s->all;
	char *text = sbx_steal_ptr(&s->text);
	int r;

	s->next = all->under_way;
	all->under_way = s;
	all->n_under_way++;
	r = sbx_place_make(all->places.facts, s->id, text);
	free(text);
	r = r ? r : watch(s);
	if (r < 0)
		finish(s, SBX_START_FAILED, -r);
	else
		begin_process(s);
}

static void begin_waiting(struct sbx_starts *all)
{
	struct start *s = all->waiting;

	if (!s || all->n_under_way >= SBX_STARTS_MAX)
		return;
	all->waiting = s->next;
	if (!all->waiting)
		all->waiting_end = &all->waiting;
	all->n_waiting--;
	begin(s);
}

void sbx_start(struct sbx_starts *all, const char id[SBX_ID_LEN + 1], const char *text,
	       sbx_start_fn fn, void *userdata)
{
	struct sbx_start_result result = { .end = SBX_START_FULL };
	struct start *s = NULL;

	if (all->n_waiting < SBX_STARTS_WAITING_MAX) {
		s = calloc(1, sizeof(*s));
		if (s)
			s->text = strdup(text);
		if (s && !s->text) {
			free(s);
			s = NULL;
		}
		if (!s)
			result = (struct sbx_start_result){ .end = SBX_START_FAILED,
							    .error = ENOMEM };
	}
	if (!s) {
		fn(userdata, &result);
		return;
	}
	s->all = all;
	s->fn = fn;
	s->userdata = userdata;
	s->fd = s->log.fd = s->log.dir_fd = -1;
	memcpy(s->id, id, sizeof(s->id));
	if (all->n_under_way < SBX_STARTS_MAX) {
		begin(s);
		return;
	}
	*all->waiting_end = s;
	all->waiting_end = &s->next;
	all->n_waiting++;
}

/* --- all --- */

static void on_tidy(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_starts *all = userdata;

	(void)fd;
	(void)what;
	sbx_places_tidy(all->places.facts, KEEP_S);
}

int sbx_starts_new(const struct sbx_start_places *places, struct sbx_starts **ret_starts)
{
	static const struct timeval interval = { .tv_sec = TIDY_S };
	struct sbx_starts *all = calloc(1, sizeof(*all));

	*ret_starts = all;
	if (!all)
		return -ENOMEM;
	all->places = *places;
	all->waiting_end = &all->waiting;
	all->tidy = event_new(places->base, -1, EV_PERSIST, on_tidy, all);
	if (!all->tidy || event_add(all->tidy, &interval) < 0) {
		*ret_starts = sbx_starts_free(all);
		return -ENOMEM;
	}
	on_tidy(-1, 0, all);
	return 0;
}

static void free_list(struct start *s)
{
	while (s) {
		struct start *next = s->next;

		start_free(s);
		s = next;
	}
}

struct sbx_starts *sbx_starts_free(struct sbx_starts *all)
{
	if (!all)
		return NULL;
	free_list(all->under_way);
	free_list(all->waiting);
	if (all->tidy)
		event_free(all->tidy);
	free(all);
	return NULL;
}
