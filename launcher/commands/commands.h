/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_COMMANDS_H
#define SBX_LAUNCHER_COMMANDS_COMMANDS_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "launcher/view/mount_op.h"

/* The command and the programs that it may run: a part of the plan. */

/* A file that may execute; there is an allow list. */
enum sbx_program_why {
	SBX_PROGRAM_ENTRY = 0,	 /* for_what is the entry, or the command as it was asked for */
	SBX_PROGRAM_INTERPRETER, /* for_what is the script */
	SBX_PROGRAM_LOADER,	 /* for_what is one of the ELF files */
	SBX_N_PROGRAM_WHYS,
};
const char *sbx_program_why_str(enum sbx_program_why w);

struct sbx_program {
	char *path, *for_what;
	enum sbx_program_why why;
	dev_t dev;
	ino_t ino;
};

enum sbx_denied_by {
	SBX_DENIED_BY_PROFILE = 0,
	SBX_DENIED_BY_SYSTEM, /* the system policy's list, or the shipped one */
	SBX_DENIED_BY_RULE,   /* of the workspace or the host */
	SBX_N_DENIED_BY,
};
const char *sbx_denied_by_str(enum sbx_denied_by by); /* "profile", ... */

/* A file that a deny list masks. */
enum sbx_masked_why {
	SBX_MASKED_NAME = 0, /* the entry means it */
	SBX_MASKED_LINK,     /* another name of a masked file */
	SBX_MASKED_COPY,
	SBX_N_MASKED_WHYS,
};
const char *sbx_masked_why_str(enum sbx_masked_why w);

struct sbx_masked {
	char *path;  /* in the sandbox, without symlinks */
	char *below; /* from the fd of op */
	char *entry;
	char *of; /* LINK, COPY: the other one's path; else NULL */
	enum sbx_masked_why why;
	enum sbx_denied_by by;
	struct stat st;
	const struct sbx_mount_op *op; /* the mount that contains it, borrowed */
};
void sbx_masked_fini(struct sbx_masked *m);

struct sbx_commands {
	char *path; /* the resolved path of argv[0] in the sandbox; NULL: there is no command */
	size_t n_masked;
	struct sbx_masked *masked;
	size_t n_programs;	      /* 0: there is no allow list */
	struct sbx_program *programs; /* by path */
};

void sbx_commands_fini(struct sbx_commands *c);

#endif
