/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_FILE_LOCK_H
#define SBX_SYS_FS_FILE_LOCK_H

/* Locks (flock(2)) on files: the lock says that the object with this name is in use. */

/* Take the exclusive lock of @fd, opened as @name below @dir_fd, without waiting. 0;
 * -EWOULDBLOCK; -ESTALE: @name no longer leads to @fd, because the former holder removed or
 * renamed it; -errno. */
int sbx_file_lock(int dir_fd, const char *name, int fd);

#endif
