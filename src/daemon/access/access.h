/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ACCESS_ACCESS_H
#define SBX_DAEMON_ACCESS_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"
#include "base/err.h"
#include "daemon/access/sessions.h"
#include "daemon/api/principal.h"
#include "daemon/api/route.h"
#include "store/store.h"

/*
 * Finds out who calls: by the kernel on the unix socket, by tokens and cookies elsewhere. Judges
 * Host and Origin, and limits how often a caller may ask.
 */
#define SBX_ACCESS_PER_S	 200 /* requests of a caller; with bursts */
#define SBX_ACCESS_BURST	 400
#define SBX_ACCESS_WRONG_PER_S	 5 /* wrong credentials of an address */
#define SBX_ACCESS_WRONG_BURST	 10
#define SBX_ACCESS_STREAMS_MAX	 64   /* of a caller */
#define SBX_ACCESS_REQUESTS_MAX	 64   /* of a caller, that wait for their answers */
#define SBX_ACCESS_EXECS_MAX	 32   /* of a caller, that run */
#define SBX_ACCESS_PER_UID_MAX	 128  /* connections to the unix socket */
#define SBX_ACCESS_CALLERS	 1024 /* whose rates are known */
#define SBX_ACCESS_ADDRESSES_MAX 8    /* that the service listens on */

enum sbx_listener_kind {
	SBX_LISTEN_UNIX = 0,
	SBX_LISTEN_TCP,
};

/* Where a request comes from, as far as sessions of browsers are bound to it. */
struct sbx_browser {
	uid_t uid;	 /* see sessions.h */
	uint16_t port;	 /* that it connected to */
	bool is_tls;
	const char *fetch_site; /* of Sec-Fetch-Site; NULL: there is none */
};

/* A request, as far as this judges it. Texts are untrusted, and NULL where there is none. */
struct sbx_caller {
	enum sbx_listener_kind kind;
	struct sbx_browser browser; /* unix: its uid is the peer's (SO_PEERCRED) */
	const char *foreign;	   /* unix: why its process may not call; NULL: it may */
	const struct sbx_addr *at; /* tcp: the address that it connected to; never NULL then */
	const struct sbx_addr *address; /* tcp: of the peer; never NULL then */
	const char *host, *origin, *authorization, *cookie;
	bool is_doubled; /* one of these is there twice */
	bool is_proxied; /* Forwarded or X-Forwarded-For is there */
	enum sbx_method method;
};

/* Why a request is refused. */
struct sbx_access_refusal {
	int status;	  /* of HTTP */
	const char *code; /* the problem's word */
	unsigned retry_s; /* with 429 */
	struct sbx_err err;
};

struct sbx_access;

struct sbx_access_options {
	struct sbx_store *store;  /* has the tokens; borrowed */
	const char *const *hosts; /* other names of the service, as behind a proxy */
	size_t n_hosts;
};

/* 0; -ENOMEM; -EINVAL with @err: a name is none. */
int sbx_access_new(const struct sbx_access_options *options, struct sbx_err *err,
		   struct sbx_access **ret_access);
/* Accepts NULL; returns NULL. */
struct sbx_access *sbx_access_free(struct sbx_access *a);

/* The service listens on this address: links lead there. */
void sbx_access_listens(struct sbx_access *a, const struct sbx_addr *addr, uint16_t port,
			bool is_tls);

/* May this request be judged at all? Its process, Host and Origin. 0, or SBX_ACCESS_E_REFUSED. */
enum { SBX_ACCESS_E_REFUSED = 1 };
int sbx_access_admit(struct sbx_access *a, const struct sbx_caller *c,
		     struct sbx_access_refusal *ret);
/* The principal of a request that was admitted. With @is_public its credentials do not matter, and
 * it has SBX_ROLE_NONE. 0, or SBX_ACCESS_E_REFUSED. */
int sbx_access_identify(struct sbx_access *a, const struct sbx_caller *c, bool is_public,
			struct sbx_principal *ret_principal, struct sbx_access_refusal *ret);
/* Do the credentials of @p still hold? For streams: false ends them. */
bool sbx_access_holds(struct sbx_access *a, const struct sbx_principal *p);
/* Is @uid one that is not limited (see is_own in principal.h)? */
bool sbx_access_is_own(const struct sbx_access *a, uid_t uid);

/* A one-time link for @p. 0; SBX_ACCESS_E_NOWHERE: the service has no TCP address; -errno. */
enum { SBX_ACCESS_E_NOWHERE = 2 };
#define SBX_ACCESS_LINK_MAX 256
int sbx_access_link(struct sbx_access *a, const struct sbx_principal *p,
		    char ret_url[SBX_ACCESS_LINK_MAX]);
/* Uses a link. *ret_header is the Set-Cookie header's value. 0, or SBX_ACCESS_E_REFUSED. */
#define SBX_ACCESS_COOKIE_MAX 192
int sbx_access_login(struct sbx_access *a, const char *code, const struct sbx_browser *b,
		     char ret_header[SBX_ACCESS_COOKIE_MAX], struct sbx_access_refusal *ret);
/* Ends the session of @p, if it has one. *ret_header takes the cookie away. */
void sbx_access_logout(struct sbx_access *a, const struct sbx_principal *p,
		       const struct sbx_browser *b, char ret_header[SBX_ACCESS_COOKIE_MAX]);

#endif
