/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_SECRET_USE_H
#define SBX_HTTP_SECRET_USE_H

#include <stdbool.h>

#include "base/span.h"
#include "http/message.h"
#include "http/path.h"
#include "http/rules.h"
#include "http/verdict.h"

/* Internal: may a secret be used in a request? PURE. */

/* Shorter values are not looked for: they would be found everywhere by chance. */
#define SBX_HTTP_VALUE_SEEN_MIN 6

/* The request, as far as secrets depend on it. */
struct sbx_secret_use {
	const char *host;
	bool tls;
	struct sbx_span method;
	struct sbx_span override;	  /* replaces the method or the path; empty: nothing does */
	const char *path_why;		  /* not NULL: the path is ambiguous, and why */
	char path[SBX_HTTP_PATH_MAX + 1]; /* canonical */
};

void sbx_secret_use_init(struct sbx_secret_use *u, const char *host,
			 const struct sbx_http_request *r);

/* Is the request one that the secret is for, by host, TLS, method and path? */
bool sbx_secret_use_applies(const struct sbx_secret_use *u, const struct sbx_http_secret *s);

/* May the placeholder of @s stand in the place (one of SBX_HTTP_IN_*, or 0: a place where no
 * placeholder is replaced)? @where names the place for people: "a header". True, or false with
 * @ret_verdict. */
bool sbx_secret_use_judge(const struct sbx_secret_use *u, const struct sbx_http_secret *s,
			  unsigned place, const char *where, struct sbx_http_verdict *ret_verdict);

/* The part of the value that is looked for in requests (detect) and in responses: of an AWS pair
 * the secret key. Empty: none, because it is shorter than SBX_HTTP_VALUE_SEEN_MIN. */
struct sbx_span sbx_secret_use_sought(const struct sbx_http_secret *s);

/* Writes the verdict about a real value. Returns false. */
bool sbx_secret_use_detected(const struct sbx_secret_use *u, const struct sbx_http_secret *s,
			     const char *where, struct sbx_http_verdict *ret_verdict);

#endif
