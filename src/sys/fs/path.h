/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_PATH_H
#define SBX_SYS_FS_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"
#include "sys/fs/path_resolve.h"

/*
 * Judging the sources of mounts by the object, not by its name (docs/architecture/run.md). The path
 * is resolved component by component from / with openat2(RESOLVE_NO_MAGICLINKS), and symlinks are
 * followed in this program. The O_PATH fd that was judged is mounted later, so exchanging the file
 * after the check changes nothing. Runs with the effective ids of the sandbox's user.
 */

/* A control socket of the caller's session, besides the known paths in path.c. */
struct sbx_path_socket {
	char *path;	  /* absolute, without symlinks as far as it exists */
	const char *said; /* the variable that names it */
};

struct sbx_path_rules {
	const char *const *prefixes; /* absolute, normalised; NULL-terminated */
	const char *const *blocked_segments;
	const char *home; /* not granted writable, and neither are the directories above it */
	const struct sbx_path_socket *sockets;
	size_t n_sockets;
	bool writable;
};

struct sbx_path {
	int fd;         /* O_PATH|O_CLOEXEC of the resolved object; -1 when missing */
	char *resolved; /* absolute, without symlinks; malloc'ed */
	struct stat st; /* of fd */
	struct sbx_path_steering steering;
};

/* 0, SBX_PATH_E_* (with @err saying what, where and what to do), or -errno. */
int sbx_path_judge(const char *source, const struct sbx_path_rules *rules, struct sbx_err *err,
		   struct sbx_path *ret_path);
void sbx_path_fini(struct sbx_path *p);
/* Apply the rules for a home directory to @path, judged already, with another user's @home
 * (absolute, normalised) and the effective ids of that user. 0, or SBX_PATH_E_FORBIDDEN with
 * @err. */
int sbx_path_check_home(const struct sbx_path *path, const char *home, bool writable,
			struct sbx_err *err);

/* Do set-id programs forbid to grant @path (judged, with an fd) writable to a sandbox with the
 * ids @uid and @gid? They do when @path is one, or when one is among the first 256 entries of
 * the directory. A set-gid file of @uid and @gid does not count. 0, SBX_PATH_E_SET_ID (also
 * where @uid's own directory cannot be read), SBX_PATH_E_ACCESS (another user's directory cannot
 * be read), or -errno, with @err. */
int sbx_path_check_set_id(const struct sbx_path *path, uid_t uid, gid_t gid, struct sbx_err *err);

/* Does @prefix allow to grant @path (resolved)? @prefix is as its owner wrote it and may lead
 * through symlinks, but not through one in a directory that @rules let a sandbox write: a
 * sandbox may have made that symlink. */
bool sbx_path_prefix_admits(const char *path, const char *prefix,
			    const struct sbx_path_rules *rules);

/* The resolved path of a directory that may not exist yet. malloc'ed; NULL: out of memory. */
char *sbx_path_real_location(const char *dir);
/* Can the effective user see that @path exists? Follows symlinks. */
bool sbx_path_exists(const char *path);

/* PURE: is @path @prefix or below it, by whole components? Both normalised. */
bool sbx_path_in_prefix(const char *path, const char *prefix);
/* PURE: the first blocked segment in @path, or NULL. Whole components, exact bytes. */
const char *sbx_path_blocked_segment(const char *path, const char *const *blocked);

#endif
