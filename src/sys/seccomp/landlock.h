/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_SECCOMP_LANDLOCK_H
#define SBX_SYS_SECCOMP_LANDLOCK_H

/* The parts of landlock(7) that sbx uses. */

/* The ABI of the running kernel; 0: it has no Landlock, or a filter hides it. */
int sbx_landlock_abi(void);

#define SBX_LANDLOCK_ABI_SCOPES 6 /* Linux 6.12 */

/* linux/landlock.h: LANDLOCK_ACCESS_FS_*. */
#define SBX_LANDLOCK_EXECUTE (1u << 0) /* of a file; executing needs reading, too: give both */
#define SBX_LANDLOCK_READ    (1u << 2) /* of a file, or of all files below a directory */
/* Of a directory: making, removing and moving names below it (REMOVE_DIR to MAKE_SYM, and REFER
 * of ABI 2). */
#define SBX_LANDLOCK_CHANGE_DIRS (0x1ff0u | 1u << 13)

/*
 * From now on this process and its children
 * - make, remove and move names only below @root, a directory (borrowed, may be O_PATH): not in a
 *   directory of another sandbox that was passed to them (ABI 2);
 * - send signals, and connect by abstract unix sockets, only to one another: not to the rest of
 *   their process group, and not to other processes in their network namespace (ABI 6).
 * Needs no_new_privs. Inherited over exec, for good. 0; -EOPNOTSUPP: the kernel has no ABI of 2;
 * -errno.
 */
int sbx_landlock_confine(int root);

/*
 * The same, as far as the kernel supports it; besides, only allowed files execute, and only allowed
 * files and directories are read. Needs ABI 1. Make a ruleset, fill it, and enforce it once.
 */
/* The ruleset's fd or -errno. */
int sbx_landlock_programs_begin(void);
/* Allow @access to the file or directory @fd (borrowed, may be O_PATH), and below it. Bits that
 * the ABI does not know are left out. 0 or -errno; -EBADFD: @fd has no place in a file system (a
 * pipe, a socket); Landlock does not restrict that. */
int sbx_landlock_allow(int ruleset, int fd, unsigned int access);
/* Enforce on this process and its children from now on. Needs no_new_privs. 0 or -errno. */
int sbx_landlock_enforce(int ruleset);

#endif
