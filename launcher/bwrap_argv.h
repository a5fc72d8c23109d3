/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_BWRAP_ARGV_H
#define SBX_LAUNCHER_BWRAP_ARGV_H

#include <stddef.h>

#include "base/err.h"
#include "launcher/plan.h"

/*
 * bwrap's command line for a plan, and the table of fds its process gets besides 0-2.
 *
 * Everything but the command goes through --args, so that neither the environment nor the mounts
 * show in /proc/PID/cmdline. What bwrap runs is sbx-init, through its fd: it needs no place in the
 * sandbox. init's argv is {"/proc/self/fd/EXE", CTL, EXE, "--", command...}.
 */

enum sbx_bwrap_fd_kind {
	SBX_BWRAP_FD_CTL = 0, /* the channel to init: the launcher's to fill in */
	SBX_BWRAP_FD_EXE,     /* O_PATH of sbx-init: the launcher's to fill in */
	SBX_BWRAP_FD_SECCOMP, /* a pipe for sbx_seccomp_write(): the launcher's to fill in */
	SBX_BWRAP_FD_ARGS,    /* source: a memfd of ours, once sbx_bwrap_open() was called */
	SBX_BWRAP_FD_DATA,    /* the same, for one SBX_MOUNT_FILE */
	SBX_BWRAP_FD_BIND,    /* source: borrowed from the plan's mount */
	SBX_N_BWRAP_FD_KINDS,
};
const char *sbx_bwrap_fd_kind_str(enum sbx_bwrap_fd_kind k);

/* init gets the first two; bwrap closes the others before it starts init (checked by a probe). */
#define SBX_BWRAP_CTL_NUMBER	 3
#define SBX_BWRAP_EXE_NUMBER	 4
#define SBX_BWRAP_SECCOMP_NUMBER 5
#define SBX_BWRAP_ARGS_NUMBER	 6
#define SBX_BWRAP_FDS_MAX	 (4 + SBX_PLAN_MOUNTS_MAX)

struct sbx_bwrap_fd {
	enum sbx_bwrap_fd_kind kind;
	int number;	  /* in bwrap's process, consecutive from 3 */
	int source;	  /* -1: not there yet */
	const char *text; /* ARGS, DATA: what it reads, borrowed */
	size_t n_text;
};

struct sbx_bwrap {
	char **argv; /* for exec, NULL-terminated; strings of the command are borrowed */
	size_t n_args;
	char *args; /* NUL-separated, what --args reads */
	size_t n_fds;
	struct sbx_bwrap_fd fds[SBX_BWRAP_FDS_MAX];
	char text[3][32]; /* argv strings of our own */
};

/* PURE but for the plan's fds, whose numbers are copied. The plan must outlive it. 0 or -ENOMEM. */
int sbx_bwrap_new(const struct sbx_plan *p, struct sbx_bwrap **ret_bwrap);
/* Make the memfds of ARGS and DATA, and check that every BIND has its fd (sbx_etc_prepare() gives
 * /etc its). 0, or -errno with @err. */
int sbx_bwrap_open(struct sbx_bwrap *b, struct sbx_err *err);
struct sbx_bwrap *sbx_bwrap_free(struct sbx_bwrap *b); /* closes what sbx_bwrap_open() made */

#endif
