/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_TREE_TREE_PLACE_H
#define SBX_LAUNCHER_TREE_TREE_PLACE_H

#include <stdint.h>

/* The sandbox's view while the stage builds it (tree.h), and a place in it. */

struct sbx_tree {
	int root; /* O_PATH; -1: none yet */
	/* SBX_N_FILLS places for the files whose text comes later, O_WRONLY; the caller's, who
	 * closes them. NULL: they stay empty. */
	int *fills;
};

/* Open @path (absolute, normalised) in the tree with open(2)'s @flags, through no symlink. fd or
 * -errno. */
int sbx_tree_open(const struct sbx_tree *t, const char *path, uint64_t flags);

/* The same below @root, a descriptor, with @path relative to it. */
int sbx_tree_open_in(int root, const char *path, uint64_t flags);

#endif
