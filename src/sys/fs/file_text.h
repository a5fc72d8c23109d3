/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_FILE_TEXT_H
#define SBX_SYS_FS_FILE_TEXT_H

#include <stddef.h>
#include <sys/types.h>

/* Small texts as /proc, /sys and cgroupfs have them. @name is below @dir_fd, or absolute with AT_FDCWD. */

/* The text of a file, cut at n - 1 bytes, with a NUL in any case. Its length, or -errno with @buf "". */
ssize_t sbx_file_text_read(int dir_fd, const char *name, char *buf, size_t n);
/* All of @text by one write(2), into a file that is there. 0 or -errno. */
int sbx_file_text_write(int dir_fd, const char *name, const char *text);

#endif
