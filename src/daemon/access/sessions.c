/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/access/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/secret_text.h"

struct entry {
	char hash[SBX_SECRET_HASH_MAX]; /* "": the place is free */
	uint64_t until_ms, used_ms;
	uid_t browser; /* of a session: whose */
	struct sbx_principal principal;
};

struct sbx_sessions {
	struct entry links[SBX_LINKS_MAX];
	struct entry sessions[SBX_SESSIONS_MAX];
};

_Static_assert(SBX_SESSION_SECRET_MAX == SBX_SECRET_DIGITS + 1, "the size of a secret's text");

int sbx_sessions_new(struct sbx_sessions **ret_sessions)
{
	*ret_sessions = calloc(1, sizeof(**ret_sessions));
	return *ret_sessions ? 0 : -ENOMEM;
}

struct sbx_sessions *sbx_sessions_free(struct sbx_sessions *s)
{
	free(s);
	return NULL;
}

/* The entry that holds and has @hash, or NULL. */
static struct entry *find(struct entry *v, size_t n, const char *hash, uint64_t now_ms)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].hash[0] && now_ms < v[i].until_ms && strcmp(v[i].hash, hash) == 0)
			return &v[i];
	return NULL;
}

/* How many entries are of the principal of @e? */
static size_t n_of(const struct entry *v, size_t n, const struct entry *e)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += strcmp(v[i].principal.name, e->principal.name) == 0;
	return k;
}

/* A free place. Without one: of the principal with the most entries, the one that was idle longest,
 * so that nobody takes the places of others. */
static struct entry *place_for_one(struct entry *v, size_t n, uint64_t now_ms)
{
	struct entry *place = v;
	size_t most = 0;

	for (size_t i = 0; i < n; i++)
		if (!v[i].hash[0] || now_ms >= v[i].until_ms)
			return &v[i];
	for (size_t i = 0; i < n; i++) {
		size_t k = n_of(v, n, &v[i]);

		if (k < most || (k == most && v[i].used_ms >= place->used_ms))
			continue;
		most = k;
		place = &v[i];
	}
	return place;
}

static int add(struct entry *v, size_t n, const struct sbx_principal *p, uid_t browser,
	       uint64_t now_ms, uint64_t seconds, char *ret_secret)
{
	struct entry *place = place_for_one(v, n, now_ms);
	int r = sbx_secret_make(ret_secret);

	if (r < 0)
		return r;
	*place = (struct entry){ .until_ms = now_ms + seconds * 1000,
				 .used_ms = now_ms,
				 .browser = browser,
				 .principal = *p };
	sbx_secret_hash(ret_secret, place->hash);
	return 0;
}

int sbx_session_link(struct sbx_sessions *s, const struct sbx_principal *p, uint64_t now_ms,
		     char ret_code[SBX_SESSION_SECRET_MAX])
{
	return add(s->links, SBX_LINKS_MAX, p, SBX_UID_UNKNOWN, now_ms, SBX_LINK_S, ret_code);
}

int sbx_session_begin(struct sbx_sessions *s, const char *code, uid_t browser, uint64_t now_ms,
		      char ret_cookie[SBX_SESSION_SECRET_MAX])
{
	char hash[SBX_SECRET_HASH_MAX];
	struct entry *link;

	sbx_secret_hash(code, hash);
	link = find(s->links, SBX_LINKS_MAX, hash, now_ms);
	if (!link)
		return SBX_SESSION_E_UNKNOWN;
	link->hash[0] = '\0';
	return add(s->sessions, SBX_SESSIONS_MAX, &link->principal, browser, now_ms, SBX_SESSION_S,
		   ret_cookie);
}

int sbx_session_find(struct sbx_sessions *s, const char *cookie, uid_t browser, uint64_t now_ms,
		     struct sbx_principal *ret)
{
	char hash[SBX_SECRET_HASH_MAX];
	struct entry *e;

	sbx_secret_hash(cookie, hash);
	e = find(s->sessions, SBX_SESSIONS_MAX, hash, now_ms);
	if (!e)
		return SBX_SESSION_E_UNKNOWN;
	if (e->browser != SBX_UID_UNKNOWN && e->browser != browser)
		return SBX_SESSION_E_OTHER;
	e->used_ms = now_ms;
	*ret = e->principal;
	ret->by_cookie = true;
	ret->is_own = false;
	sbx_text_fit(ret->session, sizeof(ret->session), "%s", hash);
	return 0;
}

bool sbx_session_holds(struct sbx_sessions *s, const char *hash, uint64_t now_ms)
{
	return find(s->sessions, SBX_SESSIONS_MAX, hash, now_ms) != NULL;
}

void sbx_session_end(struct sbx_sessions *s, const char *hash)
{
	struct entry *e = find(s->sessions, SBX_SESSIONS_MAX, hash, 0);

	if (e)
		e->hash[0] = '\0';
}
