/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_SECCOMP_SECCOMP_H
#define SBX_SYS_SECCOMP_SECCOMP_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* seccomp filters, each a table with a reason per row (libseccomp, binary tree). */
enum sbx_seccomp_profile {
	SBX_SECCOMP_COMMAND, /* the command in the sandbox: deny list, EPERM (new calls: ENOSYS) */
	SBX_SECCOMP_BROKER,  /* allow list, kill */
	SBX_SECCOMP_FACTORY, /* the stage, when bwrap runs: allow list, kill */
	SBX_SECCOMP_FACTORY_TCP, /* the same, making sockets and changing the ruleset */
	SBX_SECCOMP_TLS, /* sbx-tls: allow list, kill */
	SBX_N_SECCOMP_PROFILES,
};

/* Install on this process; also sets no_new_privs. 0 or -errno. */
int sbx_seccomp_install(enum sbx_seccomp_profile which, struct sbx_err *err);
/* Write the program, struct sock_filter[], to @fd (a pipe or a file) for bwrap --add-seccomp-fd,
 * without the rows that @lifts (SBX_SECCOMP_BITs, base/seccomp_lift.h) remove. Some 10 KB: fits
 * an empty pipe. 0 or -errno. */
int sbx_seccomp_write(enum sbx_seccomp_profile which, uint32_t lifts, int fd, struct sbx_err *err);
/* Add a second filter: memfd_create(2) fails with EACCES unless the caller passes
 * MFD_NOEXEC_SEAL. Needs no_new_privs. 0 or -errno. The row that describes it: */
#define SBX_SECCOMP_MEMFD_ROW \
	"memfd_create(without MFD_NOEXEC_SEAL): EACCES: with commands.allow, a file that " \
	"Landlock does not judge must not execute"
int sbx_seccomp_hold_memfd(void);
/* The table's rows, for --dry-run and docs: i from 0 until NULL. "name: action: reason". Static
 * text. *@ret_lifts (may be NULL): the lifts that remove the row. PURE. */
const char *sbx_seccomp_row(enum sbx_seccomp_profile which, size_t i, uint32_t *ret_lifts);

#endif
