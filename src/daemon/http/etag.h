/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HTTP_ETAG_H
#define SBX_DAEMON_HTTP_ETAG_H

#include "daemon/http/call.h"

/* Strong entity tags (RFC 9110, 8.8.3), made of what an answer says. */

#define SBX_ETAG_MAX 24

/* The tag of @value, with its quotes. 0 or -ENOMEM. */
int sbx_etag(const json_t *value, char ret_tag[SBX_ETAG_MAX]);
/* The tag of a regular file's content. 0 or -errno. */
int sbx_etag_file(int fd, char ret_tag[SBX_ETAG_MAX]);
/* Does a header's list have @tag, or "*"? @weakly: a weak tag (W/"...") counts as well. @list NULL:
 * there is no such header, and so no. */
bool sbx_etag_listed(const char *list, const char *tag, bool weakly);

/* Answers a GET: with @value_take and its tag; 304 if the client has it. NULL: 500. */
void sbx_reply_tagged(struct sbx_call *call, json_t *value_take);
/* Is there no If-Match, or does it have the tag of @now? Otherwise 412 was answered. */
bool sbx_call_matches(struct sbx_call *call, const json_t *now);

#endif
