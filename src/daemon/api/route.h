/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_API_ROUTE_H
#define SBX_DAEMON_API_ROUTE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/api/field.h"
#include "daemon/api/principal.h"

/*
 * The API as a table: one row for each method and path. The router, the check of a caller's role
 * and of the body, openapi.json, docs/API.md and the test of principals by endpoints come from it.
 * PURE; main/route_table.c has the rows.
 */
enum sbx_method {
	SBX_GET = 0,
	SBX_POST,
	SBX_PUT,
	SBX_PATCH,
	SBX_DELETE,
	SBX_N_METHODS,
};
const char *sbx_method_str(enum sbx_method m); /* "GET", ... */
/* The method of that name (HEAD is GET); -1: the API has none such. */
int sbx_method_parse(const char *name);

#define SBX_ROUTE_PARAMS    2
#define SBX_ROUTE_PARAM_MAX 129 /* bytes with the NUL */

struct sbx_call;

struct sbx_route {
	enum sbx_method method;
	enum sbx_role role;
	const char *path; /* "/sandboxes/{id}/network"; a last segment "{*}" is the rest of it */
	const char *id;	  /* the operationId: "getNetwork" */
	const struct sbx_field *query;
	size_t n_query;
	const struct sbx_field *body; /* NULL: it takes none */
	size_t n_body;
	const char *answer;  /* the schema of its body; NULL: it has none */
	const char *media;   /* of an answer that is no JSON */
	const char *example; /* of the body, JSON; NULL: one is made of its rows */
	const char *help;    /* a sentence without its capital and full stop */
	void (*run)(struct sbx_call *call);
	int status;   /* of success */
	int status_2; /* another one with the same body; 0: none */
	bool is_list; /* the body is {"items": [answer...], "next_cursor"} */
	bool streams; /* `Accept: text/event-stream` is answered by events */
	bool shown;   /* `Accept: text/html` gets a page in place of a problem document */
	bool tagged;  /* the answer has an ETag: If-None-Match of GET, If-Match of the rest */
};

struct sbx_route_table {
	const struct sbx_route *v;
	size_t n;
};

struct sbx_route_found {
	const struct sbx_route *route;
	char params[SBX_ROUTE_PARAMS][SBX_ROUTE_PARAM_MAX]; /* decoded, in the path's order */
};

/*
 * Find the row for @method and @path, which is as it came: percent-encoded, without "?". A
 * parameter is not empty, has no "/" and no control byte. 0; SBX_ROUTE_E_PATH: no row has the path;
 * SBX_ROUTE_E_METHOD: others do, *ret_allowed has their methods as bits.
 */
enum { SBX_ROUTE_E_PATH = 1, SBX_ROUTE_E_METHOD };
int sbx_route_find(const struct sbx_route_table *t, enum sbx_method method, const char *path,
		   struct sbx_route_found *ret, unsigned *ret_allowed);

/* Decode %XX. 0; -EINVAL: a NUL or control byte, or a broken code; -ENAMETOOLONG. */
int sbx_percent_decode(char *out, size_t n_out, const char *s, size_t n);

/* The OpenAPI 3.1 document. @schemas (borrowed) are its components' schemas. NULL: no memory. */
json_t *sbx_openapi(const struct sbx_route_table *t, json_t *schemas);

#endif
