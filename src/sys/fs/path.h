/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_PATH_H
#define SBX_SYS_FS_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"
#include "sys/fs/path_resolve.h"

/*
 * Mount sources, judged on what they are, not on what they are called (DESIGN section 8). The path
 * is resolved component by component from / with openat2(RESOLVE_NO_MAGICLINKS); symlinks are
 * followed by us; the O_PATH fd that was judged is the one that is bound later, so a swap after the
 * check changes nothing. Runs with the effective ids of the user the sandbox is for.
 */

/* A control socket of the caller's session, besides those that are known by path. */
struct sbx_path_socket {
	char *path;	  /* absolute, without symlinks as far as it exists */
	const char *said; /* who says so: a variable's name */
};

struct sbx_path_rules {
	const char *const *prefixes; /* absolute, normalised; NULL-terminated */
	const char *const *blocked_segments;
	const char *home; /* refused as writable, with everything above it */
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
/* The rules for a home directory, applied to @path, judged already, for another user's @home (absolute,
 * normalised), with the effective ids of that user. 0, or SBX_PATH_E_FORBIDDEN with @err. */
int sbx_path_check_home(const struct sbx_path *path, const char *home, bool writable, struct sbx_err *err);

/* May @path, judged and with an fd, be granted writable to who writes there as @uid and @gid, as far as set-id programs
 * go: neither is it one, nor is one among the first 256 entries of the directory itself. A set-gid file of @uid and
 * @gid is none. 0, SBX_PATH_E_SET_ID (also where @uid's own directory cannot be read), SBX_PATH_E_ACCESS (somebody
 * else's cannot), or -errno, with @err. */
int sbx_path_check_set_id(const struct sbx_path *path, uid_t uid, gid_t gid, struct sbx_err *err);

/* May @path (resolved) be granted as far as @prefix goes? @prefix as its owner wrote it: it may lead through
 * symlinks, but not through one that a sandbox may have made, in a directory that @rules let it be granted. */
bool sbx_path_prefix_admits(const char *path, const char *prefix, const struct sbx_path_rules *rules);

/* Where a directory that may not exist yet will be. malloc'ed; NULL: out of memory. */
char *sbx_path_real_location(const char *dir);
/* Can the effective user tell that it exists? Symlinks are followed. */
bool sbx_path_exists(const char *path);

/* PURE: is @path @prefix or below it, by whole components? Both normalised. */
bool sbx_path_in_prefix(const char *path, const char *prefix);
/* PURE: the first blocked segment in @path, or NULL. Whole components, exact bytes. */
const char *sbx_path_blocked_segment(const char *path, const char *const *blocked);

#endif
