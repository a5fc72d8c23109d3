/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * inotify tells of changes. A user has few instances of it (fs.inotify.max_user_instances), and
 * sandboxes take them for new protected paths: with a thousand sandboxes none is left. Then a timer
 * takes its place, and every watch is called each time.
 */
#include "daemon/hub/dir_watch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"

#define TICK_MS 100
#define MASK	(IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ONLYDIR)

struct sbx_dir_watch {
	struct sbx_dir_watches *all;
	struct sbx_dir_watch *next, **where;
	int wd;
	bool due;
	void (*fn)(void *userdata);
	void *userdata;
};

struct sbx_dir_watches {
	int fd; /* -1: there is no inotify */
	struct event *event;
	struct sbx_dir_watch *first;
};

/* A watch that is freed by a callback is no longer in the list, so the list is searched anew. */
static void call_due(struct sbx_dir_watches *all)
{
	struct sbx_dir_watch *w = all->first;

	while (w) {
		if (w->due) {
			w->due = false;
			w->fn(w->userdata);
			w = all->first;
		} else {
			w = w->next;
		}
	}
}

static void on_event(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_dir_watches *all = userdata;
	_Alignas(struct inotify_event) char buf[8192];
	ssize_t n;

	(void)what;
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		const char *p = buf;

		while (p < buf + n) {
			const struct inotify_event *e = (const void *)p;

			for (struct sbx_dir_watch *w = all->first; w; w = w->next)
				if (w->wd == e->wd || (e->mask & IN_Q_OVERFLOW))
					w->due = true;
			p += sizeof(*e) + e->len;
		}
	}
	call_due(all);
}

static void on_tick(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_dir_watches *all = userdata;

	(void)fd;
	(void)what;
	for (struct sbx_dir_watch *w = all->first; w; w = w->next)
		w->due = true;
	call_due(all);
}

int sbx_dir_watches_new(struct event_base *base, struct sbx_dir_watches **ret_all)
{
	static const struct timeval interval = { .tv_usec = TICK_MS * 1000 };
	struct sbx_dir_watches *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return -ENOMEM;
	all->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	all->event = all->fd < 0 ? event_new(base, -1, EV_PERSIST, on_tick, all) :
				   event_new(base, all->fd, EV_READ | EV_PERSIST, on_event, all);
	r = all->event && event_add(all->event, all->fd < 0 ? &interval : NULL) == 0 ? 0 : -ENOMEM;
	if (r < 0)
		all = sbx_dir_watches_free(all);
	*ret_all = all;
	return r;
}

struct sbx_dir_watches *sbx_dir_watches_free(struct sbx_dir_watches *all)
{
	if (!all)
		return NULL;
	while (all->first)
		sbx_dir_watch_free(all->first);
	if (all->event)
		event_free(all->event);
	sbx_fd_close(all->fd);
	free(all);
	return NULL;
}

int sbx_dir_watch_new(struct sbx_dir_watches *all, const char *path, void (*fn)(void *userdata),
		      void *userdata, struct sbx_dir_watch **ret_watch)
{
	struct sbx_dir_watch *w = calloc(1, sizeof(*w));
	int wd = -1;

	if (w)
		wd = all->fd < 0 ? access(path, F_OK) : inotify_add_watch(all->fd, path, MASK);
	if (wd < 0) {
		int r = w ? -errno : -ENOMEM;

		free(w);
		return r;
	}
	*w = (struct sbx_dir_watch){
		.all = all, .next = all->first, .where = &all->first, .wd = wd,
		.fn = fn,   .userdata = userdata,
	};
	if (w->next)
		w->next->where = &w->next;
	all->first = w;
	*ret_watch = w;
	return 0;
}

struct sbx_dir_watch *sbx_dir_watch_free(struct sbx_dir_watch *w)
{
	bool shared = false;

	if (!w)
		return NULL;
	*w->where = w->next;
	if (w->next)
		w->next->where = w->where;
	for (const struct sbx_dir_watch *o = w->all->first; o; o = o->next)
		shared = shared || o->wd == w->wd;
	if (!shared && w->all->fd >= 0)
		inotify_rm_watch(w->all->fd, w->wd);
	free(w);
	return NULL;
}
