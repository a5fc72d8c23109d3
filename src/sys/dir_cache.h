/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_DIR_CACHE_H
#define SBX_SYS_DIR_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Directories that were read and had none of a set of names in them, kept in a file for the next walk
 * (sys/dir_walk.h): with 10,000 directories, reading them again costs 130 ms, and asking each for its times 15.
 *
 * A directory is known by its mount, inode and st_ctime, which changes with each entry that comes or goes and which
 * nobody can set (inode(7)). Not by its device: another file system may have the number next, with times of its maker's
 * choice; the unique id of a mount is given once in a boot (statx(2), Linux 6.8; on older kernels nothing is kept). Kept
 * only where st_ctime is kept so (ext4, XFS, Btrfs, F2FS, tmpfs), to the nanosecond, where names are not encrypted (a
 * key that is added changes all of them), and only when the last change was some seconds before it was read: two
 * changes within a tick of the clock have one time.
 */

struct sbx_dir_cache;

/* For the NULL-terminated @names (borrowed), from the file behind @fd, which is read when first asked for; -1: there is
 * none. Takes @fd in any case. NULL: no memory. */
struct sbx_dir_cache *sbx_dir_cache_new(int fd, const char *const *names);
struct sbx_dir_cache *sbx_dir_cache_free(struct sbx_dir_cache *c); /* NULL */

/* Is there anything to ask? What is in the file is believed when it is the caller's alone (owner, mode) and was
 * written for these names. */
bool sbx_dir_cache_is_filled(struct sbx_dir_cache *c);

/* What fstatat(2) says of @name in @dir (which may be "": @dir itself), not following links; *ret_mount is the mount's
 * unique id, 0 where nothing of it can be kept. 0 or -errno. */
int sbx_dir_cache_stat(int dir, const char *name, struct stat *ret_st, uint64_t *ret_mount);

/* The directory of @st had none of the names, and *ret_entries entries. To be kept again. */
bool sbx_dir_cache_has(struct sbx_dir_cache *c, const struct stat *st, uint64_t mount, uint32_t *ret_entries);

/* It was read to its end: @fd, @st and @mount from before that. */
void sbx_dir_cache_add(struct sbx_dir_cache *c, int fd, const struct stat *st, uint64_t mount, uint32_t n_entries);

/* Is there enough that is new? */
bool sbx_dir_cache_is_worth_storing(const struct sbx_dir_cache *c);

/* Write @name in @dir_fd anew, by way of @temporary. 0 or -errno; without it the next walk reads again. */
int sbx_dir_cache_store(struct sbx_dir_cache *c, int dir_fd, const char *name, const char *temporary);

#endif
