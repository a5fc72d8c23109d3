/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_SECCOMP_LANDLOCK_H
#define SBX_SYS_SECCOMP_LANDLOCK_H

/* landlock(7), as far as it is used. */

/* The ABI of the running kernel; 0: it has no Landlock, or a filter hides it. */
int sbx_landlock_abi(void);

#define SBX_LANDLOCK_ABI_SCOPES 6 /* Linux 6.12 */

/* linux/landlock.h: LANDLOCK_ACCESS_FS_*. */
#define SBX_LANDLOCK_EXECUTE (1u << 0) /* of a file; its reader executes it, too: give both */
#define SBX_LANDLOCK_READ    (1u << 2) /* of a file, or of all files below a directory */
/* Of a directory: names below it are made, removed and moved (REMOVE_DIR to MAKE_SYM, and REFER of ABI 2). */
#define SBX_LANDLOCK_CHANGE_DIRS (0x1ff0u | 1u << 13)

/*
 * From now on this process and its children
 * - make, remove and move names only below @root, a directory (borrowed, may be O_PATH): not in a directory of another
 *   sandbox that was passed to them (ABI 2);
 * - send signals, and connect by abstract unix sockets, only to one another: not to the rest of their process group,
 *   and not to other processes in their network namespace (ABI 6).
 * Needs no_new_privs. Inherited over exec, for good. 0; -EOPNOTSUPP: the kernel has no ABI of 2; -errno.
 */
int sbx_landlock_confine(int root);

/*
 * The same, as far as the kernel can, and besides: only files that are named execute, and only what is named is read.
 * Needs an ABI of 1. A ruleset is made, filled and enforced once.
 */
/* The ruleset's fd or -errno. */
int sbx_landlock_programs_begin(void);
/* @access to what @fd (borrowed, may be O_PATH) is, and below it. What the ABI does not know is left out. 0 or -errno;
 * -EBADFD: nothing that has a place in a file system (a pipe, a socket), which is not held anyway. */
int sbx_landlock_allow(int ruleset, int fd, unsigned int access);
/* From now on, for this process and its children. Needs no_new_privs. 0 or -errno. */
int sbx_landlock_enforce(int ruleset);

#endif
