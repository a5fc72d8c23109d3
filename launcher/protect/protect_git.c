/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Git directories, wherever they are. The entries of the list that begin with `.git/` protect each
 * of them:
 *
 * - `.git` itself, or the git directory that a file `.git` names or a symlink `.git` leads to;
 * - the git directory that its commondir names (git follows one such file, not a chain);
 * - each entry of worktrees/ of any of them;
 * - those of submodules, below modules/ of any of them. A submodule's name may have slashes, so
 *   every directory there is looked at, however deep. A directory with any of HEAD, config,
 *   commondir, objects and refs is a git directory;
 * - a bare repository (sbx_protect_head).
 *
 * A `.git` under another mount, which the command cannot reach or write, still leads the host's git
 * to a git directory.
 *
 * A command must not hide a git directory from the next run. So no rule depends on a file that a
 * command could move away: `config` and `hooks` are mount points once they are protected, and so
 * are `objects` and `refs` where the directory is known as a git directory by its entries alone.
 *
 * More than GIT_DIRS_MAX git directories are refused. A modules/ with more than MODULES_MAX
 * directories, or deeper than MODULES_DEPTH, becomes read-only as a whole, with a note.
 *
 * Paths in a configuration are not followed.
 */
#include "launcher/protect/protect_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/protect/protections.h"
#include "launcher/view/draft.h"
#include "launcher/view/git_name.h"
#include "launcher/view/view.h"
#include "policy/lists/git_dir.h"
#include "sys/fs/path_resolve.h"

#define GIT_DIRS_MAX  512
#define MODULES_MAX   20000
#define MODULES_DEPTH 48

