/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_MOVED_DIR_H
#define SBX_LAUNCHER_PROTECT_MOVED_DIR_H

#include <stdint.h>

/* Open the directory @path as it was listed, with device and inode, by no symlink. If it was moved, or a directory that it is
 * in, to another name in the same place, it is found there. fd, or -errno of what is at @path: -ENOENT where another
 * directory is. */
int sbx_moved_dir_open(const char *path, uintmax_t dev, uintmax_t ino);

#endif
