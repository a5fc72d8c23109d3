/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_FILE_TEXT_H
#define SBX_SYS_FS_FILE_TEXT_H

#include <stddef.h>
#include <sys/types.h>

/* Reading and writing small files of /proc, /sys and cgroupfs. @name is below @dir_fd, or
 * absolute with AT_FDCWD. */

/* Read a file into @buf: at most n - 1 bytes, always with a NUL. Returns the length, or -errno
 * with @buf "". */
ssize_t sbx_file_text_read(int dir_fd, const char *name, char *buf, size_t n);
/* Write all of @text by one write(2) into an existing file. 0 or -errno. */
int sbx_file_text_write(int dir_fd, const char *name, const char *text);

#endif
