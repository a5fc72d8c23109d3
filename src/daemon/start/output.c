/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GET /sandboxes/{id}/output: the log that sbx-output writes, as a page or as events.
 *
 * A follower has a place in the log and no copy of it: frames are read when the client has taken
 * those before. The directory's changes wake a follower whose client waits.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/hub/dir_watch.h"
#include "daemon/output/log_read.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/resources.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/start/chunk.h"
#include "daemon/start/start.h"

#define PAGE_MAX 262144 /* bytes of output in a page */
#define WAITING	 32768	/* bytes on their way to a client: more are read below that */

/* The largest event, with every byte an escape of six, fits beside them. */
_Static_assert(WAITING + 6 * SBX_FRAME_MAX + 1024 < SBX_STREAM_QUEUE_MAX, "an event fits");

static const char *stream_name(const struct sbx_frame *f)
{
	return f->kind == SBX_FRAME_STDOUT ? "stdout" :
	       f->kind == SBX_FRAME_STDERR ? "stderr" :
					     NULL;
}

static bool is_wanted(const char *stream, const struct sbx_frame *f)
{
	const char *name = stream_name(f);

	return name && (!stream[0] || strcmp(stream, name) == 0);
}

static int64_t exit_status_of(const struct sbx_frame *f)
{
	enum sbx_frame_end end;
	uint32_t status;

	sbx_frame_end(f, &status, &end);
	return status;
}

/* --- a page --- */

struct page {
	const char *stream;
	json_t *items;
	size_t n_bytes;
	int64_t limit;
	uint64_t at; /* the offset of the next frame */
	int64_t exit_status;
	bool ended, full;
};

static bool take_item(const struct sbx_frame *f, uint64_t next, void *userdata)
{
	struct page *p = userdata;
	json_t *item;

	if (is_wanted(p->stream, f)) {
		if ((int64_t)json_array_size(p->items) == p->limit ||
		    p->n_bytes + f->payload.n > PAGE_MAX) {
			p->full = true;
			return false;
		}
		item = json_pack("{s:I, s:s, s:o}", "offset", (json_int_t)p->at, "stream",
				 stream_name(f), "at", sbx_print_time((int64_t)f->time_ms));
		if (item)
			sbx_chunk_set(item, "text", "base64", f->payload);
		json_array_append_new(p->items, item);
		p->n_bytes += f->payload.n;
	}
	if (f->kind == SBX_FRAME_END) {
		p->ended = true;
		p->exit_status = exit_status_of(f);
	}
	p->at = next;
	return true;
}

static bool take_end(const struct sbx_frame *f, uint64_t next, void *userdata)
{
	(void)next;
	if (f->kind == SBX_FRAME_END)
		*(int64_t *)userdata = exit_status_of(f);
	return true;
}

static int take_status(const struct sbx_store_sandbox_row *s, void *userdata)
{
	*(int64_t *)userdata = s->exit_status;
	return 0;
}

/* Of a log that is over, and that was read to its end: of its last frame, which may be before the
 * caller's offset; if the writer was killed, the database may know. The reader is moved. */
static int64_t last_status(struct sbx_store *store, struct sbx_log_reader *log, const char *id)
{
	int64_t status = SBX_STORE_NONE;
	struct sbx_err err = { 0 };
	uint64_t lost;

	log->offset = log->segment;
	while (sbx_log_read(log, take_end, &status, &lost) > 0)
		;
	if (status == SBX_STORE_NONE)
		sbx_store_sandbox_get(store, id, take_status, &status, &err);
	return status;
}

static void reply_page(struct sbx_call *call, struct sbx_log_reader *log, const char *stream)
{
	bool over = sbx_log_is_over(log); /* before: what came until then is read */
	struct page p = { .stream = stream,
			  .items = json_array(),
			  .limit = sbx_call_number(call, "limit", 100),
			  .at = log->offset };
	uint64_t lost, n_lost = 0, next;
	json_t *answer;
	int r;

	do {
		p.at = log->offset;
		r = sbx_log_read(log, take_item, &p, &lost);
		n_lost += lost;
	} while (r > 0);
	if (r < 0) {
		json_decref(p.items);
		sbx_reply_problem(call, 500, "failed", NULL, "the output cannot be read: %s",
				  strerror(-r));
		return;
	}
	next = log->offset;
	if (!p.ended && over && !p.full) {
		p.ended = true;
		p.exit_status = last_status(call->daemon->store, log, call->found.params[0]);
	}
	answer = json_pack("{s:o, s:I, s:I, s:b, s:o}", "items", p.items, "next_offset",
			   (json_int_t)next, "lost_bytes", (json_int_t)n_lost, "ended", p.ended,
			   "exit_status",
			   p.ended ? sbx_print_number(p.exit_status) : json_null());
	sbx_reply_json(call, 200, answer);
}

/* --- events --- */

struct follower {
	struct sbx_daemon *daemon;
	struct sbx_stream *stream;
	struct sbx_log_reader log;
	struct sbx_dir_watch *watch;
	char id[SBX_ID_LEN + 1];
	char wanted[8]; /* "stdout", "stderr"; "": both */
	bool ended;
};

