/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_GRANTS_GRANT_H
#define SBX_LAUNCHER_GRANTS_GRANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "launcher/user/session_sockets.h"
#include "launcher/view/draft.h"

/* The grants of one sandbox while they are collected, judged and mounted. */

#define SBX_PREFIXES_MAX 128

struct sbx_grant {
	/* Absolute paths; the target is normalised. Without a source: an empty directory in memory.
	 */
	char *source, *target;
	uint64_t size_bytes; /* of the directory in memory; 0: not said */
	const char
		*asked_by; /* the flag or key that asked, for messages; NULL: told by the origin */
	bool writable, optional;
	bool home;		 /* the home that stays */
	bool idmap_or_read_only; /* a source that cannot be id-mapped is mounted read-only */
	enum sbx_mount_origin origin;
	int mount_fd; /* the current directory's id-mapped mount, made already; else -1 */
};

/*
 * Directories of sbx. The sandbox never sees the first two. It may write none of them, neither by
 * itself nor by way of a directory above (a mount over it would not help: the directory above can
 * be renamed), because a write there decides how the next sandbox is built.
 */
enum {
	SBX_OWN_STATE,
	SBX_OWN_RUNTIME,
	SBX_N_OWN_HIDDEN,
	SBX_OWN_CONFIG = SBX_N_OWN_HIDDEN,
	SBX_OWN_USER_CONFIG,
	SBX_OWN_LIBEXEC,
	SBX_OWN_DATA,
	SBX_N_OWN
};

/* The host's system directories, which may be read in a minimal root without a prefix that admits
 * them. */
enum { SBX_N_SYSTEM_DIRS = 7 };

struct sbx_grants {
	const struct sbx_draft *d;
	struct sbx_err_list *errs;
	size_t n_grants;
	struct sbx_grant grants[SBX_GRANTS_MAX];
	const struct sbx_grant *overlay; /* the workspace, where it is an overlay; else NULL */
	/* The rules. */
	char *prefixes[SBX_PREFIXES_MAX + 1]; /* of the system policy, or the default ones */
	const char *read_prefixes[SBX_PREFIXES_MAX + SBX_N_SYSTEM_DIRS +
				  1]; /* for reading in a minimal root */
	const char *blocked[2 * SBX_PREFIXES_MAX + 1];
	char *own[SBX_N_OWN]; /* real paths */
	struct sbx_session_sockets sockets;
};

/* Starts with the rules for @d's sandbox and no grants; refusals go to @errs. 0, SBX_EXIT_REFUSED
 * or -ENOMEM. *ret_g is for sbx_grants_free() whatever the result. */
int sbx_grants_new(const struct sbx_draft *d, struct sbx_err_list *errs, struct sbx_grants **ret_g);
void sbx_grants_free(struct sbx_grants *g);
SBX_DEFINE_CLEANUP(struct sbx_grants, sbx_grants_free);

/* @path with a leading "~" as the home of the sandbox's user. malloc'ed; NULL: out of memory. */
char *sbx_grant_expand_home(const struct sbx_draft *d, const char *path);
/* Adds @err to the list of errors, with the flag or key that asked for @g. Returns
 * SBX_EXIT_REFUSED. */
int sbx_grant_refuse(struct sbx_grants *all, const struct sbx_grant *g, const struct sbx_err *err);

#endif
