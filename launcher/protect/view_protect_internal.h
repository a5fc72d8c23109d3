/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_VIEW_PROTECT_INTERNAL_H
#define SBX_LAUNCHER_PROTECT_VIEW_PROTECT_INTERNAL_H

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include "launcher/protect/view_protect.h"
#include "sys/fs/path_resolve.h"

/* What the files of view_protect share. */

#define SBX_GIT	     ".git"
#define SBX_GIT_HEAD "HEAD"

#define SBX_PROTECT_BASES_MAX 256
#define SBX_PROTECT_PARTS_MAX 64 /* of one path below a grant */

/* A directory that protected paths are relative to. */
struct sbx_protect_base {
	char *path; /* below the grant; "" is its top */
	bool top;   /* what is absent is covered as well */
};

/* One of the lists, the system policy's first. */
struct sbx_protect_entry {
	const char *path;
	bool pattern;
	bool absent; /* is covered where it is absent: at the top, or in a git directory */
};

struct sbx_protect {
	const struct sbx_draft *d;
	struct sbx_protect_entry *entries; /* path NULL ends them */
	bool has_names; /* some are patterns of names in the place itself */
	size_t grant, n_bases;
	struct sbx_protect_base bases[SBX_PROTECT_BASES_MAX];
	int shortage; /* -errno of what could not be opened for want of descriptors or memory; 0 */
	size_t n_git_dirs; /* of all grants */
	struct sbx_protect_git_dir {
		size_t grant;
		char *path; /* below it */
	} *git_dirs; /* that are held already */
};

/* --- the list (view_protect.c) --- */

/* Does the list have exactly this path? */
bool sbx_protect_is_listed(const struct sbx_protect *x, const char *path);
/* Files that match @pattern (NULL: any pattern of a name) are held. @dir is below the grant, and open as @fd (borrowed; -1:
 * there is nothing). 0 or -errno. */
int sbx_protect_matches(struct sbx_protect *x, const char *dir, int fd, const char *pattern);
/* PURE. Is what is absent in the base covered? */
bool sbx_protect_covers_absent(const struct sbx_protect *x, const struct sbx_protect_base *b);
/* PURE. What comes behind `.git/`; NULL: it is no entry of a git directory. */
const char *sbx_protect_git_entry(const char *e);
const struct sbx_mount_op *sbx_protect_grant(const struct sbx_protect *x);

/* --- a path below the grant (view_protect_path.c) --- */

/* A path as far as it was followed. */
struct sbx_trail {
	char dest[PATH_MAX]; /* in the sandbox */
	size_t n_dest;
	int fd;	    /* the directory reached, O_PATH; the grant's own at first */
	int own_fd; /* the same, when it is to be closed; else -1 */
	size_t n;
	struct sbx_trail_dir {
		size_t n_dest;
		struct stat st;
	} *dirs; /* on the way; room for SBX_PROTECT_PARTS_MAX */
};
#define SBX_TRAIL_NONE { .fd = -1, .own_fd = -1 }

/* What is at the end of it; out of reach is what is not this grant's or may not be looked at. */
enum { SBX_TRAIL_FOUND, SBX_TRAIL_ABSENT, SBX_TRAIL_OUT_OF_REACH };

/* 0; -ENAMETOOLONG. */
int sbx_trail_begin(const struct sbx_protect *x, struct sbx_trail *t) __attribute__((warn_unused_result));
void sbx_trail_fini(struct sbx_trail *t);
/* Follow @path, directories all. 0: t->fd is its end; 1: it ends before, at t->dest, which is *ret_st or, with
 * *ret_what SBX_TRAIL_ABSENT, nothing; -errno. */
int sbx_trail_follow(const struct sbx_protect *x, const char *path, struct sbx_trail *t, struct stat *ret_st,
		     int *ret_what);
/* The same from the beginning, without the last part of @path. */
int sbx_trail_follow_parent(const struct sbx_protect *x, const char *path, struct sbx_trail *t, struct stat *ret_st,
			    int *ret_what);
/* Pin the directories on the way. 0 or -errno; -E2BIG: no more mounts can be had (everywhere here). */
int sbx_trail_pin(struct sbx_protect *x, struct sbx_trail *t);
/* What is found at the end of a trail stays as it is. 0 or -errno. */
int sbx_trail_hold(struct sbx_protect *x, struct sbx_trail *t, const struct stat *st);
/* A mask at @dest, in @parent, where there is nothing yet. 0 or -errno. */
int sbx_trail_cover_absent(struct sbx_protect *x, int parent, const char *dest, enum sbx_placeholder_kind kind);

/* @dir/@rest below the grant is held; @absent: covered where it is not there. 0 or -errno. */
int sbx_protect_below(struct sbx_protect *x, const char *dir, const char *rest, bool absent);
/* PURE. Does errno @error say that there are no more descriptors, or no more memory? */
bool sbx_protect_is_shortage(int error);
/* @r. What cannot be opened for want of descriptors is there all the same: the grant is refused at the end, whatever its
 * caller makes of it. */
int sbx_protect_opened(struct sbx_protect *x, int r);
/* A file or directory below the grant, with open(2)'s @flags, through no symlink. fd or -errno. */
int sbx_protect_open(struct sbx_protect *x, const char *path, int flags);
/* A directory at @dir/@name below the grant keeps its place and stays writable; a symlink is covered. Anything else is left
 * alone. 0 or -errno. */
int sbx_protect_keep(struct sbx_protect *x, const char *dir, const char *name);
/* The entries of the directory @path below the grant; *ret_list NULL: it is none, or is reached through a symlink. 0 or
 * -errno. */
int sbx_protect_list(struct sbx_protect *x, const char *path, DIR **ret_list);
bool sbx_protect_is_dir(struct sbx_protect *x, const char *path);
/* @path, outside and without symlinks on the way, is held in each writable grant that has it. 0 or -errno. */
int sbx_protect_hold_outside(struct sbx_protect *x, const char *path);
/* The symlinks that were followed to @found, where they lie in writable grants, cannot be replaced. 0 or -errno. */
int sbx_protect_hops(struct sbx_protect *x, const struct sbx_resolved *found);
/* A placeholder, of a sandbox next door, does not count. */
bool sbx_protect_exists(struct sbx_protect *x, const char *dir, const char *name);
/* PURE. "a/b", of which either may be "". malloc'ed; NULL: out of memory. */
char *sbx_protect_join(const char *a, const char *b);

/* --- symlinks (view_protect_links.c) --- */

/* 1: @path below the grant, a symlink that is held, leads to *ret_found, and what steers it is held; 0: it is none, or there
 * is nothing to hold; -errno. Release *ret_found in any case. */
int sbx_protect_lead(struct sbx_protect *x, const char *path, struct sbx_resolved *ret_found);
/* sbx_protect_below(), and what symlinks there lead to is held too. 0 or -errno. */
int sbx_protect_obeyed(struct sbx_protect *x, const char *dir, const char *rest, bool absent);

/* --- git (view_protect_git.c) --- */

/* Does the list say anything of git directories? */
bool sbx_protect_has_git(const struct sbx_protect *x);
void sbx_protect_forget_git(struct sbx_protect *x);
/* `.git` of a directory; *ret_git_file: it is a file, behind which git looks no further. 0 or -errno. */
int sbx_protect_git(struct sbx_protect *x, const struct sbx_protect_base *b, bool *ret_git_file);
/* What would make the directory a repository itself: entry HEAD of the list. 0 or -errno. */
int sbx_protect_head(struct sbx_protect *x, const struct sbx_protect_base *b, bool git_file);

#endif
