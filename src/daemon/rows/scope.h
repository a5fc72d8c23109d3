/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ROWS_SCOPE_H
#define SBX_DAEMON_ROWS_SCOPE_H

#include "daemon/http/call.h"

/* The part of a table that a caller sees. */
struct sbx_scope {
	const char *workspace; /* NULL: all; borrowed of the call */
	bool by_owner;	       /* rows of sandboxes that were started for @owner_uid */
	uid_t owner_uid;
};

/* The rows of the query's workspace that the caller sees. False: 404 was answered. */
bool sbx_call_scope(struct sbx_call *call, struct sbx_scope *ret);

/* The path's parameter @i as the id of a row, from 1; 0: it is none. */
int64_t sbx_call_id(const struct sbx_call *call, size_t i);

/* A window of time: seconds, or 90s, 15m, 24h, 7d. Milliseconds, or -EINVAL. */
int64_t sbx_window_parse(const char *s);

/* Checks of fields: the reason against a text, or NULL. A workspace's name with "/" cannot be in a
 * path. */
const char *sbx_workspace_check(const char *s);
const char *sbx_time_check(const char *s);
const char *sbx_window_check(const char *s);

#endif
