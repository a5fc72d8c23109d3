/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_VIEW_VIEW_H
#define SBX_LAUNCHER_VIEW_VIEW_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "launcher/view/draft.h"

/*
 * The sandbox's file system as the plan's mounts will make it, and what a path leads to in it,
 * before any of it exists.
 */

/* The files that differ from sandbox to sandbox live here; /etc has symlinks to them. */
#define SBX_VIEW_RUN_DIR "/run/sbx"
#define SBX_RESOLV_CONF	 SBX_VIEW_RUN_DIR "/resolv.conf"
/* git's system-wide configuration, where the user has an identity to pass (git_identity.h). */
#define SBX_VIEW_GITCONFIG SBX_VIEW_RUN_DIR "/gitconfig"
/* For the self-test of an allow list: an executable without a format, which is not on the list. */
#define SBX_VIEW_UNLISTED SBX_VIEW_RUN_DIR "/unlisted"
#define SBX_VIEW_PROC	  "/proc"
#define SBX_VIEW_DEV	  "/dev"

enum {
	SBX_VIEW_E_MISSING = 1,
	SBX_VIEW_E_NOTDIR, /* a part of the path is no directory */
	SBX_VIEW_E_ACCESS, /* the sandbox's user may not look there */
	SBX_VIEW_E_LOOP,   /* too many symlinks */
};

/* Of a path below a grant, in the sandbox. */
#define SBX_VIEW_PATH_MAX (2 * PATH_MAX)

struct sbx_view_hit {
	char path[PATH_MAX]; /* in the sandbox, without symlinks */
	mode_t mode;	     /* file type; permission bits where a host file is behind it */
	struct stat st; /* of that file, with fd; what an id-map makes of its owner is not in it */
	int fd; /* borrowed O_PATH fd of the mount it is in; -1: made by the sandbox itself */
	char below[PATH_MAX];	       /* from that fd; "" is the fd's object itself */
	const struct sbx_mount_op *op; /* that mount, borrowed from the plan; NULL with fd -1 */
};

/* Called with each path that turned out to be a symlink, as it was followed. */
typedef void (*sbx_view_hop)(void *userdata, const char *path);

/* Find the object that @path (absolute) leads to in the sandbox. 0, SBX_VIEW_E_*, or -errno. @hop
 * may be NULL. */
int sbx_view_resolve(const struct sbx_draft *d, const char *path, sbx_view_hop hop, void *userdata,
		     struct sbx_view_hit *ret_hit);
/* May the effective user execute what was found (a regular file)? */
bool sbx_view_executable(const struct sbx_draft *d, const struct sbx_view_hit *hit);
const char *sbx_view_strerror(int e);
/* Open what was found on the host, a file or directory, to read it with the privileges that the
 * sandbox will have. fd, or -errno: -ESTALE when it is not what was found any more, -ENOENT for
 * what the sandbox itself makes. */
int sbx_view_open(const struct sbx_draft *d, const struct sbx_view_hit *hit);
/* Call @each with the names in a directory that was found, in no order: those on the host and those
 * of mounts on it. A directory that may not be listed has no names. The first result of @each that
 * is not 0; 0; -errno. */
typedef int (*sbx_view_each)(void *userdata, const char *name);
int sbx_view_list(const struct sbx_draft *d, const struct sbx_view_hit *hit, sbx_view_each each,
		  void *userdata);
/* Find @name in a directory that was found. Mounts on it and symlinks are not followed. Results as
 * of sbx_view_resolve(). */
int sbx_view_child(const struct sbx_draft *d, const struct sbx_view_hit *dir, const char *name,
		   struct sbx_view_hit *ret_hit);
/* Is what was found in a place where the sandbox may write? */
bool sbx_view_writable(const struct sbx_view_hit *hit);

/* The mount of the plan that @path, in the sandbox, lies in: the last one over it, masks too; a
 * self-bind shows what is there already and does not count. NULL: none. */
const struct sbx_mount_op *sbx_view_covering(const struct sbx_view *view, const char *path);
/* PURE. Something of the host's that a profile, a flag or the current directory grants. */
bool sbx_view_is_grant(const struct sbx_mount_op *op);

/* PURE. A granted directory whose files on the host the command may write. */
bool sbx_view_is_writable_dir(const struct sbx_mount_op *op);
/* PURE. As whom the command writes there: on an id-mapped mount as its owner, else as the sandbox's
 * user. */
uid_t sbx_view_writer(const struct sbx_facts *f, const struct sbx_mount_op *op);

/* Look at files below @op as the sandbox will be seen there: what an id-mapped grant shows is what
 * its owner sees now. 1: it began, 0: there is nothing to change, -errno. In any case
 * sbx_view_look_as_user_again() follows. */
struct sbx_lookup_ids;
int sbx_view_look_as_owner(const struct sbx_draft *d, const struct sbx_mount_op *op,
			   struct sbx_lookup_ids *ret_owner);
int sbx_view_look_as_user_again(const struct sbx_draft *d, int began, struct sbx_lookup_ids *owner);

/* PURE. Why nothing may be mounted at @target (normalised) in such a root; NULL when it may. */
const char *sbx_view_target_problem(enum sbx_root_kind root, const char *target);

#endif
