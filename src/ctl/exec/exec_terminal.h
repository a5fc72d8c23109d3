/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_EXEC_EXEC_TERMINAL_H
#define SBX_CTL_EXEC_EXEC_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "base/err.h"

/* The pseudo-terminal of a further command, between it and our own terminal. */
struct sbx_exec_terminal {
	int master; /* non-blocking; -1: none */
	int slave;  /* the command's end, until it is sent; -1: closed */
	bool reads; /* standard input is copied; then our terminal is raw meanwhile */
	bool raw;
	struct termios saved; /* our terminal, while it is raw */
	char in[4096];	      /* read from standard input, not yet taken */
	size_t n_in, at_in;
};

/* No terminal. */
void sbx_exec_terminal_init(struct sbx_exec_terminal *t);
/* Makes one of the size of our own. 0, or -errno with @err. */
int sbx_exec_terminal_open(struct sbx_exec_terminal *t, bool reads, struct sbx_err *err);
/* Gives our terminal back as it was, and closes the other. */
void sbx_exec_terminal_fini(struct sbx_exec_terminal *t);

/* From now on every key is for the command; again as it was. */
void sbx_exec_terminal_raw(struct sbx_exec_terminal *t);
void sbx_exec_terminal_restore(struct sbx_exec_terminal *t);
/* Our terminal has another size: so has the command's. */
void sbx_exec_terminal_resize(const struct sbx_exec_terminal *t);

/* The events to wait for: of the master, and of standard input. */
short sbx_exec_terminal_master_events(const struct sbx_exec_terminal *t);
short sbx_exec_terminal_input_events(const struct sbx_exec_terminal *t);
/* Copies what is there now. False: the command's end is closed. */
bool sbx_exec_terminal_copy(struct sbx_exec_terminal *t, short master, short input);

/* Writes all of it, unless that fails. */
void sbx_exec_write_all(int fd, const char *p, size_t n);

#endif
