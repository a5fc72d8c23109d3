/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_NEW_PROTECTED_LIST_H
#define SBX_LAUNCHER_HELPERS_NEW_PROTECTED_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "launcher/plan/plan.h"
#include "launcher/protect/placeholders.h"

/*
 * The data of the check of new protected paths (new_protected.h), and lookups in it. It is made
 * from the plan, or read from the list that a dead launcher left in its runtime directory.
 * Everything below the grants is untrusted.
 */

#define SBX_UNTRUSTED ".sbx-untrusted" /* the suffix of a name that was moved aside */

enum sbx_new_word {
	SBX_NEW_APPEARED = 'n', /* a protected path, while the sandbox runs */
	SBX_NEW_MOVED = 'm',	/* a path was moved aside */
	SBX_NEW_STAYS = 's',	/* a path stays: its tool asks before it acts on it */
	SBX_NEW_STUCK = 'u',	/* a path could not be moved aside */
	SBX_NEW_UNSEARCHED = 'i', /* a grant is not watched, or was not searched to its end */
	SBX_NEW_PLANTED = 'x',	/* a path was made too often: end the sandbox */
};

/* @path is a path on the host, @text a whole sentence for people. Both may hold any byte and are
 * untrusted. */
typedef void (*sbx_new_tell)(void *userdata, enum sbx_new_word word, const char *path,
			     const char *text);

/* A writable grant. */
struct sbx_new_grant {
	int fd; /* O_PATH */
	bool own_fd;
	uid_t uid; /* the user that it is written as */
	gid_t gid;
	dev_t dev;
	ino_t ino;
	char *path; /* on the host */
};

/* A path below a grant; "" is its top. */
struct sbx_new_path {
	size_t grant;
	char *path;
	dev_t dev; /* with ino: the object that is held */
	ino_t ino;
};

struct sbx_new_paths {
	size_t n, n_max;
	struct sbx_new_path *v;
};

struct sbx_new_entry {
	char *path; /* as in protected_paths */
	bool pattern;
	bool stays; /* its tool asks before it acts */
};

/* All data of the check. sbx_new_write() saves it for the check after a crash. */
struct sbx_new {
	size_t n_grants, n_entries;
	struct sbx_new_grant *grants;
	struct sbx_new_entry *entries;
	struct sbx_new_paths held;    /* read-only since the start */
	struct sbx_new_paths covered; /* another mount lies on it, so the grant does not show it */
	struct sbx_new_paths starts;  /* where the search begins */
	unsigned int depth;
	int64_t since;	   /* real time in seconds, before the sandbox started */
	bool changed_only; /* ignore files that did not change after that */
	sbx_new_tell tell;
	void *userdata;
	/* -errno when something could not be looked at (sbx_errno_says_nothing()); else 0 */
	int failure;
	bool ended;    /* the sandbox has ended: nothing is being written any more */
	void *places;  /* tsearch(3): directories that were looked at */
	void *told;    /* tsearch(3): paths that were told as SBX_NEW_APPEARED */
	size_t n_told;
	struct sbx_new_planted *planted;
	size_t n_planted;
};

/* Collect the grants that @writer (NULL: anybody) writes. Descriptors are borrowed from the plan.
 * NULL: no memory. */
struct sbx_new *sbx_new_of_plan(const struct sbx_plan *p,
				const struct sbx_placeholders *placeholders, const uid_t *writer);
struct sbx_new *sbx_new_free(struct sbx_new *x); /* NULL */

#define SBX_NEW_LIST "new_protected"
/* Save it in the runtime directory. 0 or -errno. */
int sbx_new_write(const struct sbx_new *x, int dir_fd);
/* Read it from there. *ret_x NULL: there is none, or its launcher was killed before the command
 * ran. 0; -errno: it, or one of its grants, cannot be opened. */
int sbx_new_read(int dir_fd, struct sbx_new **ret_x);
/* "a/b"; malloc'ed. NULL: no memory. */
char *sbx_new_join(const char *a, const char *b);
int sbx_new_add_path(struct sbx_new_paths *list, size_t grant, const char *path,
		     const struct stat *st);

/* Note the result @r of a lookup, and return it. A file whose lookup failed counts as one that may
 * be there. */
int sbx_new_looked(struct sbx_new *x, int r);
/* Open @path below a grant with open(2)'s @flags, without following symlinks. fd or -errno. */
int sbx_new_open(struct sbx_new *x, size_t grant, const char *path, int flags);
/* Open a directory to list it. If its mode forbids that and the user owns it, it gets u+rwx. fd or
 * -errno. */
int sbx_new_open_dir(struct sbx_new *x, size_t grant, const char *path);
/* Is @path, with the stat(2) @st, read-only since the start, or below a path that is? */
bool sbx_new_is_held(struct sbx_new *x, size_t grant, const char *path, const struct stat *st);
/* With changed_only: is it a file that did not change since the sandbox started? */
bool sbx_new_is_old(const struct sbx_new *x, const struct stat *st);
/* With changed_only: may the command have put @path in its place, or a directory on the way to it
 * behind the first @n_from bytes? A rename changes no file below the directory, but both the
 * directory and the one that it comes into. */
bool sbx_new_came(struct sbx_new *x, size_t grant, const char *path, size_t n_from);
/* Does another mount lie on @path, or above it? */
bool sbx_new_is_covered(const struct sbx_new *x, size_t grant, const char *path);
/* PURE. Is it the name of something that was moved aside? */
bool sbx_new_is_aside(const char *name);
/* Resolve the path @text, which was read from a file in the directory @from. *ret_grant and
 * *ret_path (malloc'ed) are the place that it names. 0; -ENOENT: nothing is there (*ret_path is
 * set); -EXDEV: it leads out of all grants, or through a symlink; -ENOMEM. */
int sbx_new_resolve(struct sbx_new *x, size_t grant, const char *from, const char *text,
		    size_t *ret_grant, char **ret_path);

#endif
