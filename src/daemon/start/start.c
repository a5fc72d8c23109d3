/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/start/start.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/output/log_read.h"
#include "daemon/start/place.h"
#include "sys/process/proc.h"

/* sbx-output ends a late start after SBX_START_S, and needs some time for that. */
#define LATE_S	(SBX_START_S + 8)
#define TIDY_S	3600
#define KEEP_S	(7 * 86400)

struct start {
	struct sbx_starts *all;
	struct start *next;
	char id[SBX_ID_LEN + 1];
	char *text; /* while it waits; NULL: it has begun */
	sbx_start_fn fn;
	void *userdata;
	pid_t pid; /* of the process that begins sbx-output; 0: it was reaped */
	int pid_fd;
	struct event *on_pid, *on_late;
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
	if (s->on_pid)
		event_free(s->on_pid);
	if (s->on_late)
		event_free(s->on_late);
	sbx_fd_close(s->pid_fd);
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
	if (end == SBX_START_FAILED)
		result.error = number;
	else
		result.status = number;
	sbx_proc_end(&s->pid); /* it forked, or was about to */
	if (end == SBX_START_REFUSED || end == SBX_START_FAILED)
		sbx_place_remove(all->places.facts, s->id);
	s->fn(s->userdata, &result);
	start_free(s);
	begin_waiting(all);
}

/* --- the log --- */

static bool take(const struct sbx_frame *f, uint64_t next, void *userdata)
{
	struct start *s = userdata;
	enum sbx_frame_end end;
	uint32_t status;
	size_t n;

	(void)next;
	switch (f->kind) {
	case SBX_FRAME_STDERR:
		n = sizeof(s->said) - s->n_said < f->payload.n ? sizeof(s->said) - s->n_said :
								f->payload.n;
		memcpy(s->said + s->n_said, f->payload.p, n);
		s->n_said += n;
		return true;
	case SBX_FRAME_READY:
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

static void on_late(evutil_socket_t fd, short what, void *userdata)
{
	struct start *s = userdata;

	(void)fd;
	(void)what;
	sbx_place_kill(s->all->places.facts, s->id);
	finish(s, SBX_START_LATE, 0);
}

/* The first process of sbx-output has ended: the log has begun, or could not. */
static void on_pid(evutil_socket_t fd, short what, void *userdata)
{
	struct start *s = userdata;
	int status = 0;

	(void)fd;
	(void)what;
	if (waitpid(s->pid, &status, WNOHANG) != s->pid)
		return;
	s->pid = 0;
	event_free(s->on_pid);
	s->on_pid = NULL;
	s->pid_fd = sbx_fd_close(s->pid_fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		on_log(s);
	else
		finish(s, SBX_START_FAILED, WIFEXITED(status) ? WEXITSTATUS(status) : EIO);
}

/* --- beginning --- */

static int begin_process(struct start *s)
{
	static const struct timeval late = { .tv_sec = LATE_S };
	const struct sbx_start_places *p = &s->all->places;
	char dir[4096];
	int r = sbx_start_dir(p->facts, s->id, dir, sizeof(dir));

	r = r ? r : sbx_dir_watch_new(p->watches, dir, on_log, s, &s->watch);
	if (r < 0)
		return r;
	s->on_late = evtimer_new(p->base, on_late, s);
	if (!s->on_late || evtimer_add(s->on_late, &late) < 0)
		return -ENOMEM;
	s->pid_fd = sbx_place_run(p->facts, s->id, SBX_OUTPUT_MAX, SBX_START_S, &s->pid);
	if (s->pid_fd < 0) {
		s->pid = 0;
		return s->pid_fd;
	}
	s->on_pid = event_new(p->base, s->pid_fd, EV_READ, on_pid, s);
	return s->on_pid && event_add(s->on_pid, NULL) == 0 ? 0 : -ENOMEM;
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
	if (r == 0) {
		r = begin_process(s);
		if (r < 0 && s->pid) /* it runs, and cannot be watched */
			sbx_place_kill(all->places.facts, s->id);
	}
	if (r < 0)
		finish(s, SBX_START_FAILED, -r);
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
	s->pid_fd = s->log.fd = s->log.dir_fd = -1;
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
