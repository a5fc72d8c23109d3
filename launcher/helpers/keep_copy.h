/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_KEEP_COPY_H
#define SBX_LAUNCHER_HELPERS_KEEP_COPY_H

#include <stdint.h>

#include "base/err.h"

/*
 * What --keep makes in its directory:
 *
 *   files/    what was made or changed, as a tree
 *   removed   what is gone, or is another kind of file now: paths from the workspace, each ended by a NUL byte.
 *             Written last: where it is missing, files/ is not whole.
 *
 * Removing the one and then copying the other over the workspace makes it what the command left.
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
 * Copy @upper, an overlay's upper directory whose content is hostile, to @dir, which must be empty. The sandbox
 * that wrote to @upper is gone; what others change in either meanwhile spoils the copy and nothing else. @lower
 * is what it lay on; -1: nothing. All three are borrowed; @upper must be open for reading, and its owner be us:
 * what its owner may not read is made readable there. Nothing in it is followed or executed; file modes are
 * kept up to 0777 and the umask, directories stay open to their owner; times are kept, owners, attributes and
 * ACLs are not. 0, or -errno with @err naming the file (the text may hold any byte of its name: escape it) and
 * what is there left as it is. @ret_counts is set in any case.
 */
int sbx_keep_copy(int upper, int lower, int dir, const struct sbx_keep_bounds *bounds,
		  struct sbx_keep_counts *ret_counts, struct sbx_err *err);

#endif
