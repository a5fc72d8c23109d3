/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROCESS_TERMINAL_H
#define SBX_LAUNCHER_PROCESS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

/* Standard input, output, error, and the controlling terminal if it is none of them. */
#define SBX_TERMINALS_MAX 4

struct sbx_terminal {
	int fd;
	bool exclusive;   /* TIOCEXCL */
	bool has_modes;   /* the modes and flags are the caller's, and not another foreground
			   * job's */
	pid_t foreground; /* the foreground group; -1: not the controlling terminal */
	int flags;        /* of the open file, which the caller shares (F_GETFL) */
	struct termios modes;
};

struct sbx_terminals {
	struct sbx_terminal v[SBX_TERMINALS_MAX];
	size_t n;
	int opened_fd; /* of the controlling terminal, if it was opened for this; -1 */
};
#define SBX_TERMINALS_NONE ((struct sbx_terminals){ .opened_fd = -1 })

/* Save the state of the terminals that the command will have. 0-2 are borrowed. */
void sbx_terminals_save(struct sbx_terminals *t);

/* Restore the saved state of the terminals (terminal.c says which). May be called more than
 * once. */
void sbx_terminals_restore(const struct sbx_terminals *t);

/* The terminal that the cleanup process restores if the launcher is killed: an fd of @t, or -1. */
int sbx_terminals_watched(const struct sbx_terminals *t);

void sbx_terminals_fini(struct sbx_terminals *t);

#endif
