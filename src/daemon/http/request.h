/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HTTP_REQUEST_H
#define SBX_DAEMON_HTTP_REQUEST_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/http/call.h"

/* A request of the server, inside of http/. */

#define SBX_REPLY_HEADERS_MAX 4

struct sbx_http_listener;
struct sbx_http_connection;

struct sbx_http_request {
	struct sbx_call call;
	struct sbx_http_listener *listener;
	struct MHD_Connection *connection;
	uint64_t began_us; /* monotonic: its head came */
	char *body;
	size_t n_body, n_dropped;
	bool too_large; /* the rest of the body is dropped, as with the next */
	bool no_room;	/* the caller has too many bodies */
	bool unframed;	/* nobody knows where it ends: it is answered at once */
	bool ran;	/* the handler was called, or is not to be */
	bool suspended; /* libmicrohttpd waits for the answer */
	uint64_t again_us; /* monotonic: it waits for the database since then; 0: it never did */
	struct sbx_http_request *next_again;
	struct sbx_http_request *next, **where; /* in the server's list */
	int status;
	struct MHD_Response *response; /* owned; the answer that is not queued yet */
	size_t n_headers;
	struct {
		char name[48], value[512];
	} headers[SBX_REPLY_HEADERS_MAX];
};

const char *sbx_request_header(const struct sbx_http_request *r, const char *name);
/* NULL: there was no memory for it. */
struct sbx_http_connection *sbx_request_connection(const struct sbx_http_request *r);

/* Takes the head, but for the body's fields. False: it was answered. */
bool sbx_request_head(struct sbx_http_request *r, const char *url, const char *method_name,
		      const char *version);

/* The answer is known: it is queued now or, if the connection waits, soon. */
void sbx_request_answer(struct sbx_http_request *r, int status, struct MHD_Response *response_take,
			const char *media);

/* For libmicrohttpd: MHD_AccessHandlerCallback and MHD_RequestCompletedCallback. */
enum MHD_Result sbx_request_go_on(void *cls, struct MHD_Connection *mc, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *n_data, void **state);
void sbx_request_completed(void *cls, struct MHD_Connection *mc, void **state,
			   enum MHD_RequestTerminationCode code);

#endif
