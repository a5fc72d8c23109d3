/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ACCESS_ACCESS_H
#define SBX_DAEMON_ACCESS_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "daemon/api/principal.h"
#include "daemon/api/route.h"

/* Finds out who calls: by the kernel on the unix socket, by tokens and cookies elsewhere. */

enum sbx_listener_kind {
	SBX_LISTEN_UNIX = 0,
	SBX_LISTEN_TCP,
};

/* A request, as far as this judges it. Texts are untrusted, and NULL where there is none. */
struct sbx_caller {
	enum sbx_listener_kind kind;
	bool is_tls;
	uid_t uid;	     /* unix: of the peer (SO_PEERCRED) */
	const char *address; /* tcp: of the peer; never NULL then */
	const char *host, *origin, *authorization, *cookie;
	enum sbx_method method;
};

struct sbx_access;

/* 0 or -ENOMEM. */
int sbx_access_new(struct sbx_access **ret_access);
/* Accepts NULL; returns NULL. */
struct sbx_access *sbx_access_free(struct sbx_access *a);

/* The principal of a request. 0; or an HTTP status, 401, 403 or 429, with a word in *ret_code and
 * @err. Without credentials the principal has SBX_ROLE_NONE, and that is no error. */
int sbx_access_judge(struct sbx_access *a, const struct sbx_caller *c,
		     struct sbx_principal *ret_principal, const char **ret_code,
		     struct sbx_err *err);

#endif
