/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_PROTECT_INTERNAL_H
#define SBX_LAUNCHER_PROTECT_PROTECT_INTERNAL_H

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include "launcher/protect/protect.h"
#include "sys/fs/path_resolve.h"

/* Shared by protect.c and protect_*.c. */

#define SBX_GIT	     ".git"
#define SBX_GIT_HEAD "HEAD"

#define SBX_PROTECT_BASES_MAX 256
#define SBX_PROTECT_PARTS_MAX 64 /* of one path below a grant */

/* A directory that protected paths are relative to. */
struct sbx_protect_base {
	char *path; /* below the grant; "" is its top */
	bool top;   /* absent paths are covered as well */
};

/* One of the lists, the system policy's first. */
struct sbx_protect_entry {
	const char *path;
	bool pattern;
	bool absent; /* to be covered where it is absent: at the top, or in a git directory */
};

struct sbx_protect {
	const struct sbx_draft *d;
	struct sbx_protect_entry *entries; /* path NULL ends them */
	bool has_names; /* there are patterns without a slash */
	size_t grant, n_bases;
	struct sbx_protect_base bases[SBX_PROTECT_BASES_MAX];
	/* -errno when something could not be looked at (sbx_errno_says_nothing()); else 0 */
	int failure;
	size_t n_git_dirs; /* of all grants */
	struct sbx_protect_git_dir {
		size_t grant;
		char *path; /* below it */
	} *git_dirs; /* those that are protected already */
};

/* --- the list (protect.c) --- */

/* Does the list have exactly this path? */
bool sbx_protect_is_listed(const struct sbx_protect *x, const char *path);
/* Hold files that match @pattern (NULL: any pattern without a slash). @dir is below the grant, and
 * open as @fd (borrowed; -1: it does not exist). 0 or -errno. */
int sbx_protect_matches(struct sbx_protect *x, const char *dir, int fd, const char *pattern);
/* PURE. Are absent paths covered in this base? */
bool sbx_protect_covers_absent(const struct sbx_protect *x, const struct sbx_protect_base *b);
/* PURE. The part of the entry after `.git/`; NULL: it is no entry of a git directory. */
const char *sbx_protect_git_entry(const char *e);
const struct sbx_mount_op *sbx_protect_grant(const struct sbx_protect *x);

/* --- a path below the grant (protect_path.c) --- */

/* A path as far as it was followed. */
struct sbx_trail {
	char dest[PATH_MAX]; /* in the sandbox */
	size_t n_dest;
	int fd;	    /* the directory reached, O_PATH; at first the grant's own */
	int own_fd; /* the same descriptor where the trail owns it; else -1 */
	size_t n;
	struct sbx_trail_dir {
		size_t n_dest;
		struct stat st;
	} *dirs; /* on the way; room for SBX_PROTECT_PARTS_MAX */
};
#define SBX_TRAIL_NONE { .fd = -1, .own_fd = -1 }

/* The end of a trail. Out of reach: it belongs to another mount, or its directory cannot be
 * searched. */
enum { SBX_TRAIL_FOUND, SBX_TRAIL_ABSENT, SBX_TRAIL_OUT_OF_REACH };

/* 0; -ENAMETOOLONG. */
int sbx_trail_begin(const struct sbx_protect *x, struct sbx_trail *t)
	__attribute__((warn_unused_result));
void sbx_trail_fini(struct sbx_trail *t);
/* Follow @path through directories. 0: t->fd is its end. 1: the trail stops early at t->dest, which
 * is no directory; *ret_what says why, and *ret_st is set with SBX_TRAIL_FOUND. -errno. */
int sbx_trail_follow(const struct sbx_protect *x, const char *path, struct sbx_trail *t,
		     struct stat *ret_st, int *ret_what);
/* The same from the beginning, without the last part of @path. */
int sbx_trail_follow_parent(const struct sbx_protect *x, const char *path, struct sbx_trail *t,
			    struct stat *ret_st, int *ret_what);
/* Self-bind the directories on the way. 0 or -errno; -E2BIG, here and below: there are too many
 * mounts. */
