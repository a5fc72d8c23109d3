/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CONTROL_CLIENT_H
#define SBX_CONTROL_CLIENT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sandbox_id.h"
#include "control/protocol.h"

/*
 * A client of the sandboxes' control sockets (docs/CONTROL.md). Blocking, for one thread.
 *
 * Functions return 0; a positive SBX_CONTROL_E_*; or -errno. Unless 0, @err has one line: the
 * sandbox, the cause, the remedy.
 */
enum {
	SBX_CONTROL_E_NONE = 1,	 /* no such sandbox runs */
	SBX_CONTROL_E_MANY,	 /* more than one has this prefix */
	SBX_CONTROL_E_GONE,	 /* the sandbox has ended, or the connection was cut */
	SBX_CONTROL_E_TIMED_OUT, /* the launcher did not answer in time */
	SBX_CONTROL_E_REFUSED,	 /* the answer is a refusal */
};

struct sbx_control_client;

/* Calls @fn with the id of each sandbox that has a control socket, in the order of the ids. A
 * non-zero result stops and is returned. A directory that does not exist has no sandbox. A socket
 * may be a dead launcher's: connecting tells. */
int sbx_control_each(const char *runtime_dir, int (*fn)(const char *id, void *userdata),
		     void *userdata, struct sbx_err *err);

/* Finds the sandbox that @which means: its id, or a prefix that only one sandbox has. */
int sbx_control_find(const char *runtime_dir, const char *which, char ret_id[SBX_ID_LEN + 1],
		     struct sbx_err *err);

/* Does a launcher hold the runtime directory of sandbox @id? Its pid says nothing: the kernel gives
 * it away again. */
bool sbx_control_has_launcher(const char *runtime_dir, const char *id);

/* Connects to sandbox @id. @timeout_ms: at most so long, here and in every later call. */
int sbx_control_connect(const char *runtime_dir, const char *id, uint32_t timeout_ms,
			struct sbx_control_client **ret_client, struct sbx_err *err);
/* Accepts NULL; returns NULL. */
struct sbx_control_client *sbx_control_disconnect(struct sbx_control_client *c);
/* To poll(2) for POLLIN; see sbx_control_has_line(). */
int sbx_control_fd(const struct sbx_control_client *c);

/* Sends one request. "v" is put in. @request is taken, also on failure; it must have "op". The
 * @n_fds borrowed descriptors (at most SBX_CONTROL_FDS_MAX) go with it. */
int sbx_control_send(struct sbx_control_client *c, json_t *request_take, const int *fds,
		     size_t n_fds, struct sbx_err *err);
/* Waits for the next line, an answer or an event. @timeout_ms: 0, do not wait; negative, for ever.
 * The caller owns *ret_line. */
int sbx_control_receive(struct sbx_control_client *c, int timeout_ms, json_t **ret_line,
			struct sbx_err *err);
/* Is a line here already, so that poll(2) would wait in vain? */
bool sbx_control_has_line(const struct sbx_control_client *c);

/*
 * Sends a request and waits for its answer, which the caller owns. With SBX_CONTROL_E_REFUSED it is
 * the refusal, with "code" and maybe "field", and @err has its text. Otherwise *ret_answer is NULL.
 * Not for a connection that has asked for events.
 */
int sbx_control_ask(struct sbx_control_client *c, json_t *request_take, const int *fds,
		    size_t n_fds, json_t **ret_answer, struct sbx_err *err);

/* Is this answer a refusal? 0, or SBX_CONTROL_E_REFUSED with its text in @err. */
int sbx_control_answer_judge(const json_t *answer, struct sbx_err *err);
/* The code of a refusal. */
enum sbx_control_code sbx_control_refusal_code(const json_t *answer);

#endif
