/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_FILE_LOCK_H
#define SBX_SYS_FS_FILE_LOCK_H

/* Locks (flock(2)) that say that what a name means is in use, for as long as the name means it. */

/* Take the exclusive lock of @fd, opened as @name below @dir_fd, without a wait. 0; -EWOULDBLOCK; -ESTALE: who had it
 * removed it or gave it another name, so that @name says nothing about @fd, and @fd nothing about @name; -errno. */
int sbx_file_lock(int dir_fd, const char *name, int fd);

#endif
