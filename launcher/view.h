/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_VIEW_H
#define SBX_LAUNCHER_VIEW_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "launcher/plan.h"

/*
 * The sandbox's file system as the plan's mounts will make it, and what a path leads to in it,
 * before any of it exists.
 */

/* The files that differ from sandbox to sandbox live here; /etc has symlinks to them. */
#define SBX_VIEW_RUN_DIR "/run/sbx"
#define SBX_RESOLV_CONF SBX_VIEW_RUN_DIR "/resolv.conf"
#define SBX_VIEW_PROC "/proc"
#define SBX_VIEW_DEV "/dev"

enum {
	SBX_VIEW_E_MISSING = 1,
	SBX_VIEW_E_NOTDIR, /* a part of the path is no directory */
	SBX_VIEW_E_ACCESS, /* the sandbox's user may not look there */
	SBX_VIEW_E_LOOP,   /* too many symlinks */
};

struct sbx_view_hit {
	char path[PATH_MAX]; /* in the sandbox, without symlinks */
	mode_t mode;	     /* file type; permission bits where a host file is behind it */
	int fd; /* borrowed O_PATH fd of the mount it is in; -1: made by the sandbox itself */
	char below[PATH_MAX]; /* from that fd; "" is the fd's object itself */
	const struct sbx_mount_op *op; /* that mount, borrowed from the plan; NULL with fd -1 */
};

/* Called with each path that turned out to be a symlink, as it was followed. */
typedef void (*sbx_view_hop)(void *userdata, const char *path);

/* Where @path (absolute) leads in the sandbox. 0, SBX_VIEW_E_*, or -errno. @hop may be NULL. */
int sbx_view_resolve(const struct sbx_plan *p, const char *path, sbx_view_hop hop, void *userdata,
		     struct sbx_view_hit *ret_hit);
/* May the effective user execute what was found (a regular file)? */
bool sbx_view_executable(const struct sbx_plan *p, const struct sbx_view_hit *hit);
const char *sbx_view_strerror(int e);

/* PURE. Why nothing may be mounted at @target (normalised); NULL when it may. */
const char *sbx_view_target_problem(const char *target);

/* --- how the plan's mounts are put together --- */

/* Append one op (view_mounts.c). NULL, or -ENOMEM: out of memory or places. */
struct sbx_mount_op *sbx_view_add(struct sbx_plan *p, enum sbx_mount_op_kind kind,
				  const char *dest);
int sbx_view_add_plain(struct sbx_plan *p, enum sbx_mount_op_kind kind, const char *dest);
int sbx_view_add_tmpfs(struct sbx_plan *p, const char *dest, uint64_t size_bytes, mode_t mode);

/* Append where the sandbox may write without a grant (view_scratch.c), and size p->scratch_bytes. 0,
 * SBX_PLAN_REFUSED with @errs, -errno. */
int sbx_view_add_scratch(struct sbx_plan *p, struct sbx_err_list *errs);
/* When all mounts are there: none of them may need it. */
void sbx_view_drop_unused_scratch(struct sbx_plan *p);

/* Append what is granted (view_grants.c). @why gets the reason when the current directory is not
 * among it, "" otherwise. 0, SBX_PLAN_REFUSED with @errs, -errno. */
int sbx_view_add_grants(struct sbx_plan *p, struct sbx_err_list *errs, char *why, size_t n_why);

#endif
