/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_MOVED_DIR_H
#define SBX_LAUNCHER_PROTECT_MOVED_DIR_H

#include <stdint.h>

/* Open the directory that was at @path, with that device and inode, without following symlinks. If
 * it, or a directory above it, was renamed in the same place, it is found by its inode. fd, or
 * -errno of opening @path: -ENOENT where another directory is there. */
int sbx_moved_dir_open(const char *path, uintmax_t dev, uintmax_t ino);

#endif
