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

#endif
