/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_SECCOMP_H
#define SBX_SYS_SECCOMP_H

#include <stddef.h>

#include "base/err.h"

/* seccomp filters, each a table with a reason per row (libseccomp, binary tree). */
enum sbx_seccomp_profile {
	SBX_SECCOMP_COMMAND, /* what runs in the sandbox: deny list, EPERM (new calls: ENOSYS) */
	SBX_SECCOMP_BROKER,  /* allow list, kill */
	SBX_SECCOMP_FACTORY, /* the stage as socket factory: allow list, kill */
	SBX_N_SECCOMP_PROFILES,
};

/* Install on this process (no_new_privs is set by it). 0 or -errno. */
int sbx_seccomp_install(enum sbx_seccomp_profile which, struct sbx_err *err);
/* Write the program, struct sock_filter[], to @fd (a pipe or a file), for bwrap --add-seccomp-fd. Some
 * 10 KB: fits an empty pipe. 0 or -errno. */
int sbx_seccomp_write(enum sbx_seccomp_profile which, int fd, struct sbx_err *err);
/* The table, for --dry-run and docs: i from 0 until NULL. "name: action: reason". Static text.
 * PURE. */
const char *sbx_seccomp_row(enum sbx_seccomp_profile which, size_t i);

#endif
