/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/loop/watches.h"

struct sbx_watch *sbx_watch_add(struct sbx_watches *w, int fd, short events, sbx_watch_fn fn,
				void *userdata)
{
	size_t i = 0;

	while (i < w->n && w->v[i].fn)
		i++;
	if (i == SBX_WATCHES_MAX)
		return NULL;
	if (i == w->n)
		w->n++;
	w->v[i] = (struct sbx_watch){ .fd = fd, .events = events, .fn = fn,
				      .userdata = userdata };
	return &w->v[i];
}

struct sbx_watch *sbx_watch_remove(struct sbx_watch *watch)
{
	if (watch)
		*watch = (struct sbx_watch){ .fd = -1 };
	return NULL;
}

uint64_t sbx_watches_next_us(const struct sbx_watches *w)
{
	uint64_t next = 0;

	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].at_us && (!next || w->v[i].at_us < next))
			next = w->v[i].at_us;
	return next;
}

size_t sbx_watches_fill(const struct sbx_watches *w, struct pollfd *p)
{
	for (size_t i = 0; i < w->n; i++)
		p[i] = (struct pollfd){ .fd = w->v[i].fn ? w->v[i].fd : -1,
					.events = w->v[i].events };
	return w->n;
}

void sbx_watches_act(struct sbx_watches *w, const struct pollfd *p, size_t n_polled,
		     uint64_t now_us)
{
	for (size_t i = 0; i < w->n; i++) {
		struct sbx_watch *watch = &w->v[i];

		/* The place may have another watch since the poll: then p[i] is not its own. */
		if (i < n_polled && watch->fn && p[i].revents && p[i].fd == watch->fd)
			watch->fn(watch->userdata, p[i].revents);
		if (watch->fn && watch->at_us && watch->at_us <= now_us) {
			watch->at_us = 0;
			watch->fn(watch->userdata, 0);
		}
	}
	while (w->n > 0 && !w->v[w->n - 1].fn)
		w->n--;
}
