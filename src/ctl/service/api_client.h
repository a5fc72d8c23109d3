/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_SERVICE_API_CLIENT_H
#define SBX_CTL_SERVICE_API_CLIENT_H

#include <jansson.h>

#include "base/err.h"

/* A request to sbxd on its unix socket. */

#define SBX_API_WAIT_S	   10	  /* for the whole answer */
#define SBX_API_ANSWER_MAX 262144 /* bytes with the head */

enum {
	SBX_API_E_NONE = 1, /* no service answers there */
	SBX_API_E_REFUSED,  /* the answer is a problem; @err has its words */
};

/* Sends @method @path without a body. 0 with the answer's document, which the caller owns (NULL:
 * it has none); SBX_API_E_*; -errno (-EPROTO: no answer of sbxd), with @err. */
int sbx_api_ask(const char *socket_path, const char *method, const char *path, struct sbx_err *err,
		json_t **ret_answer);

/* The status and the body of a whole answer to a request with "Connection: close". 0 or -EPROTO.
 * PURE. */
int sbx_api_answer_parse(const char *text, int *ret_status, const char **ret_body);

#endif
