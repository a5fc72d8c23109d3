/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_NEW_WATCH_H
#define SBX_LAUNCHER_HELPERS_NEW_WATCH_H

#include "launcher/helpers/new_protected.h"

/* New protected paths while the sandbox runs: the directories that matter are watched, and what appears in them is looked
 * at (sbx_new_look) at once. */

struct sbx_new_watch;

/* Watch the grants of @x (borrowed). Every watch is there when it returns, and everything that was there before is due to
 * be looked at by the next sbx_new_watch_read(). NULL: there can be no watch at all, with errno. */
struct sbx_new_watch *sbx_new_watch_open(struct sbx_new *x);
struct sbx_new_watch *sbx_new_watch_close(struct sbx_new_watch *w); /* NULL */
/* For poll(2): it is readable when something happened. */
int sbx_new_watch_fd(const struct sbx_new_watch *w);
/* ..., or after that many milliseconds; -1: only then. */
int sbx_new_watch_timeout_ms(const struct sbx_new_watch *w);
/* Take in what happened, if anything did. */
void sbx_new_watch_read(struct sbx_new_watch *w);

#endif
