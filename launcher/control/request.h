/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CONTROL_REQUEST_H
#define SBX_LAUNCHER_CONTROL_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/span.h"
#include "control/protocol.h"

/* Requests of the control protocol, judged by a table of operations. No I/O. */

#define SBX_CONTROL_TEXT_MAX 32768 /* bytes of one string of a request */
#define SBX_CONTROL_LIST_MAX 8192  /* strings of a list or members of a map */

/* Names a session to answer, also when it has ended meanwhile. */
struct sbx_control_token {
	uint32_t place;
	uint32_t serial; /* 0: no session */
};

struct sbx_control_request {
	const json_t *body;	      /* judged; borrowed for the call */
	int fds[SBX_CONTROL_FDS_MAX]; /* those that the handler does not set to -1 are closed */
	size_t n_fds;
	uid_t uid; /* the peer's */
	pid_t pid; /* and in the launcher's pid namespace */
	struct sbx_control_token token;
};

enum sbx_control_type {
	SBX_CONTROL_BOOL,
	SBX_CONTROL_NUMBER,  /* an integer from 0 */
	SBX_CONTROL_STRING,  /* not empty */
	SBX_CONTROL_STRINGS, /* an array of such */
	SBX_CONTROL_WORDS,   /* an array of strings, which may be empty */
	SBX_CONTROL_MAP,     /* an object of strings, which may be empty */
};

struct sbx_control_field {
	const char *name;
	enum sbx_control_type type;
	bool required;
};

#define SBX_CONTROL_FIELDS_MAX 8

struct sbx_control_op {
	const char *name;
	size_t n_fds; /* descriptors that come with the request, not more and not less */
	bool stays;   /* the client stays connected after the answer: SBX_CONTROL_STAY_MAX may */
	struct sbx_control_field fields[SBX_CONTROL_FIELDS_MAX]; /* to the first without a name */
	/* Answers now or later (control.h). */
	void (*handle)(void *userdata, struct sbx_control_request *rq);
};

struct sbx_control_refusal {
	enum sbx_control_code code;
	char field[64]; /* "deny_out[2]"; "" none */
	struct sbx_err err;
};

/* The operation that @line asks for. *ret_body gets the object, owned by the caller. NULL, with
 * *ret_refusal: there is none, or the request is wrong. */
const struct sbx_control_op *sbx_control_request_parse(struct sbx_span line, size_t n_fds,
						       const struct sbx_control_op *ops,
						       size_t n_ops, json_t **ret_body,
						       struct sbx_control_refusal *ret_refusal);

#endif
