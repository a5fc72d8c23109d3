/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_LOOP_WATCHES_H
#define SBX_LAUNCHER_LOOP_WATCHES_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Descriptors and times that the launcher's loop (run/supervise.c) waits for, besides those of the
 * sandbox's own processes: the control socket with its clients, commands that are executed later,
 * the database. A callback may add and remove watches, also its own.
 */
#define SBX_WATCHES_MAX 256

typedef void (*sbx_watch_fn)(void *userdata, short revents); /* 0: the time came */

struct sbx_watch {
	int fd;		  /* borrowed; -1: a time alone */
	short events;	  /* of poll(2) */
	uint64_t at_us;	  /* monotonic; 0: no time. Cleared before the callback */
	sbx_watch_fn fn;  /* NULL: the place is free */
	void *userdata;
};

struct sbx_watches {
	size_t n; /* places in use, free ones between them included */
	struct sbx_watch v[SBX_WATCHES_MAX];
};

/* Waits for @events of @fd (-1: for a time alone, which is still to be set). The watch, valid until
 * it is removed; NULL: there is no room. */
struct sbx_watch *sbx_watch_add(struct sbx_watches *w, int fd, short events, sbx_watch_fn fn,
				void *userdata);
/* Accepts NULL; returns NULL. */
struct sbx_watch *sbx_watch_remove(struct sbx_watch *watch);

/* The earliest time; 0: there is none. */
uint64_t sbx_watches_next_us(const struct sbx_watches *w);
/* Fills in @p (SBX_WATCHES_MAX of room), one for each place in use; returns their number. */
size_t sbx_watches_fill(const struct sbx_watches *w, struct pollfd *p);
/* Calls back those of the @n_polled in @p that are ready, and those whose time has come. */
void sbx_watches_act(struct sbx_watches *w, const struct pollfd *p, size_t n_polled,
		     uint64_t now_us);

#endif
