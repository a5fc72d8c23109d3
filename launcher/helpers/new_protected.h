/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_NEW_PROTECTED_H
#define SBX_LAUNCHER_HELPERS_NEW_PROTECTED_H

#include <stdbool.h>
#include <sys/stat.h>

#include "launcher/plan/plan.h"

/*
 * Protected paths that a command made (filesystem.new_protected: check): found, judged as data, and moved aside where a
 * tool of the host would act on them unasked. Runs on the host with the rights of the user as whom the grants are written
 * and no others. Everything below the grants is untrusted, and nothing of it is executed.
 */

#define SBX_UNTRUSTED ".sbx-untrusted" /* what is moved aside has this behind its name */

enum sbx_new_word {
	SBX_NEW_APPEARED = 'n', /* while the sandbox runs */
	SBX_NEW_MOVED = 'm',	/* it was moved aside */
	SBX_NEW_KEPT = 'k',	/* its tool asks before it acts */
	SBX_NEW_STUCK = 'u',	/* it could not be moved aside, or not everything was looked at */
	SBX_NEW_PLANTED = 'x',	/* once too often: the sandbox is to be ended */
};

/* @path is on the host, and @text a whole sentence for people; both are untrusted bytes. */
typedef void (*sbx_new_tell)(void *userdata, enum sbx_new_word word, const char *path, const char *text);

/* A writable grant. */
struct sbx_new_grant {
	int fd; /* O_PATH */
	bool own_fd;
	uid_t uid; /* as whom it is written */
	gid_t gid;
	dev_t dev;
	ino_t ino;
	char *path; /* on the host */
};

/* A path below a grant; "" is its top. */
struct sbx_new_path {
	size_t grant;
	char *path;
	dev_t dev; /* of what is held: which object that is */
	ino_t ino;
};

struct sbx_new_paths {
	size_t n, n_max;
	struct sbx_new_path *v;
};

struct sbx_new_entry {
	char *path; /* as in protected_paths */
	bool pattern;
	bool keeps; /* its tool asks */
};

/* All that the check goes by: it can be written down for who does it after a crash. */
struct sbx_new {
	size_t n_grants, n_entries;
	struct sbx_new_grant *grants;
	struct sbx_new_entry *entries;
	struct sbx_new_paths held;    /* read-only since the start */
	struct sbx_new_paths covered; /* another mount lies there: not this grant's */
	struct sbx_new_paths starts;  /* where the search begins */
	unsigned int depth;
	int64_t since; /* real time in seconds: the sandbox was not there before */
	bool changed_only; /* what did not change since then is not new */
	sbx_new_tell tell;
	void *userdata;
	bool ended;    /* the sandbox has: nothing is being written any more */
	void *places;  /* looked at (tsearch); in the end those found while the sandbox ran, too */
	void *told;    /* that they appeared */
	size_t n_told;
	struct sbx_new_planted *planted;
	size_t n_planted;
};

/* --- what the check goes by (new_protected_list.c) --- */

/* Of the plan's grants that @writer (NULL: anybody) writes; descriptors are borrowed from the plan. NULL: no memory. */
struct sbx_new *sbx_new_of_plan(const struct sbx_plan *p, const uid_t *writer);
struct sbx_new *sbx_new_free(struct sbx_new *x); /* NULL */
/* Write it down in the runtime directory, and read it again: NULL: there is none, or nothing is left to do. 0 or -errno. */
#define SBX_NEW_LIST "new_protected"
int sbx_new_write(const struct sbx_new *x, int dir_fd);
struct sbx_new *sbx_new_read(int dir_fd);
/* "a/b"; malloc'ed. NULL: no memory. */
char *sbx_new_join(const char *a, const char *b);
int sbx_new_add_path(struct sbx_new_paths *list, size_t grant, const char *path, const struct stat *st);

/* Open what is at @path below a grant, with open(2)'s @flags, by no symlink. fd or -errno. */
int sbx_new_open(const struct sbx_new *x, size_t grant, const char *path, int flags);
/* Open a directory to list it. One of the user's own whose mode forbids that gets another mode. fd or -errno. */
int sbx_new_open_dir(const struct sbx_new *x, size_t grant, const char *path);
/* Is @path, which is @st, read-only since the start, or below something that is? */
bool sbx_new_is_held(const struct sbx_new *x, size_t grant, const char *path, const struct stat *st);
/* Is it a file as it was before the sandbox, where that counts? */
bool sbx_new_is_old(const struct sbx_new *x, const struct stat *st);
/* Is it another mount's, or below one? */
bool sbx_new_is_covered(const struct sbx_new *x, size_t grant, const char *path);
/* PURE. Was it moved aside? */
bool sbx_new_is_aside(const char *name);
/* Where @text, which a file in the directory @from below the grant says, leads: below a grant, by no symlink. *ret_path is
 * malloc'ed. 0; -ENOENT: nothing is there (*ret_path is set); -EXDEV: out of what the command could write, or by a symlink;
 * -ENOMEM. */
int sbx_new_resolve(const struct sbx_new *x, size_t grant, const char *from, const char *text, size_t *ret_grant,
		    char **ret_path);

/* --- git directories (git_look.c) --- */

/* @name in @dir below the grant is what git would execute or obey, and @why says which part of it. In the directory @to, mostly
 * @dir, git obeys nothing that is called as what is moved aside. */
typedef void (*sbx_git_found)(struct sbx_new *x, size_t grant, const char *dir, const char *name, const char *to,
			      const char *why);

/* Judge the git directory at @path. @deep: with its modules/ and worktrees/. */
void sbx_git_look(struct sbx_new *x, size_t grant, const char *path, bool deep, sbx_git_found found);
/* Judge a git configuration, @name in @dir; one that is held, absent or harmless is passed by. */
void sbx_git_look_config(struct sbx_new *x, size_t grant, const char *dir, const char *name, sbx_git_found found);
/* The text of a gitfile or of commondir, behind @prefix; *ret_text is malloc'ed, or NULL. 0; -EAGAIN: nothing that git would
 * take, and it may be being written; -EXDEV: git would take it, and it is not to be judged. */
int sbx_git_read_name(const struct sbx_new *x, size_t grant, const char *path, const char *prefix, char **ret_text);

/* --- moving aside (new_aside.c) --- */

/* @dir/@name below the grant, as it is on the host; malloc'ed. NULL: no memory. */
char *sbx_new_host_path(const struct sbx_new *x, size_t grant, const char *dir, const char *name);
void sbx_new_tell_text(const struct sbx_new *x, enum sbx_new_word word, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* @name in @dir below the grant is renamed, in the directory @to, and that is told, with @why. What the command could not write
 * stays. */
void sbx_new_move_aside(struct sbx_new *x, size_t grant, const char *dir, const char *name, const char *to, const char *why);

/* --- finding and acting (new_protected.c) --- */

/* Look at a directory: at all entries, or at those that begin with @only. */
void sbx_new_look(struct sbx_new *x, size_t grant, const char *path, const char *only);
/* PURE. Can it make a directory a repository by itself? */
bool sbx_new_is_of_bare(const char *name);
/* Judge a git directory, and move aside what is found. */
void sbx_new_look_git(struct sbx_new *x, size_t grant, const char *path, bool deep);
/* The sandbox has ended: look at everything, of @writer (NULL: anybody). */
void sbx_new_check(struct sbx_new *x);

/* For the cleanup process and sweeps: the check of a launcher that is dead, by the list in the runtime directory @dir_fd. False: it is
 * for somebody with more rights. */
bool sbx_new_sweep(int dir_fd, bool privileged);

#endif