bool sbx_protect_has_git(const struct sbx_protect *x)
{
	for (const struct sbx_protect_entry *e = x->entries; e->path; e++)
		if (sbx_protect_git_entry(e->path))
			return true;
	return false;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* --- git directories that are protected already --- */

static bool is_known(const struct sbx_protect *x, const char *dir)
{
	for (size_t i = 0; i < x->n_git_dirs; i++)
		if (x->git_dirs[i].grant == x->grant && strcmp(x->git_dirs[i].path, dir) == 0)
			return true;
	return false;
}

static int remember(struct sbx_protect *x, const char *dir)
{
	if (x->n_git_dirs >= GIT_DIRS_MAX)
		return -E2BIG;
	if (!x->git_dirs && !(x->git_dirs = calloc(GIT_DIRS_MAX, sizeof(*x->git_dirs))))
		return -ENOMEM;
	x->git_dirs[x->n_git_dirs].path = strdup(dir);
	if (!x->git_dirs[x->n_git_dirs].path)
		return -ENOMEM;
	x->git_dirs[x->n_git_dirs++].grant = x->grant;
	return 0;
}

void sbx_protect_forget_git(struct sbx_protect *x)
{
	while (x->n_git_dirs > 0)
		free(x->git_dirs[--x->n_git_dirs].path);
	free(x->git_dirs);
	x->git_dirs = NULL;
}

/* Is @path below refs/ or logs/ of a known git directory, where names are those of branches? */
static bool is_among_refs(const struct sbx_protect *x, const char *path)
{
	for (size_t i = 0; i < x->n_git_dirs; i++) {
		const char *dir = x->git_dirs[i].path;
		size_t n = *dir ? strlen(dir) + 1 : 0; /* "" is the grant itself */

		if (x->git_dirs[i].grant != x->grant ||
		    (n > 0 && (strncmp(path, dir, n - 1) != 0 || path[n - 1] != '/')))
			continue;
		if (strncmp(path + n, "refs/", 5) == 0 || strncmp(path + n, "logs/", 5) == 0 ||
		    strcmp(path + n, "logs") == 0)
			return true;
	}
	return false;
}

/* --- files that name a git directory --- */

static int protect_git_dir(struct sbx_protect *x, const char *dir, bool by_marks);

static int protect_unmarked(struct sbx_protect *x, const char *dir)
{
	return protect_git_dir(x, dir, false);
}

/* Protect the git directory with the host path @path, in all writable grants that have it. */
static int protect_outside(struct sbx_protect *x, const char *path)
{
	return sbx_protect_in_grants(x, path, protect_unmarked);
}

/* Follow the host path @path as far as it leads. It is cut there, and *ret_rest is the next part,
 * or NULL. 0; 1: it leads nowhere; -errno. */
static int resolve_some(struct sbx_protect *x, char *path, struct sbx_resolved *ret_found,
			const char **ret_rest)
{
	char *slash;

	*ret_rest = NULL;
	for (size_t i = 0; sbx_protect_opened(x, sbx_path_resolve(path, NULL, ret_found)) != 0;
	     i++) {
		slash = strrchr(path, '/');
		if (x->failure || !slash || slash == path)
			return x->failure ? x->failure : 1;
		if (i >= SBX_PROTECT_PARTS_MAX)
			return -E2BIG;
		*slash = '\0';
		*ret_rest = slash + 1;
	}
	return 0;
}

/* Git cannot follow a path beyond @name in @dir (or beyond @dir, which is no directory). Hold that
 * end, so that the path stays broken. A name that is too long needs no hold. */
static int hold_end(struct sbx_protect *x, const char *dir, const char *name)
{
	SBX_AUTO_FREE char *path = sbx_protect_join(dir, is_dots(name) ? "" : name);
	int r = path ? sbx_protect_hold_outside(x, path) : -ENOMEM;

	return r == -ENAMETOOLONG ? 0 : r;
}

/* Protect the git directory that the file @fd (-1: none) names after @prefix, relative to the host
 * directory @from. *ret_elsewhere: it names another directory than @from. */
static int protect_named(struct sbx_protect *x, int fd, const char *prefix, const char *from,
			 bool *ret_elsewhere)
{
	SBX_AUTO_FREE char *name = NULL, *there = NULL;
	struct sbx_resolved found;
	const char *rest;
	int r = sbx_git_name_read(fd, prefix, &name);

	*ret_elsewhere = false;
	if (r < 0 || !name)
		return r;
	if (name[0] != '/' && asprintf(&there, "%s/%s", from, name) < 0) {
		there = NULL;
		return -ENOMEM;
	}
	r = resolve_some(x, there ? there : name, &found, &rest);
	if (r != 0)
		return r < 0 ? r : 0;
	*ret_elsewhere = !rest && strcmp(found.path, from) != 0;
	r = sbx_protect_hops(x, &found);
	if (r == 0 && (!rest || found.missing))
		r = protect_outside(x, found.path); /* a missing one must not be made either */
	else if (r == 0)
		r = hold_end(x, found.path, rest);
	sbx_resolved_fini(&found);
	return r;
}

/* The same for the file @path below the grant; @from is below the grant, too. */
static int protect_named_below(struct sbx_protect *x, const char *path, const char *prefix,
			       const char *from, bool *ret_elsewhere)
{
	SBX_AUTO_CLOSE int fd = sbx_protect_open(x, path, O_RDONLY);
	SBX_AUTO_FREE char *outside = sbx_protect_join(sbx_protect_grant(x)->source.resolved, from);

	/* another process has a lease on it (fcntl(2)): git would wait and then read it */
	if (fd == -EAGAIN)
		return -EAGAIN;
	return outside ? protect_named(x, fd, prefix, outside, ret_elsewhere) : -ENOMEM;
}

static int protect_named_at(struct sbx_protect *x, int dir, const char *path, const char *name,
			    const char *prefix, const char *from)
{
	SBX_AUTO_FREE char *file = sbx_protect_join(path, name);
	SBX_AUTO_CLOSE int fd =
		file ? openat(dir, file,
			      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) :
		       -1;
	bool elsewhere;

	sbx_protect_opened(x, fd < 0 ? -errno : fd);
	if (file && fd < 0 && errno == EAGAIN)
		return -EAGAIN;
	return file ? protect_named(x, fd, prefix, from, &elsewhere) : -ENOMEM;
}

int sbx_protect_led(struct sbx_protect *x, const struct sbx_mount_op *op, const char *path)
{
	const char *slash = strrchr(path, '/');
	SBX_AUTO_FREE char *dir = strndup(path, slash ? (size_t)(slash - path) : 0);
	SBX_AUTO_FREE char *from = dir ? sbx_protect_join(op->source.resolved, dir) : NULL;
	SBX_AUTO_FREE char *git = from ? sbx_protect_join(from, SBX_GIT) : NULL;
	int r = git ? protect_named_at(x, op->source.fd, path, "", "gitdir: ", from) : -ENOMEM;

	if (r == 0)
		r = protect_named_at(x, op->source.fd, path, "commondir", "", git);
	return r == 0 ? x->failure : r;
}

/* --- one git directory --- */

/* Is the entry a linked worktree's own? The others are in its common directory. */
static bool is_of_worktree(const char *name)
{
	return strcmp(name, "commondir") == 0 || strcmp(name, "config.worktree") == 0;
}

/* Every entry of worktrees/ counts as a git directory, whatever it holds now. */
static int protect_worktrees(struct sbx_protect *x, const char *dir)
{
	SBX_AUTO_FREE char *path = sbx_protect_join(dir, "worktrees");
	SBX_AUTO_CLOSEDIR DIR *list = NULL;
	const struct dirent *e;
	int r = path ? sbx_protect_list(x, path, &list) : -ENOMEM;

	if (r == 0 && !list)
		return sbx_protect_obeyed(x, dir, "worktrees", false); /* a symlink */
	while (r == 0 && list && (e = readdir(list))) {
		SBX_AUTO_FREE char *sub =
			is_dots(e->d_name) ? NULL : sbx_protect_join(path, e->d_name);

		if (is_dots(e->d_name))
			continue;
		if (!sub)
			return -ENOMEM;
		r = sbx_protect_is_dir(x, sub) ? protect_git_dir(x, sub, false) :
						 sbx_protect_below(x, path, e->d_name, false);
	}
	return r;
}

/* Protect all of a git directory but its modules. @by_marks: it is known as one by its entries
 * alone. */
static int protect_one(struct sbx_protect *x, const char *dir, bool by_marks)
{
	SBX_AUTO_FREE char *common = sbx_protect_join(dir, "commondir");
	SBX_AUTO_CLOSE int fd = sbx_protect_open(x, dir, O_PATH | O_DIRECTORY);
	bool linked = false;
	int r = common ? remember(x, dir) : -ENOMEM;

	if (r == 0)
		r = protect_named_below(x, common, "", dir, &linked);
	for (const struct sbx_protect_entry *e = x->entries; e->path && r == 0; e++) {
		const char *entry = sbx_protect_git_entry(e->path);

		if (entry)
			r = e->pattern ? sbx_protect_matches(x, dir, fd, entry) :
					 sbx_protect_obeyed(
						 x, dir, entry,
						 e->absent && (!linked || is_of_worktree(entry)));
	}
	if (r == 0 && by_marks)
		r = sbx_protect_hold_place(x, dir, "objects");
	if (r == 0 && by_marks)
		r = sbx_protect_hold_place(x, dir, "refs");
	return r < 0 ? r : protect_worktrees(x, dir);
}

/* --- modules --- */

struct modules {
	struct sbx_protect *x;
	size_t n_left;
};

static bool is_git_dir(DIR *list, bool strict)
{
	const struct dirent *e;
	unsigned int marks = 0;

	while ((e = readdir(list)))
		if (e->d_type != DT_SOCK)
			marks |= sbx_git_dir_mark(e->d_name, e->d_type != DT_DIR,
						  e->d_type != DT_REG);
	rewinddir(list);
	return sbx_git_dir_known(marks, strict);
}

static int look_at_modules(struct modules *m, const char *path, bool in_git_dir, bool strict,
			   unsigned int depth);

static int look_at_entry(struct modules *m, const char *path, const struct dirent *e,
			 bool in_git_dir, bool strict, unsigned int depth)
{
	SBX_AUTO_FREE char *sub = NULL;
	bool is_dir = e->d_type == DT_DIR;

	if (is_dots(e->d_name) ||
	    (e->d_type != DT_DIR && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN))
		return 0;
	sub = sbx_protect_join(path, e->d_name);
	if (!sub)
		return -ENOMEM;
	if (e->d_type == DT_UNKNOWN)
		is_dir = sbx_protect_is_dir(m->x, sub);
	if (is_dir)
		return look_at_modules(m, sub, false,
				       in_git_dir ? strcmp(e->d_name, "modules") != 0 : strict,
				       depth + 1);
	/* a symlink in place of a module */
	return in_git_dir || strict ? 0 : sbx_protect_below(m->x, path, e->d_name, false);
}

/* @in_git_dir: @path is a git directory that is protected already. 0; -EOVERFLOW: too many or too
 * deep directories; -errno. */
static int look_at_modules(struct modules *m, const char *path, bool in_git_dir, bool strict,
			   unsigned int depth)
{
	SBX_AUTO_CLOSEDIR DIR *list = NULL;
	const struct dirent *e;
	int r;

	if (m->n_left == 0 || depth > MODULES_DEPTH)
		return -EOVERFLOW;
	m->n_left--;
	r = sbx_protect_list(m->x, path, &list);
	if (r < 0 || !list)
		return r == -ENAMETOOLONG || r == -EMFILE ? -EOVERFLOW : r;
	if (!in_git_dir && is_git_dir(list, strict)) {
		in_git_dir = true;
		r = is_known(m->x, path) ? 0 : protect_one(m->x, path, true);
	}
	while (r == 0 && (e = readdir(list)))
		r = look_at_entry(m, path, e, in_git_dir, strict, depth);
	return r;
}

static int protect_modules(struct sbx_protect *x, const char *dir)
{
	struct modules m = { .x = x, .n_left = MODULES_MAX };
	SBX_AUTO_FREE char *path = sbx_protect_join(dir, "modules");
	int r;

	if (!path)
		return -ENOMEM;
	if (!sbx_protect_is_dir(x, path))
		return sbx_protect_obeyed(x, dir, "modules", false); /* a symlink */
	/* Marks in modules/ itself do not end the search below it. */
	r = look_at_modules(&m, path, false, false, 0);
	if (r != -EOVERFLOW)
		return r;
	r = sbx_protect_below(x, dir, "modules", false);
	return r < 0 ? r :
		       sbx_notes_add(x->d->notes,
				     "'%s/%s' is read-only: it has more directories "
				     "than are searched for files that git would execute",
				     sbx_protect_grant(x)->dest, path);
}

static int protect_git_dir(struct sbx_protect *x, const char *dir, bool by_marks)
{
	int r;

	if (!sbx_protect_has_git(x) || is_known(x, dir))
		return 0;
	r = protect_one(x, dir, by_marks);
	return r < 0 ? r : protect_modules(x, dir);
}

/* --- what the list asks for --- */

/* Protect the target of the symlink `.git` at @path. */
static int protect_linked(struct sbx_protect *x, const char *path)
{
	SBX_CLEANUP(sbx_resolved_fini) struct sbx_resolved found = { .fd = -1 };
	int r = sbx_protect_lead(x, path, &found);

	if (r <= 0)
		return r;
	return S_ISDIR(found.st.st_mode) ? protect_outside(x, found.path) :
					   sbx_protect_hold_outside(x, found.path);
}

int sbx_protect_git(struct sbx_protect *x, const struct sbx_protect_base *b, bool *ret_git_file)
{
	SBX_CLEANUP(sbx_trail_fini) struct sbx_trail t = SBX_TRAIL_NONE;
	SBX_AUTO_FREE char *path = sbx_protect_join(b->path, SBX_GIT);
	struct stat st;
	bool elsewhere;
	int what, r;

	if (!path)
		return -ENOMEM;
	r = sbx_trail_begin(x, &t);
	if (r == 0)
		r = sbx_trail_follow(x, path, &t, &st, &what);
	if (r < 0)
		return r;
	*ret_git_file = r > 0 && what == SBX_TRAIL_FOUND && S_ISREG(st.st_mode);
	if (r == 0)
		return protect_git_dir(x, path, false);
	if (what == SBX_TRAIL_OUT_OF_REACH || strcmp(strrchr(t.dest, '/') + 1, SBX_GIT) != 0)
		return 0;
	if (what == SBX_TRAIL_FOUND) {
		r = sbx_trail_hold(x, &t, &st);
		if (r == 0 && S_ISLNK(st.st_mode))
			return protect_linked(x, path);
		return r < 0 || !S_ISREG(st.st_mode) ?
			       r :
			       protect_named_below(x, path, "gitdir: ", b->path, &elsewhere);
	}
	if (!sbx_protect_covers_absent(x, b))
		return 0;
	r = sbx_trail_self_bind(x, &t);
	return r < 0 ? r : sbx_trail_cover_absent(x, t.fd, t.dest, SBX_PLACEHOLDER_SOCKET);
}

/* Is there a `.git` in the base, or in a directory above it on the host? */
static bool is_in_repository(struct sbx_protect *x, const struct sbx_protect_base *b)
{
	SBX_AUTO_FREE char *dir = sbx_protect_join(sbx_protect_grant(x)->source.resolved, b->path);
	struct stat st;

	while (dir && *dir) {
		SBX_AUTO_FREE char *git = sbx_protect_join(dir, SBX_GIT);
		char *slash = strrchr(dir, '/');

		if (!git || (sbx_protect_opened(x, lstat(git, &st) < 0 ? -errno : 0) == 0 &&
			     !sbx_placeholder_is_one(&st)))
			return true;
		if (!slash)
			break;
		*slash = '\0';
	}
	return !dir;
}

/* Cover the absent @name in the base, so that nothing can be made there. */
static int forbid_name(struct sbx_protect *x, const struct sbx_protect_base *b, const char *name)
{
	SBX_CLEANUP(sbx_trail_fini) struct sbx_trail t = SBX_TRAIL_NONE;
	SBX_AUTO_FREE char *path = sbx_protect_join(b->path, name);
	struct stat st;
	int what = SBX_TRAIL_OUT_OF_REACH, r;

	if (!path)
		return -ENOMEM;
	r = sbx_trail_begin(x, &t);
	if (r == 0)
		r = sbx_trail_follow(x, path, &t, &st, &what);
	if (r <= 0 || what != SBX_TRAIL_ABSENT || strcmp(strrchr(t.dest, '/') + 1, name) != 0)
		return r < 0 ? r : 0;
	r = sbx_trail_self_bind(x, &t);
	return r < 0 ? r : sbx_trail_cover_absent(x, t.fd, t.dest, SBX_PLACEHOLDER_SOCKET);
}

/*
 * A directory is a bare repository when it has HEAD, refs and objects, or a commondir that leads to
 * the last two. It is one even beside a `.git` that is no repository. A directory that is one, or
 * may be, is protected as a git directory. In any other directory a placeholder HEAD prevents that
 * it becomes one. Inside a repository a file HEAD would make `git log HEAD` ambiguous, so there the
 * placeholders are refs (or objects) and commondir.
 */
int sbx_protect_head(struct sbx_protect *x, const struct sbx_protect_base *b, bool git_file)
{
	bool refs = sbx_protect_exists(x, b->path, "refs"),
	     objects = sbx_protect_exists(x, b->path, "objects");
	bool alone = sbx_protect_exists(x, b->path, SBX_GIT_HEAD) ||
		     sbx_protect_exists(x, b->path, "commondir");
	int r;

	if (git_file)
		return 0;
	if ((refs && objects) || (alone && !is_among_refs(x, b->path)))
		return protect_git_dir(x, b->path, true);
	if (!sbx_protect_covers_absent(x, b))
		return 0;
	if (!is_in_repository(x, b))
		return forbid_name(x, b, SBX_GIT_HEAD);
	r = forbid_name(x, b, refs ? "objects" : "refs");
	return r < 0 ? r : forbid_name(x, b, "commondir");
}
