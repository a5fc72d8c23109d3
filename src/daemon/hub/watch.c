/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A follower is live or behind. For a live one every row up to the watcher's last row was queued or
 * is not wanted; it gets each new row as the watcher reads it. One that is behind reads pages up to
 * the watcher's last row. With the end of the last page it is live, in the same turn of the loop:
 * no row is between.
 *
 *     follow ---> behind <---> live
 *
 * A turn reads one page of new rows and one page for one follower that is behind and has room.
 * Those that have no room are looked at with the next tick. Ids are in the order of the commits. A
 * row that grows afterwards (reason overflow) is not sent again.
 */
#include "daemon/hub/watch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/store_rules.h"

#define PAGE	    200 /* new rows of a turn */
#define BEHIND_PAGE 50	/* rows of a turn for a follower that is behind */

struct sbx_follower {
	struct sbx_follower *next, **where;
	struct sbx_watch *watch;
	struct sbx_follow o;
	bool is_live, was_live;
	int64_t after; /* of one that is behind: the last row that it has, or passed over */
};

struct sbx_watch {
	struct event_base *base;
	struct sbx_store *store;
	sbx_watch_print_fn print;
	struct event *tick, *turn;
	struct sbx_follower *followers; /* those that are behind take turns: the list is turned */
	size_t n_followers, n_behind;
	int64_t version; /* of the database when it was last read */
	int64_t last;	 /* the newest row that was read */
	bool more;	 /* there may be newer rows */
};

size_t sbx_watch_n_followers(const struct sbx_watch *w, size_t *ret_n_behind)
{
	*ret_n_behind = w->n_behind;
	return w->n_followers;
}

/* --- one follower --- */

static void fall_behind(struct sbx_follower *f, int64_t after)
{
	f->is_live = false;
	f->after = after;
	f->watch->n_behind++;
}

static bool has_room(const struct sbx_follower *f)
{
	return f->o.waiting(f->o.userdata) < f->o.queue_max / 4;
}

static int send_text(struct sbx_follower *f, int64_t id, const char *text)
{
	char number[24];

	sbx_text_fit(number, sizeof(number), "%lld", (long long)id);
	return f->o.send(NULL, number, text, f->o.userdata);
}

static int take_behind(const struct sbx_store_event_row *e, void *userdata)
{
	struct sbx_follower *f = userdata;
	SBX_AUTO_FREE char *text = f->watch->print(e);

	if (!text || send_text(f, e->id, text) != 0)
		return 1;
	f->after = e->id;
	return 0;
}

/* Rows that a slow client missed, by their number. True: it is told. */
static bool skip(struct sbx_follower *f)
{
	char text[64], id[24];

	sbx_text_fit(text, sizeof(text), "{\"count\":%lld}",
		     (long long)(f->watch->last - f->after));
	sbx_text_fit(id, sizeof(id), "%lld", (long long)f->watch->last);
	return f->o.send("lost", id, text, f->o.userdata) == 0;
}

/* Did it get on? */
static bool feed(struct sbx_follower *f)
{
	struct sbx_store_event_filter filter = f->o.filter;
	int64_t next = 0, before = f->after;
	bool is_over;
	int r = 0;

	if (f->was_live && f->watch->last - f->after >= SBX_WATCH_BEHIND_MAX) {
		is_over = skip(f);
	} else {
		filter.after = f->after;
		filter.before = f->watch->last + 1;
		filter.newest_first = false;
		filter.n_max = BEHIND_PAGE;
		r = sbx_store_events_look(f->watch->store, &filter, SBX_STORE_LOOK_IDS, take_behind,
					  f, NULL, &next);
		is_over = r == 0 && next == 0;
		if (r == 0 && next)
			f->after = next;
	}
	if (is_over) {
		f->is_live = f->was_live = true;
		f->watch->n_behind--;
	}
	return is_over || f->after > before;
}

static void unlink_follower(struct sbx_follower *f)
{
	*f->where = f->next;
	if (f->next)
		f->next->where = f->where;
}

static void link_at(struct sbx_follower *f, struct sbx_follower **where)
{
	f->where = where;
	f->next = *where;
	if (f->next)
		f->next->where = &f->next;
	*where = f;
}

/* Feeds one that is behind and has room. Is there more to do at once? */
static bool feed_one(struct sbx_watch *w)
{
	struct sbx_follower *f = w->followers, **end;
	bool got_on;

	while (f && (f->is_live || !has_room(f)))
		f = f->next;
	if (!f)
		return false;
	got_on = feed(f);
	/* the next turn is for another */
	unlink_follower(f);
	end = &w->followers;
	while (*end)
		end = &(*end)->next;
	link_at(f, end);
	return got_on && w->n_behind > 0;
}

