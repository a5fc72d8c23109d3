/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_EXEC_FORMAT_H
#define SBX_LAUNCHER_COMMANDS_EXEC_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/*
 * The first bytes of a file that the kernel reads to execute it: they tell the interpreter or
 * loader that it needs. PURE; the bytes are untrusted.
 */

#define SBX_EXEC_HEAD_MAX                                                                          \
	256 /* as much as the kernel looks at (BINPRM_BUF_SIZE, since Linux 5.1) */
#define SBX_EXEC_PHDRS_MAX 65536 /* bytes of program headers (fs/binfmt_elf.c) */
#define SBX_EXEC_DEPTH_MAX 5	 /* scripts that interpret one another (fs/exec.c) */

enum sbx_exec_kind {
	SBX_EXEC_UNKNOWN = 0, /* the kernel answers ENOEXEC, and execvp(3) runs it by /bin/sh */
	SBX_EXEC_SCRIPT,
	SBX_EXEC_ELF,
};

struct sbx_exec_format {
	enum sbx_exec_kind kind;
	/* SCRIPT */
	char interpreter[SBX_EXEC_HEAD_MAX];
	char arg[SBX_EXEC_HEAD_MAX]; /* all that follows it, as one argument; "" */
	/* ELF: the place of its program headers; n_phdrs 0: of another class, or none */
	uint64_t phdrs_at;
	uint32_t n_phdrs;
};

enum {
	SBX_EXEC_E_NO_INTERPRETER = 1, /* #! and nothing */
	SBX_EXEC_E_TOO_LONG,	       /* the interpreter's path does not end within the head */
};

/* @head: the first SBX_EXEC_HEAD_MAX bytes of a file, or all of it. 0, SBX_EXEC_E_*. */
int sbx_exec_parse(struct sbx_span head, struct sbx_exec_format *ret_format);

#define SBX_EXEC_PHDR_BYTES 56 /* Elf64_Phdr */
/* Does @phdr, one program header, have the place of the loader's path? */
bool sbx_exec_is_interp(struct sbx_span phdr, uint64_t *ret_at, uint64_t *ret_n);

/* The program that env(1) would look for, by the rest of a script's #! line; "-S" and assignments
 * are understood. False: unknown (other options, quotes, a PATH of its own). */
bool sbx_exec_env_program(const char *arg, char ret_name[SBX_EXEC_HEAD_MAX]);

#endif
