/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_LANDLOCK_H
#define SBX_SYS_LANDLOCK_H

/* landlock(7), as far as it is used. */

/* The ABI of the running kernel; 0: it has no Landlock, or a filter hides it. */
int sbx_landlock_abi(void);

#define SBX_LANDLOCK_ABI_SCOPES 6 /* Linux 6.12 */

/* From now on this process and its children can send signals, and connect by abstract unix sockets, to one
 * another only: not to whoever else is in their process group, whatever pid namespace that is in, nor to
 * what else is in their network namespace. Needs no_new_privs. Inherited over exec, for good. 0;
 * -EOPNOTSUPP: ABI below SBX_LANDLOCK_ABI_SCOPES; -errno. */
int sbx_landlock_scope(void);

/*
 * The same, where the kernel can, and besides: nothing executes but files that are named, and nothing is read but what
 * is. Needs an ABI of 1. A ruleset is made, filled and enforced once.
 */
#define SBX_LANDLOCK_EXECUTE (1u << 0) /* of a file; its reader executes it, too: give both */
#define SBX_LANDLOCK_READ    (1u << 2) /* of a file, or of all files below a directory */
#define SBX_LANDLOCK_REFER   (1u << 13) /* of a directory: files move between the directories below it; ABI 2 */
/* The ruleset's fd or -errno. */
int sbx_landlock_programs_begin(void);
/* @access to what @fd (borrowed, may be O_PATH) is, and below it. What the ABI does not know is left out. 0 or -errno;
 * -EBADFD: nothing that has a place in a file system (a pipe, a socket), which is not held anyway. */
int sbx_landlock_allow(int ruleset, int fd, unsigned int access);
/* From now on, for this process and its children. Needs no_new_privs. 0 or -errno. */
int sbx_landlock_enforce(int ruleset);

#endif
