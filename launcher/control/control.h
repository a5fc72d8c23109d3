/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CONTROL_CONTROL_H
#define SBX_LAUNCHER_CONTROL_CONTROL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/event.h"
#include "control/protocol.h"
#include "launcher/control/control_limits.h"
#include "launcher/control/request.h"
#include "launcher/loop/watches.h"

/*
 * The control socket of one sandbox, RUNTIME/ID/control.sock, served in the launcher's loop: who
 * may connect, requests in their order, answers, and the stream of events (docs/CONTROL.md). The
 * operations are the caller's table. Nothing here blocks; every queue has its limit.
 */
struct sbx_control;

struct sbx_control_config {
	struct sbx_watches *watches;	  /* borrowed, like the rest */
	int dir_fd;			  /* the sandbox's runtime directory */
	uid_t owner, caller;		  /* besides root, those who may connect */
	const struct sbx_control_op *ops; /* request.h */
	size_t n_ops;
	/* a held session ended; or NULL */
	void (*gone)(void *userdata, struct sbx_control_token t);
	void *userdata; /* of gone and of the operations */
};

/* Makes the socket, mode 0600, and listens. 0 or -errno with @err. */
int sbx_control_open(const struct sbx_control_config *config, struct sbx_control **ret_control,
		     struct sbx_err *err);
/* Removes the socket, sends what the clients take at once, and ends their sessions; `gone` is not
 * called. Accepts NULL; returns NULL. */
struct sbx_control *sbx_control_close(struct sbx_control *c);

/*
 * The answer to the request of session @t, now or later. Does nothing where the client went away
 * meanwhile. A session's next request is handled after the answer.
 */
/* {"v":1,"ok":true} and the members of @values, which is taken; NULL: none. */
void sbx_control_answer(struct sbx_control *c, struct sbx_control_token t, json_t *values_take);
/* A refusal. @field: the part of the request that is wrong, or NULL. */
void sbx_control_refuse(struct sbx_control *c, struct sbx_control_token t,
			enum sbx_control_code code, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* A line that is no answer: {"v":1,"event":@name} and @values, which is taken. */
void sbx_control_tell(struct sbx_control *c, struct sbx_control_token t, const char *name,
		      json_t *values_take);
/* The session is needed without an open request (a command of it runs): it is not ended to make
 * room, and its end calls `gone`. Each hold needs its release. */
void sbx_control_hold(struct sbx_control *c, struct sbx_control_token t);
void sbx_control_release(struct sbx_control *c, struct sbx_control_token t);

/* The session gets every event from now on, and of the last SBX_CONTROL_EVENTS_KEPT those with a
 * number above @since (0: all of them); @since UINT64_MAX: later ones only. */
void sbx_control_follow(struct sbx_control *c, struct sbx_control_token t, uint64_t since);
/* For the followers. Each event has a number, from 1. Accepts NULL. */
void sbx_control_event(struct sbx_control *c, const struct sbx_event *e);

#endif
