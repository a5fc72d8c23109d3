/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_KEEP_KEEP_COPY_H
#define SBX_LAUNCHER_KEEP_KEEP_COPY_H

#include <stdint.h>

#include "base/err.h"

/*
 * --keep writes to its directory:
 *
 *   files/    files that were made or changed, as a tree
 *   removed   paths that are gone or are another kind of file now, relative to the workspace, each
 *             ended by a NUL byte. It is written last: where it is missing, files/ is not whole.
 *
 * To get the workspace as the command left it, remove the paths in `removed` and then copy files/
 * over it.
 */
#define SBX_KEEP_FILES "files"
#define SBX_KEEP_REMOVED "removed"

#define SBX_KEEP_DEPTH_MAX 256 /* directories in each other */

struct sbx_keep_bounds {
	uint64_t bytes;	  /* of data, and of the list */
	uint64_t entries; /* names in the upper layer */
};

struct sbx_keep_counts {
	uint64_t entries, bytes;
	uint64_t removed;  /* entries of the list */
	uint64_t left_out; /* sockets, fifos, devices */
};

/*
 * Copy @upper, an overlay's upper directory with hostile content, to @dir, which must be empty. The
 * sandbox that wrote to @upper is gone; concurrent changes by others spoil the copy and nothing
 * else. @lower is the overlay's lower directory, or -1. All three are borrowed. @upper must be open
 * for reading and owned by the caller; unreadable files in it are made readable. Nothing in it is
 * followed or executed. Modes are copied, limited by 0777 and the umask, and directories get u+rwx.
 * Times are copied; owners, attributes and ACLs are not. 0, or -errno with @err naming the file
 * (escape it: it may hold any byte), and a partial copy stays. @ret_counts is set in any case.
 */
int sbx_keep_copy(int upper, int lower, int dir, const struct sbx_keep_bounds *bounds,
		  struct sbx_keep_counts *ret_counts, struct sbx_err *err);

#endif
