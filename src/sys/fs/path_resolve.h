/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_PATH_RESOLVE_H
#define SBX_SYS_FS_PATH_RESOLVE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"

/* Resolution without judgement; path.c decides what may be granted. */

/* What resolving and judging (sys/fs/path.h) find wrong with a path. */
enum {
	SBX_PATH_E_RELATIVE = 1,
	SBX_PATH_E_DOTDOT,
	SBX_PATH_E_MISSING,      /* the resolved parent passes, but there is no such file */
	SBX_PATH_E_PREFIX,       /* outside every allowed prefix, or led there by somebody's symlink outside */
	SBX_PATH_E_SEGMENT,      /* a blocked segment in the path as resolved, as asked or in a symlink on the way */
	SBX_PATH_E_TYPE,         /* socket, fifo, device */
	SBX_PATH_E_FORBIDDEN,    /* /, $HOME as writable; /proc, /sys, /dev; holds a socket */
	SBX_PATH_E_ACCESS,       /* the user may not reach it (errno text in err) */
	SBX_PATH_E_LOOP,         /* too many symlinks */
	SBX_PATH_E_UNSUPPORTED,  /* no openat2 in this kernel */
	SBX_PATH_E_SET_ID,       /* set-id programs: it is the content, not the place */
};

/* Symlinks in one resolution, as the kernel's own limit: path_resolution(7). */
#define SBX_PATH_LINKS_MAX 40

/* Who, besides root, could have made the path lead to another object: by owning, or being let write,
 * directories and symlinks on the way. */
struct sbx_path_steering {
	uid_t by;	   /* 0: nobody */
	bool by_others;	   /* and more than that one */
	bool by_strangers; /* the same, where a group that may write is not counted */
};

/* A symlink that was followed. */
struct sbx_path_hop {
	char *at;   /* where it is: absolute, without symlinks */
	char *text; /* what it says */
	struct sbx_path_steering steering; /* who could have put another in its place */
};

struct sbx_resolved {
	int fd;         /* O_PATH|O_CLOEXEC; when @missing of the nearest existing ancestor */
	char *path;     /* absolute, no symlinks, `.`, `..`; whole also when @missing; malloc'ed */
	char *parent;   /* when @missing: the path of that ancestor; else NULL */
	struct stat st; /* of fd */
	bool missing;
	struct sbx_path_steering steering;
	struct sbx_path_hop *hops; /* in the order they were followed */
	size_t n_hops;
};

/* Can paths be judged at all? 0, or SBX_PATH_E_UNSUPPORTED with @err. */
int sbx_path_check_support(struct sbx_err *err);

/* Resolve the absolute path @path from /. 0 (also when missing), SBX_PATH_E_LOOP, _ACCESS, _TYPE,
 * _DOTDOT, _FORBIDDEN (it leads through a kernel file system), _UNSUPPORTED, or -errno; @err says
 * which component and why. */
int sbx_path_resolve(const char *path, struct sbx_err *err, struct sbx_resolved *ret_resolved);
void sbx_resolved_fini(struct sbx_resolved *r);

/* By one look: @path is absolute and normalised, it is there, and no symlink is on it, so that it is its own resolved
 * path. False says nothing. */
bool sbx_path_is_resolved(const char *path);

#endif
