/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_GRANTS_KEEP_TARGET_H
#define SBX_LAUNCHER_GRANTS_KEEP_TARGET_H

#include "base/err.h"
#include "launcher/view/draft.h"
#include "sys/fs/path.h"

/* The target of --keep. */
struct sbx_keep_target {
	char *path; /* resolved; NULL: nothing is kept */
	int fd;	    /* O_PATH: the empty directory itself, or the one that it will be made in */
	char *name; /* to be made in fd; NULL: it is there */
};

/* Fill in d->keep by --keep's judged path; an fd of -1 in it: it will be made. 0; SBX_EXIT_REFUSED
 * with @err; -errno. */
int sbx_keep_target_open(const struct sbx_draft *d, const struct sbx_path *judged,
			 struct sbx_err *err);
/* Is a directory empty? 1, 0 or -errno. @dir may be O_PATH. */
int sbx_keep_target_is_empty(int dir);
void sbx_keep_target_fini(struct sbx_keep_target *k);

#endif
