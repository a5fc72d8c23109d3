/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_PROTECTIONS_H
#define SBX_LAUNCHER_PROTECT_PROTECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "policy/profile/profile.h"

/* The part of the plan about protected paths. */

/* The text of a commondir that names its own directory. With "." alone, libgit2, and so cargo,
 * would find no repository. */
#define SBX_PLACEHOLDER_DOT_TEXT "./\n"

/* A file made for a mask where nothing exists to mount it on (placeholders.h). */
enum sbx_placeholder_kind {
	/* git ignores it, opening it fails at once, and it holds no data */
	SBX_PLACEHOLDER_SOCKET = 0,
	SBX_PLACEHOLDER_FILE,	    /* empty */
	/* a commondir with "./\n": git treats it as if there were none */
	SBX_PLACEHOLDER_DOT,
	SBX_N_PLACEHOLDER_KINDS,
};

/* A directory that has placeholders. */
struct sbx_placeholder_dir {
	int fd; /* O_PATH, owned */
	char *path; /* on the host, for messages and sweeps */
	size_t grant; /* in the plan's mounts: who may write there */
};

struct sbx_placeholder {
	enum sbx_placeholder_kind kind;
	size_t dir; /* in the plan's placeholder_dirs */
	char *name;
	size_t op; /* in the plan's mounts: the mask */
};
#define SBX_PLACEHOLDERS_MAX 1536

/* Their mode is their mark: no write permission, and a sticky bit without meaning. */
#define SBX_PLACEHOLDER_SOCKET_MODE (S_IFSOCK | S_ISVTX | 0444)
#define SBX_PLACEHOLDER_FILE_MODE   (S_IFREG | S_ISVTX | 0444)
/* PURE. Is it the stat(2) of a placeholder, of this sandbox or of any other, also one that a power
 * cut ended? */
bool sbx_placeholder_is_one(const struct stat *st);

struct sbx_protections {
	/* the stricter of those in the profile and the system policy */
	enum sbx_new_protected new_protected;
	uint64_t n_scanned; /* entries below grants that were scanned */
	int64_t scanned_s;  /* real time when that began */
	size_t n_placeholders, n_placeholder_dirs;
	struct sbx_placeholder *placeholders;
	struct sbx_placeholder_dir *placeholder_dirs;
};

void sbx_protections_fini(struct sbx_protections *x);

#endif
