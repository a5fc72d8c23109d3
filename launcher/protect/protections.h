/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_PROTECTIONS_H
#define SBX_LAUNCHER_PROTECT_PROTECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "policy/profile.h"

/* What planning finds out about protected paths: a part of the plan. */

/* Of a commondir that leads to its own directory. libgit2, and so cargo, finds no repository beside a bare ".". */
#define SBX_PLACEHOLDER_DOT_TEXT "./\n"

/* Made for a mask where there is nothing to mount it on (placeholders.h). */
enum sbx_placeholder_kind {
	SBX_PLACEHOLDER_SOCKET = 0, /* git does not see one, opening it fails at once, and it holds nothing */
	SBX_PLACEHOLDER_FILE,	    /* empty */
	SBX_PLACEHOLDER_DOT,	    /* a file with "./\n": a git directory's commondir that says what its absence says */
	SBX_N_PLACEHOLDER_KINDS,
};

/* A directory that placeholders are in. */
struct sbx_placeholder_dir {
	int fd;	      /* O_PATH, owned */
	int lock_fd;  /* shared lock on it; -1: not yet */
	int model_fd; /* O_PATH of a socket that others are hard links of; -1 */
	struct stat model_st;
	bool lock_is_others;  /* somebody locked it exclusively, and does not let go; lock_fd has the mark of use alone */
	bool links_by_path;   /* the kernel wants a path of the model, and no descriptor */
	bool links_are_alike; /* the first link had the model's number, as not in every FUSE */
	char *path;   /* on the host, for messages and sweeps */
	size_t grant; /* in the plan's mounts: who may write there */
};

struct sbx_placeholder {
	enum sbx_placeholder_kind kind;
	size_t dir; /* in the plan's placeholder_dirs */
	char *name;
	size_t op; /* in the plan's mounts: the mask */
	bool made;
	struct stat st;
};
#define SBX_PLACEHOLDERS_MAX 1536

/* Their modes are their mark: write permission for nobody, and a sticky bit that means nothing. */
#define SBX_PLACEHOLDER_SOCKET_MODE (S_IFSOCK | S_ISVTX | 0444)
#define SBX_PLACEHOLDER_FILE_MODE   (S_IFREG | S_ISVTX | 0444)
/* PURE. What stat(2) says of one, whoever made it: a sandbox next door, or one that a power cut ended. */
bool sbx_placeholder_is_one(const struct stat *st);

struct sbx_protections {
	enum sbx_new_protected new_protected; /* the stricter of the profile's and the system policy's */
	uint64_t n_walked; /* entries looked at below grants */
	int64_t walked_s;  /* when that began, real time */
	size_t n_placeholders, n_placeholder_dirs;
	struct sbx_placeholder *placeholders;
	struct sbx_placeholder_dir *placeholder_dirs;
};

void sbx_protections_fini(struct sbx_protections *x);

#endif
