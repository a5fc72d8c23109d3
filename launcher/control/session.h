/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CONTROL_SESSION_H
#define SBX_LAUNCHER_CONTROL_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/protocol.h"
#include "ipc/lines.h"
#include "launcher/control/peer.h"
#include "launcher/control/request.h"
#include "launcher/loop/watches.h"

/*
 * One client's connection: the lines that come, with their descriptors, and the bytes that go. It
 * decides nothing about requests.
 */
struct sbx_control_session {
	int fd;		 /* -1: the place is free */
	uint32_t serial; /* of the token */
	struct sbx_watch *watch;
	struct sbx_control_peer peer;

	struct sbx_lines lines;
	int fds[SBX_CONTROL_FDS_MAX]; /* came, and their line was not taken yet */
	size_t n_fds;
	size_t fds_behind; /* bytes that come before that line */
	bool eof;	   /* the client sends no more */

	char *out; /* lines on their way to the client; heap */
	size_t n_out, n_room, n_sent;

	bool asked;	   /* a request is open: no other is read */
	unsigned int held; /* times: sbx_control_hold() */
	bool follows;
	uint64_t next_event;		  /* the number of the next one for this follower */
	uint64_t used_us;		  /* monotonic: its last request */
	uint64_t line_by_us, taken_by_us; /* the client's deadlines; 0: none */
};

/* The session of the accepted socket @fd_take. */
void sbx_control_session_init(struct sbx_control_session *s, int fd_take, uint32_t serial);
/* Closes and frees everything, and the place is free. */
void sbx_control_session_fini(struct sbx_control_session *s);

/* Reads once. 0, also at the end of the stream and if nothing is there; or -errno: the client broke
 * the protocol or is gone. */
int sbx_control_session_read(struct sbx_control_session *s, uint64_t now_us);
/* The next whole line, valid until the next read. Its descriptors are in @s->fds and belong to the
 * caller, if *ret_n_fds is not 0. 1; 0: there is none; -EPROTO. */
int sbx_control_session_next(struct sbx_control_session *s, struct sbx_span *ret_line,
			     size_t *ret_n_fds);

/* Queues a line, which is taken. 0; -ENOBUFS: the client has not read what was sent before. */
int sbx_control_session_put(struct sbx_control_session *s, char *line_take, size_t n);
/* Sends what the client takes. 0 or -errno: it is gone. */
int sbx_control_session_send(struct sbx_control_session *s, uint64_t now_us);
/* Bytes that wait for the client. */
size_t sbx_control_session_n_waiting(const struct sbx_control_session *s);

/* Sets what the loop waits for. */
void sbx_control_session_watch(struct sbx_control_session *s, uint64_t now_us);
/* Has a deadline passed? */
bool sbx_control_session_is_late(const struct sbx_control_session *s, uint64_t now_us);

#endif
