/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ETC_INTERNAL_H
#define SBX_LAUNCHER_ETC_INTERNAL_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>

/* Between etc.c and etc_names.c. */

/* A DIR of its own for the directory behind @fd (which may be O_PATH). NULL: errno. */
DIR *sbx_etc_open_dir(int fd);

/* Of the names that sbx_etc_has() knows: another version of sbx has another. */
uint64_t sbx_etc_table_hash(void);

/* sbx_etc_names(), from the file that the last run left in @cache where /etc has not changed since; else
 * read, and left there. @id makes a temporary name. */
int sbx_etc_names_kept(int cache, int host_etc_fd, const char *id, char ***ret_names, size_t *ret_n);

#endif
