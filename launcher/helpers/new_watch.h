/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_NEW_WATCH_H
#define SBX_LAUNCHER_HELPERS_NEW_WATCH_H

#include "launcher/helpers/new_protected_list.h"

/* Finds new protected paths while the sandbox runs: watches directories, and looks at new names in
 * them at once (sbx_new_look). */

struct sbx_new_watch;

/* Watch the grants of @x (borrowed). All watches exist when it returns. The next
 * sbx_new_watch_read() looks at everything that existed before. Both return early when @stop_fd
 * (borrowed) becomes readable: the check at the end is due then. NULL with errno: nothing can be
 * watched. */
struct sbx_new_watch *sbx_new_watch_open(struct sbx_new *x, int stop_fd);
struct sbx_new_watch *sbx_new_watch_close(struct sbx_new_watch *w); /* NULL */
/* For poll(2): readable when there are events. */
int sbx_new_watch_fd(const struct sbx_new_watch *w);
/* Call sbx_new_watch_read() after that many milliseconds without an event; -1: not then. */
int sbx_new_watch_timeout_ms(const struct sbx_new_watch *w);
/* Read events, if there are any, and make the looks that are due. */
void sbx_new_watch_read(struct sbx_new_watch *w);

#endif
