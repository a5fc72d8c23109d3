/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_PATH_RESOLVE_H
#define SBX_SYS_FS_PATH_RESOLVE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"

/* Resolves paths and does not judge them: path.c decides what may be granted. */

/* The results of resolving and judging (sys/fs/path.h) a path that is refused. */
enum {
	SBX_PATH_E_RELATIVE = 1,
	SBX_PATH_E_DOTDOT,
	SBX_PATH_E_MISSING,      /* the resolved parent is allowed, but there is no such file */
	SBX_PATH_E_PREFIX,       /* outside every allowed prefix, or reached by another user's
				  * symlink outside */
	SBX_PATH_E_SEGMENT,      /* a blocked segment in the resolved path, the requested path or
				  * a symlink on the way */
	SBX_PATH_E_TYPE,         /* socket, fifo, device */
	SBX_PATH_E_FORBIDDEN,    /* /, $HOME as writable; /proc, /sys, /dev; holds a socket */
	SBX_PATH_E_ACCESS,       /* the user may not reach it (errno text in err) */
	SBX_PATH_E_LOOP,         /* too many symlinks */
	SBX_PATH_E_UNSUPPORTED,  /* no openat2 in this kernel */
	SBX_PATH_E_SET_ID,       /* set-id programs are in it; the place would be allowed */
};

/* Symlinks followed in one resolution: the kernel's own limit, path_resolution(7). */
#define SBX_PATH_LINKS_MAX 40

/* The users, besides root, that could have made the path lead to another object: they own, or
 * may write, a directory or symlink on the way. */
struct sbx_path_steering {
	uid_t by;	   /* one of them; 0: there is none */
	bool by_others;	   /* there are more than one */
	bool by_strangers; /* the same, not counting groups that may write */
};

/* A symlink that was followed. */
struct sbx_path_hop {
	char *at;   /* its path: absolute, without symlinks */
	char *text; /* its target */
	struct sbx_path_steering steering; /* the users that could have replaced it */
};

struct sbx_resolved {
	int fd;         /* O_PATH|O_CLOEXEC; if @missing, of the nearest existing ancestor */
	char *path;     /* absolute, without symlinks, `.`, `..`; the whole path also if
			 * @missing; malloc'ed */
	char *parent;   /* if @missing: the path of that ancestor; else NULL */
	struct stat st; /* of fd */
	bool missing;
	struct sbx_path_steering steering;
	struct sbx_path_hop *hops; /* in the order they were followed */
	size_t n_hops;
};

/* Does this kernel have openat2? 0, or SBX_PATH_E_UNSUPPORTED with @err. */
int sbx_path_check_support(struct sbx_err *err);

/* Resolve the absolute path @path from /. 0 (also if missing), SBX_PATH_E_LOOP, _ACCESS, _TYPE,
 * _DOTDOT, _FORBIDDEN (it leads through a kernel file system), _UNSUPPORTED, or -errno; @err names
 * the component and the reason. */
int sbx_path_resolve(const char *path, struct sbx_err *err, struct sbx_resolved *ret_resolved);
void sbx_resolved_fini(struct sbx_resolved *r);

/* Is @path its own resolved path? True: it is absolute and normalised, it exists, and no symlink is
 * on it. False means unknown. Costs one system call. */
bool sbx_path_is_resolved(const char *path);

#endif