int sbx_trail_self_bind(struct sbx_protect *x, struct sbx_trail *t);
/* Make the end of the trail, which is @st, read-only, or mask it if it is a symlink. 0 or
 * -errno. */
int sbx_trail_hold(struct sbx_protect *x, struct sbx_trail *t, const struct stat *st);
/* Plan a placeholder and a mask at @dest, in the directory @parent, where nothing exists. 0 or
 * -errno. */
int sbx_trail_cover_absent(struct sbx_protect *x, int parent, const char *dest,
			   enum sbx_placeholder_kind kind);

/* Hold @dir/@rest below the grant. @absent: cover it where it does not exist. 0 or -errno. */
int sbx_protect_below(struct sbx_protect *x, const char *dir, const char *rest, bool absent);
/* Note the result @r of a lookup, and return it. A file that cannot be opened for lack of
 * descriptors may exist, so sbx_protect_end() refuses the grant, whatever the caller does with
 * @r. */
int sbx_protect_opened(struct sbx_protect *x, int r);
/* Open @path below the grant with open(2)'s @flags, without following symlinks. fd or -errno. */
int sbx_protect_open(struct sbx_protect *x, const char *path, int flags);
/* Self-bind the directory @dir/@name below the grant: it cannot be renamed and stays writable. A
 * symlink is masked; anything else is left alone. 0 or -errno. */
int sbx_protect_hold_place(struct sbx_protect *x, const char *dir, const char *name);
/* Open the directory @path below the grant for listing. *ret_list NULL: it is no directory, or a
 * symlink is on the way. 0 or -errno. */
int sbx_protect_list(struct sbx_protect *x, const char *path, DIR **ret_list);
bool sbx_protect_is_dir(struct sbx_protect *x, const char *path);
/* Call @protect in each writable grant that has the host path @path, with the path below the grant
 * ("": the grant itself). Stops at the first error. 0 or -errno. */
int sbx_protect_in_grants(struct sbx_protect *x, const char *path,
			  int (*protect)(struct sbx_protect *x, const char *path));
/* Hold the host path @path, which has no symlinks on the way, in each writable grant that has it. 0
 * or -errno. */
int sbx_protect_hold_outside(struct sbx_protect *x, const char *path);
/* Hold the symlinks that were followed to @found, where they lie in writable grants. 0 or
 * -errno. */
int sbx_protect_hops(struct sbx_protect *x, const struct sbx_resolved *found);
/* Does it exist? A placeholder of another sandbox does not count. */
bool sbx_protect_exists(struct sbx_protect *x, const char *dir, const char *name);
/* PURE. "a/b", of which either may be "". malloc'ed; NULL: out of memory. */
char *sbx_protect_join(const char *a, const char *b);

/* --- symlinks (protect_links.c) --- */

/* Follow the symlink @path below the grant, and hold the further symlinks on the way. 1: *ret_found
 * is its target, to be held; 0: it is no symlink, or its target needs no hold; -errno. Release
 * *ret_found in any case. */
int sbx_protect_lead(struct sbx_protect *x, const char *path, struct sbx_resolved *ret_found);
/* sbx_protect_below(), and hold the targets of symlinks there too. 0 or -errno. */
int sbx_protect_obeyed(struct sbx_protect *x, const char *dir, const char *rest, bool absent);

/* --- git (protect_git.c) --- */

/* Does the list have entries that begin with `.git/`? */
bool sbx_protect_has_git(const struct sbx_protect *x);
void sbx_protect_forget_git(struct sbx_protect *x);
/* Protect `.git` of a base. *ret_git_file: it is a file, so git does not look for a bare repository
 * there. 0 or -errno. */
int sbx_protect_git(struct sbx_protect *x, const struct sbx_protect_base *b, bool *ret_git_file);
/* Entry HEAD of the list: protect a bare repository, or prevent that the base becomes one. 0 or
 * -errno. */
int sbx_protect_head(struct sbx_protect *x, const struct sbx_protect_base *b, bool git_file);

#endif
