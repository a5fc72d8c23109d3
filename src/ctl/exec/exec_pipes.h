/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_EXEC_EXEC_PIPES_H
#define SBX_CTL_EXEC_EXEC_PIPES_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Pipes in the place of those of our descriptors that are a terminal (exec_pipes.c). */
struct sbx_exec_pipes {
	int ours[3];   /* our ends, non-blocking; -1: no pipe, or closed */
	int theirs[3]; /* the command's ends, until they are sent; -1: no pipe */
	bool reads;    /* standard input is copied */
	char in[4096]; /* read from standard input, not yet taken */
	size_t n_in, at_in;
};

#define SBX_EXEC_PIPES_POLLS 4

/* There are no pipes. */
void sbx_exec_pipes_init(struct sbx_exec_pipes *p);
/* Makes a pipe for each of descriptors 0 to 2 that is a terminal; for 0 only with @interactive. 0,
 * or -errno with @err. */
int sbx_exec_pipes_open(struct sbx_exec_pipes *p, bool interactive, struct sbx_err *err);
/* Closes all ends. */
void sbx_exec_pipes_fini(struct sbx_exec_pipes *p);

/* The descriptor to send for our descriptor @fd. */
int sbx_exec_pipes_theirs(const struct sbx_exec_pipes *p, int fd);
/* The command has its ends. */
void sbx_exec_pipes_sent(struct sbx_exec_pipes *p);

/* The events to wait for. */
void sbx_exec_pipes_fill(const struct sbx_exec_pipes *p, struct pollfd v[SBX_EXEC_PIPES_POLLS]);
/* Copies what is there now. */
void sbx_exec_pipes_copy(struct sbx_exec_pipes *p, const struct pollfd v[SBX_EXEC_PIPES_POLLS]);
/* Copies what the command wrote last. Does not wait for processes that it left behind. */
void sbx_exec_pipes_drain(struct sbx_exec_pipes *p);

#endif
