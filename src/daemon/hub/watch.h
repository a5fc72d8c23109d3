/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HUB_WATCH_H
#define SBX_DAEMON_HUB_WATCH_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "store/store_list.h"

/*
 * Followers of events. One watcher looks for changes of the database while there are followers,
 * reads a new row once, and hands it to all of them. The database is the queue of a follower that
 * is behind, because it began there or because its client is slow: it gets pages at the client's
 * pace, and joins the others without a gap. A client that fell too far behind is told how many rows
 * are skipped.
 */
#define SBX_WATCH_MS	     25	    /* how often the database is looked at */
#define SBX_WATCH_BEHIND_MAX 100000 /* rows that a slow follower may be behind */

struct sbx_watch;

/* The text of an event; malloc'ed. NULL: no memory. */
typedef char *(*sbx_watch_print_fn)(const struct sbx_store_event_row *e);

/* @base and @store are borrowed. 0 or -ENOMEM. */
int sbx_watch_new(struct event_base *base, struct sbx_store *store, sbx_watch_print_fn print,
		  struct sbx_watch **ret_watch);
/* Accepts NULL; returns NULL. There must be no follower any more. */
struct sbx_watch *sbx_watch_free(struct sbx_watch *w);

/* A follower, as its owner describes it. */
struct sbx_follow {
	struct sbx_store_event_filter filter; /* of its rows; texts are borrowed until it leaves */
	/* The same for one row. */
	bool (*wants)(const struct sbx_store_event_row *e, void *userdata);
	/* Queues an event. @event NULL: an event; "lost": {"count"}, rows that are skipped. 0, or
	 * -ENOBUFS: there is no room. */
	int (*send)(const char *event, const char *id, const char *data, void *userdata);
	size_t (*waiting)(void *userdata); /* bytes that the client has not taken */
	size_t queue_max;		   /* bytes that the queue takes */
	void *userdata;
};

struct sbx_follower;

/* Follow from behind the row @after on; negative: from now on. *ret_follower is valid until
 * sbx_watch_leave(). 0 or -errno with @err. */
int sbx_watch_follow(struct sbx_watch *w, const struct sbx_follow *follow, int64_t after,
		     struct sbx_follower **ret_follower, struct sbx_err *err);
/* Accepts NULL. Not inside of the owner's functions. */
void sbx_watch_leave(struct sbx_follower *f);
/* Followers that there are, and those of them that are behind. */
size_t sbx_watch_n_followers(const struct sbx_watch *w, size_t *ret_n_behind);

#endif
