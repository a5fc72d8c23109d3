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
 * A directory is known by device, inode and st_ctime, which changes with each entry that comes or goes and which
 * nobody can set (inode(7)). Kept only where that is so (ext4, XFS, Btrfs, F2FS, tmpfs), and only when the last change
 * was some seconds before it was read: two changes within a tick of the clock have one time. Device numbers are given
 * again after a boot, so the file belongs where a boot empties it.
 */

struct sbx_dir_cache;

/* For the NULL-terminated @names (borrowed), from the file behind @fd, which is read when first asked for; -1: there is
 * none. Takes @fd in any case. NULL: no memory. */
struct sbx_dir_cache *sbx_dir_cache_new(int fd, const char *const *names);
struct sbx_dir_cache *sbx_dir_cache_free(struct sbx_dir_cache *c); /* NULL */

/* Is there anything to ask? What is in the file is believed when it is the caller's alone (owner, mode) and was
 * written for these names. */
bool sbx_dir_cache_is_filled(struct sbx_dir_cache *c);

/* The directory of @st had none of the names, and *ret_entries entries. To be kept again. */
bool sbx_dir_cache_has(struct sbx_dir_cache *c, const struct stat *st, uint32_t *ret_entries);

/* It was read: @fd, @st from before that. */
void sbx_dir_cache_add(struct sbx_dir_cache *c, int fd, const struct stat *st, uint32_t n_entries);

/* Is there much in the file? */
bool sbx_dir_cache_is_large(struct sbx_dir_cache *c);

/* One that has the same and can be asked and added to at the same time, by another thread; merged into @c and gone
 * afterwards. NULL: no memory. */
struct sbx_dir_cache *sbx_dir_cache_share(struct sbx_dir_cache *c);
void sbx_dir_cache_merge(struct sbx_dir_cache *c, struct sbx_dir_cache *shared);

/* Is there enough that is new? */
bool sbx_dir_cache_is_worth_storing(const struct sbx_dir_cache *c);

/* Write @name in @dir_fd anew, by way of @temporary. 0 or -errno; without it the next walk reads again. */
int sbx_dir_cache_store(struct sbx_dir_cache *c, int dir_fd, const char *name, const char *temporary);

#endif
