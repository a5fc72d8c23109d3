/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HUB_DIR_WATCH_H
#define SBX_DAEMON_HUB_DIR_WATCH_H

#include <event2/event.h>

/* Changes in directories, by one inotify descriptor for all of them; by a timer where the user has
 * no inotify left. */

struct sbx_dir_watches; /* all */
struct sbx_dir_watch;	/* one directory, for one asker */

/* 0 or -errno. */
int sbx_dir_watches_new(struct event_base *base, struct sbx_dir_watches **ret_all);
/* Accepts NULL; returns NULL. Watches that are left are freed. */
struct sbx_dir_watches *sbx_dir_watches_free(struct sbx_dir_watches *all);

/* Calls @fn from the loop when a file in @path was made, written or closed, and sometimes when none
 * was. @fn may end this watch, and others. 0 or -errno. */
int sbx_dir_watch_new(struct sbx_dir_watches *all, const char *path, void (*fn)(void *userdata),
		      void *userdata, struct sbx_dir_watch **ret_watch);
/* Accepts NULL; returns NULL. */
struct sbx_dir_watch *sbx_dir_watch_free(struct sbx_dir_watch *w);

#endif
