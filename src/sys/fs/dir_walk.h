/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_DIR_WALK_H
#define SBX_SYS_FS_DIR_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Looks for names below a directory, a few levels deep. It finds the files that sandboxes must not
 * read, in trees that untrusted users filled. Symlinks are not followed; mounts are crossed, as a
 * recursive bind crosses them. Costs one getdents64(2) per few hundred entries, and a stat only for
 * a hit (and where a file system gives no d_type).
 */

#define SBX_DIR_WALK_DEPTH_MAX 16

struct sbx_dir_walk {
	/* NULL-terminated; in the order of their bytes, without doubles */
	const char *const *names;
	unsigned int depth;	  /* levels looked at, 1 to SBX_DIR_WALK_DEPTH_MAX */
	/* entries that may still be read; counted down, over several walks */
	uint64_t n_left;
	/* Real time in seconds. Not 0: skip a directory without subdirectories whose st_ctime is
	 * older. */
	int64_t changed_since;
};

/* @path, relative to the root, has the name @name and the status @st (of a symlink: its own).
 * Return positive: do not look below it; 0: do; negative: end the walk with that. @name NULL:
 * @path ("": the root) is a directory of the effective user who may not read it now but can
 * change that at any time; what is below is unknown. */
typedef int (*sbx_dir_walk_hit)(void *userdata, const char *path, const char *name,
				const struct stat *st);

/*
 * Walk below @root_fd (borrowed, may be O_PATH) with the privileges of the caller. In another
 * user's directory that may be searched but not listed, each name is asked for; one that may not be
 * entered is skipped. 0; SBX_DIR_WALK_E_LIMIT when w->n_left is used up; the value of @hit; -errno.
 */
enum { SBX_DIR_WALK_E_LIMIT = 1 };
int sbx_dir_walk(int root_fd, struct sbx_dir_walk *w, sbx_dir_walk_hit hit, void *userdata);

/* PURE. Sort @names (n of them, borrowed) as a walk needs them and drop doubles; returns the new
 * count. v[count] is not touched. */
size_t sbx_dir_walk_sort(const char **names, size_t n);

#endif
