/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ACCESS_SESSIONS_H
#define SBX_DAEMON_ACCESS_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/api/principal.h"

/*
 * Sessions of browsers, in memory: they end with the service. A link is used once and makes
 * a session, which has the rights of the principal that asked for the link. Only hashes of links
 * and cookies are kept. @now_ms: of a clock that does not go back.
 *
 * A browser sends the cookie to servers at other ports of the host, too, which may be another
 * user's. So a session belongs to the user at the other end of the connection that began it: the
 * browser's, or a proxy's.
 */
#define SBX_UID_UNKNOWN ((uid_t)-1) /* of another machine, or the kernel does not say */
#define SBX_LINKS_MAX	 64 /* a further one replaces the oldest of the caller with most */
#define SBX_LINK_S	 60 /* a link holds */
#define SBX_SESSIONS_MAX 256
#define SBX_SESSION_S	 43200 /* a session holds */

#define SBX_SESSION_SECRET_MAX 65 /* 64 hex digits: 256 random bits */

struct sbx_sessions;

/* 0 or -ENOMEM. */
int sbx_sessions_new(struct sbx_sessions **ret_sessions);
/* Accepts NULL; returns NULL. */
struct sbx_sessions *sbx_sessions_free(struct sbx_sessions *s);

/* Makes a link for @p, which is copied. 0 or -errno: no randomness. */
int sbx_session_link(struct sbx_sessions *s, const struct sbx_principal *p, uint64_t now_ms,
		     char ret_code[SBX_SESSION_SECRET_MAX]);
/* Uses the link of @code. If there are too many sessions, one ends: of the principal that has the
 * most, the one that was idle longest. 0;
 * SBX_SESSION_E_UNKNOWN: there is no such link, or it was used, or is too old; -errno. */
enum { SBX_SESSION_E_UNKNOWN = 1, SBX_SESSION_E_OTHER };
int sbx_session_begin(struct sbx_sessions *s, const char *code, uid_t browser, uint64_t now_ms,
		      char ret_cookie[SBX_SESSION_SECRET_MAX]);
/* The principal of @cookie, with by_cookie and session set. 0, SBX_SESSION_E_UNKNOWN or
 * SBX_SESSION_E_OTHER: the browser is another user's. */
int sbx_session_find(struct sbx_sessions *s, const char *cookie, uid_t browser, uint64_t now_ms,
		     struct sbx_principal *ret);
/* Does the session with the hash @hash still hold? */
bool sbx_session_holds(struct sbx_sessions *s, const char *hash, uint64_t now_ms);
/* Ends the session with the hash @hash, if there is one. */
void sbx_session_end(struct sbx_sessions *s, const char *hash);

#endif