/* --- the new rows --- */

static int take_new(const struct sbx_store_event_row *e, void *userdata)
{
	struct sbx_watch *w = userdata;
	SBX_AUTO_FREE char *text = NULL;

	w->last = e->id;
	for (struct sbx_follower *f = w->followers; f; f = f->next) {
		if (!f->is_live || !f->o.wants(e, f->o.userdata))
			continue;
		if (!text)
			text = w->print(e);
		if (!text || f->o.waiting(f->o.userdata) > f->o.queue_max / 2 ||
		    send_text(f, e->id, text) != 0)
			fall_behind(f, e->id - 1);
	}
	return 0;
}

static void read_new(struct sbx_watch *w)
{
	const struct sbx_store_event_filter filter = { .after = w->last, .n_max = PAGE };
	int64_t before = w->last;
	int r;

	if (w->n_behind == w->n_followers)
		r = sbx_store_events_last(w->store, &w->last, NULL);
	else
		r = sbx_store_events_page(w->store, &filter, take_new, w, NULL);
	w->more = r != 0 || w->last - before >= PAGE;
}

static void on_turn(evutil_socket_t fd, short what, void *userdata)
{
	static const struct timeval now = { 0 };
	struct sbx_watch *w = userdata;
	bool failed = false, again;

	(void)fd;
	(void)what;
	if (w->more) {
		int64_t before = w->last;

		read_new(w);
		failed = w->more && w->last == before; /* not before the next tick */
	}
	again = feed_one(w);
	if (again || (w->more && !failed))
		evtimer_add(w->turn, &now);
}

static void on_tick(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_watch *w = userdata;
	int64_t version;

	if (sbx_store_data_version(w->store, &version, NULL) != 0)
		return;
	if (version != w->version)
		w->more = true;
	w->version = version;
	if (w->more || w->n_behind)
		on_turn(fd, what, w);
}

/* --- coming and going --- */

/* The version is read before the row: what comes between is seen with the next tick. */
static int begin(struct sbx_watch *w, struct sbx_err *err)
{
	static const struct timeval interval = { .tv_usec = SBX_WATCH_MS * 1000 };
	int r = sbx_store_data_version(w->store, &w->version, err);

	r = r ? r : sbx_store_events_last(w->store, &w->last, err);
	if (r)
		return r;
	w->more = false;
	return event_add(w->tick, &interval) < 0 ? -ENOMEM : 0;
}

int sbx_watch_follow(struct sbx_watch *w, const struct sbx_follow *follow, int64_t after,
		     struct sbx_follower **ret_follower, struct sbx_err *err)
{
	static const struct timeval now = { 0 };
	struct sbx_follower *f = calloc(1, sizeof(*f));
	int r = !f ? -ENOMEM : w->n_followers == 0 ? begin(w, err) : 0;

	if (r) {
		free(f);
		return r;
	}
	f->watch = w;
	f->o = *follow;
	f->is_live = f->was_live = after < 0 || after >= w->last;
	link_at(f, &w->followers);
	w->n_followers++;
	if (!f->is_live) {
		fall_behind(f, after);
		evtimer_add(w->turn, &now);
	}
	*ret_follower = f;
	return 0;
}

void sbx_watch_leave(struct sbx_follower *f)
{
	if (!f)
		return;
	unlink_follower(f);
	f->watch->n_behind -= !f->is_live;
	if (--f->watch->n_followers == 0) {
		event_del(f->watch->tick);
		event_del(f->watch->turn);
	}
	free(f);
}

int sbx_watch_new(struct event_base *base, struct sbx_store *store, sbx_watch_print_fn print,
		  struct sbx_watch **ret_watch)
{
	struct sbx_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct sbx_watch){ .base = base, .store = store, .print = print };
	w->tick = event_new(base, -1, EV_PERSIST, on_tick, w);
	w->turn = evtimer_new(base, on_turn, w);
	if (!w->tick || !w->turn) {
		sbx_watch_free(w);
		return -ENOMEM;
	}
	*ret_watch = w;
	return 0;
}

struct sbx_watch *sbx_watch_free(struct sbx_watch *w)
{
	if (!w)
		return NULL;
	if (w->tick)
		event_free(w->tick);
	if (w->turn)
		event_free(w->turn);
	free(w);
	return NULL;
}