static void send_event(struct follower *f, const char *event, uint64_t next, json_t *data_take)
{
	char id[24];

	sbx_text_fit(id, sizeof(id), "%llu", (unsigned long long)next);
	sbx_stream_send_json(f->stream, event, id, data_take);
}

static void send_end(struct follower *f, uint64_t next, json_t *status)
{
	f->ended = true;
	send_event(f, "end", next, json_pack("{s:o}", "exit_status", status));
	sbx_stream_end(f->stream);
}

static bool take_event(const struct sbx_frame *frame, uint64_t next, void *userdata)
{
	struct follower *f = userdata;
	json_t *data;

	if (f->ended || sbx_stream_waiting(f->stream) > WAITING)
		return false;
	if (is_wanted(f->wanted, frame)) {
		data = json_pack("{s:o}", "at", sbx_print_time((int64_t)frame->time_ms));
		if (data)
			sbx_chunk_set(data, "text", "base64", frame->payload);
		send_event(f, stream_name(frame), next, data);
	} else if (frame->kind == SBX_FRAME_LOST) {
		send_event(f, "lost", next,
			   json_pack("{s:I}", "bytes", (json_int_t)sbx_frame_lost(frame)));
	} else if (frame->kind == SBX_FRAME_END) {
		send_end(f, next, json_integer(exit_status_of(frame)));
	}
	return true;
}

/* The writer was killed: the database may know more. */
static void end_without_frame(struct follower *f)
{
	int64_t status = SBX_STORE_NONE;
	struct sbx_err err = { 0 };

	sbx_store_sandbox_get(f->daemon->store, f->id, take_status, &status, &err);
	send_end(f, f->log.offset, sbx_print_number(status));
}

/* Reads as far as the client keeps up. */
static void pump(void *userdata)
{
	struct follower *f = userdata;
	bool over = false;
	uint64_t lost;
	int r = 1;

	while (r > 0 && !f->ended && sbx_stream_waiting(f->stream) <= WAITING) {
		r = sbx_log_read(&f->log, take_event, f, &lost);
		if (lost)
			send_event(f, "lost", f->log.offset,
				   json_pack("{s:I}", "bytes", (json_int_t)lost));
		if (r == 0 && !over && sbx_stream_waiting(f->stream) <= WAITING) {
			over = sbx_log_is_over(&f->log);
			r = over; /* what came before the look is read */
		}
	}
	if (!f->ended && (r < 0 || (over && sbx_stream_waiting(f->stream) <= WAITING)))
		end_without_frame(f);
}

static void follower_free(void *userdata)
{
	struct follower *f = userdata;

	sbx_dir_watch_free(f->watch);
	sbx_log_reader_close(&f->log);
	free(f);
}

/* Takes the log. */
static void follow(struct sbx_call *call, struct sbx_log_reader *log, const char *dir,
		   const char *stream)
{
	struct follower *f = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (r == 0)
		r = sbx_dir_watch_new(call->daemon->watches, dir, pump, f, &f->watch);
	if (r < 0) {
		free(f);
		sbx_log_reader_close(log);
		sbx_reply_problem(call, 503, "busy", NULL, "the output cannot be followed: %s",
				  strerror(-r));
		return;
	}
	f->daemon = call->daemon;
	f->log = *log;
	sbx_text_cut(f->wanted, sizeof(f->wanted), "%s", stream);
	sbx_text_cut(f->id, sizeof(f->id), "%s", call->found.params[0]);
	f->stream = sbx_reply_stream(call, follower_free, f);
	if (!f->stream) {
		follower_free(f);
		return;
	}
	sbx_stream_pull(f->stream, pump);
	pump(f);
}

/* The offset that the caller wants. False: it was answered. */
static bool read_offset(struct sbx_call *call, uint64_t *ret)
{
	const char *last = call->last_event_id;
	char *end;

	*ret = (uint64_t)sbx_call_number(call, "offset", 0);
	if (!last || !call->wants_events)
		return true;
	errno = 0;
	*ret = strtoull(last, &end, 10);
	if (errno == 0 && last[0] >= '0' && last[0] <= '9' && !*end && *ret <= INT64_MAX)
		return true;
	sbx_reply_problem(call, 400, "invalid", "Last-Event-ID",
			  "Last-Event-ID is no offset of this stream");
	return false;
}

void sbx_get_output(struct sbx_call *call)
{
	const char *id = call->found.params[0], *stream = sbx_call_text(call, "stream");
	struct sbx_log_reader log;
	char dir[PATH_MAX];
	uint64_t offset;
	json_t *sandbox = sbx_call_sandbox(call, id);
	int r;

	json_decref(sandbox);
	if (!sandbox || !read_offset(call, &offset))
		return;
	r = sbx_start_dir(&call->daemon->facts, id, dir, sizeof(dir));
	r = r ? r : sbx_log_reader_open(&log, dir, offset);
	if (r < 0) {
		sbx_reply_problem(call, 404, "no_output", NULL,
				  "no output of this sandbox is kept here: sbx-run's caller has "
				  "it, or it is too old");
		return;
	}
	if (call->wants_events) {
		follow(call, &log, dir, stream ? stream : "");
		return;
	}
	reply_page(call, &log, stream ? stream : "");
	sbx_log_reader_close(&log);
}
