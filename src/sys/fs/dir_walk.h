/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_DIR_WALK_H
#define SBX_SYS_FS_DIR_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Looking for names below a directory, a few levels deep: what sandboxes must not read is found so, in trees that
 * other people filled. Symlinks are not followed; mounts are crossed, as a recursive bind crosses them. One
 * getdents64(2) per few hundred entries and no stat but for what is found (and where a file system gives no d_type).
 */

#define SBX_DIR_WALK_DEPTH_MAX 16

struct sbx_dir_walk {
	const char *const *names; /* NULL-terminated; in the order of their bytes, without doubles */
	unsigned int depth;	  /* levels looked at, 1 to SBX_DIR_WALK_DEPTH_MAX */
	uint64_t n_left;	  /* entries that may still be looked at; counted down, over several walks */
	/* Real time in seconds; not 0: a directory without directories whose st_ctime is before is not read again. */
	int64_t changed_since;
};

/* @path, below the root, is called @name and is @st (of a symlink: its own). Positive: do not look below it; 0: do;
 * negative: the walk ends with that. @name NULL: a directory ("" is the root) that belongs to the effective user, who
 * may not look into it now and may change that at any time; nothing is known of what is below. */
typedef int (*sbx_dir_walk_hit)(void *userdata, const char *path, const char *name, const struct stat *st);

/*
 * Walk below @root_fd (O_PATH will do; borrowed) with the rights of the caller. A directory of somebody else that may
 * be searched but not listed is asked for each name; one that may not be entered is passed by. 0; SBX_DIR_WALK_E_LIMIT when
 * w->n_left ran out; what @hit returned; -errno.
 */
enum { SBX_DIR_WALK_E_LIMIT = 1 };
int sbx_dir_walk(int root_fd, struct sbx_dir_walk *w, sbx_dir_walk_hit hit, void *userdata);

/* PURE. Put @names (n of them, borrowed) into the order that a walk needs, doubles dropped; the new count. v[count]
 * is not touched. */
size_t sbx_dir_walk_sort(const char **names, size_t n);

#endif
