/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Protects files that the host's tools execute later.
 *
 * A file that exists is bound to itself read-only. An absent file can be made by the command, and
 * new_protected.h says what happens to it. With new_protected: refuse, and in a git directory, an
 * absent file gets a placeholder with a mask on it (placeholders.h), so that nobody can make it. A
 * directory above either is bound to itself, writable: a mount point cannot be renamed, so no
 * directory can be moved away with its protected files and made anew without them. A symlink on the
 * way or at the end cannot be held in place like that; a mask covers it, and the target of a
 * symlink at the end is made read-only (protect_links.c).
 *
 * An absent file is covered only where the list says so. A pattern stands for files that exist
 * (protected_path.h).
 *
 * Places: all entries of the list are protected at the top of a writable grant, at the current
 * directory, and at other writable grants below it (one directory by two ways). Deeper, where the
 * scan finds one of the names, only existing files are. Nothing in node_modules is: packages bring
 * editors' settings along, and package managers rename them.
 *
 * Git directories: `.git` may be a file that names one, submodules and worktrees have theirs below
 * modules/ and worktrees/, and any directory with a HEAD may be one (a bare repository). All that
 * are found are protected by the entries that begin with `.git/`. Paths in their configuration are
 * not followed.
 */
#include "launcher/protect/protect_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/protect/plan_sources.h"
#include "launcher/protect/protections.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"
#include "policy/lists/protected_path.h"
#include "sys/fs/path_normalise.h"

/* --- the list --- */

/* An entry of the host's owner or of the profile is covered where it is absent, whatever the
 * shipped table says. */
static int read_list(struct sbx_protect *x)
{
	const struct sbx_system_policy *s = x->d->system;
	const struct sbx_str_list *lists[] = { &s->protected_paths,
					       &x->d->profile->filesystem.protected_paths };
	size_t n = 0;

	x->entries = calloc(lists[0]->n + lists[1]->n + 1, sizeof(*x->entries));
	if (!x->entries)
		return -ENOMEM;
	for (size_t l = 0; l < SBX_N_ELEMENTS(lists); l++)
		for (size_t i = 0; i < lists[l]->n; i++) {
			struct sbx_protect_entry *e = &x->entries[n++];
			bool shipped = l == 0 && i >= s->n_own_protected_paths;

			e->path = lists[l]->v[i];
			e->pattern = sbx_protected_path_is_pattern(e->path);
			e->absent =
				shipped ? sbx_protected_path_covers_absent(e->path) : !e->pattern;
			x->has_names = x->has_names || (e->pattern && !strchr(e->path, '/'));
		}
	return 0;
}

bool sbx_protect_is_listed(const struct sbx_protect *x, const char *path)
{
	for (const struct sbx_protect_entry *e = x->entries; e->path; e++)
		if (strcmp(e->path, path) == 0)
			return true;
	return false;
}

/* The part of the entry after `.git/`; NULL: it is no entry of a git directory. */
const char *sbx_protect_git_entry(const char *e)
{
	return strncmp(e, SBX_GIT "/", sizeof(SBX_GIT)) == 0 ? e + sizeof(SBX_GIT) : NULL;
}

const struct sbx_mount_op *sbx_protect_grant(const struct sbx_protect *x)
{
	return &x->d->view->mounts[x->grant];
}

/* --- bases --- */

static int add_base(struct sbx_protect *x, const char *path, size_t n, bool top)
{
	for (size_t i = 0; i < x->n_bases; i++)
		if (strlen(x->bases[i].path) == n && memcmp(x->bases[i].path, path, n) == 0) {
			x->bases[i].top = x->bases[i].top || top;
			return 0;
		}
	if (x->n_bases >= SBX_PROTECT_BASES_MAX)
		return -E2BIG;
	x->bases[x->n_bases].path = strndup(path, n);
	if (!x->bases[x->n_bases].path)
		return -ENOMEM;
	x->bases[x->n_bases++].top = top;
	return 0;
}

/* Add the host path @path as a base, if it is below the grant. */
static int add_base_of(struct sbx_protect *x, const char *path)
{
	const char *top = sbx_protect_grant(x)->source.resolved;
	size_t n = strlen(top);

	if (!path || !sbx_path_in_prefix(path, top) || !path[n])
		return 0;
	path += n + (path[n] == '/');
	return add_base(x, path, strlen(path), true);
}

static void forget_bases(struct sbx_protect *x)
{
	while (x->n_bases > 0)
		free(x->bases[--x->n_bases].path);
}

int sbx_protect_begin(struct sbx_protect *x, size_t grant)
{
	int r;

	forget_bases(x);
	x->grant = grant;
	r = add_base(x, "", 0, true);
	if (r == 0)
		r = add_base_of(x, x->d->facts->cwd);
	for (size_t i = 0; i < x->d->view->n_mounts && r == 0; i++)
		if (sbx_view_is_writable_dir(&x->d->view->mounts[i]) && i != grant)
			r = add_base_of(x, x->d->view->mounts[i].source.resolved);
	return r;
}

int sbx_protect_found(struct sbx_protect *x, const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	int r = 0;

	if (slash && strncmp(path, "node_modules/", 13) != 0 && !strstr(path, "/node_modules/"))
		r = add_base(x, path, (size_t)(slash - path), false);
	/* names inside a git directory are not entries */
	return r < 0 ? r : strcmp(name, SBX_GIT) == 0;
}

int sbx_protect_way(struct sbx_protect *x, const char *path)
{
	SBX_CLEANUP(sbx_trail_fini) struct sbx_trail t = SBX_TRAIL_NONE;
	struct stat st;
	int what, r = sbx_trail_follow_parent(x, path, &t, &st, &what);

	return r < 0 ? r : r > 0 ? -ESTALE : sbx_trail_self_bind(x, &t);
}

/* A mount inside the grant must stay at its path, so the directories above it get self-binds. */
static int hold_inner_mounts(struct sbx_protect *x)
{
	const struct sbx_mount_op *grant = sbx_protect_grant(x);
	size_t n = grant->dest[1] ? strlen(grant->dest) : 0;
	int r = 0;

	for (size_t i = x->grant + 1; i < x->d->view->n_mounts && r == 0; i++) {
		const struct sbx_mount_op *op = &x->d->view->mounts[i];
		SBX_AUTO_FREE char *parent = NULL;

		if (op->kind == SBX_MOUNT_SELF_BIND || op->kind == SBX_MOUNT_MASK ||
		    !sbx_path_in_prefix(op->dest, grant->dest) || !op->dest[n])
			continue;
		parent = strndup(op->dest, (size_t)(strrchr(op->dest, '/') - op->dest));
		if (!parent)
			return -ENOMEM;
		if (sbx_view_covering(x->d->view, *parent ? parent : "/") == grant)
			r = sbx_protect_way(x, op->dest + n + 1);
	}
	return r;
}

/* --- patterns --- */

static bool is_match(const struct sbx_protect *x, const char *pattern, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	if (pattern)
		return sbx_protected_path_matches(pattern, name);
	for (const struct sbx_protect_entry *e = x->entries; e->path; e++)
		if (e->pattern && !strchr(e->path, '/') &&
		    sbx_protected_path_matches(e->path, name))
			return true;
	return false;
}

/* Open the directory @way ("" is the place itself) in the place @fd. *ret_list NULL: it is no
 * directory, or it cannot be listed and a note says so. If the effective user owns it, that is an
 * error: the command could change its mode. */
static int list_place(struct sbx_protect *x, int fd, const char *dir, const char *way,
		      DIR **ret_list)
{
	const char *name = *way ? way : ".";
	SBX_AUTO_CLOSE int at = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	*ret_list = NULL;
	if (at < 0 && errno == EACCES && fstatat(fd, name, &st, 0) == 0 && st.st_uid != geteuid())
		return sbx_notes_add(
			x->d->notes,
			"'%s/%s%s%s' cannot be listed: files there that protected_paths has "
			"patterns for are not held",
			sbx_protect_grant(x)->dest, dir, *dir && *way ? "/" : "", way);
	if (at < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	*ret_list = fdopendir(at);
	if (!*ret_list)
		return -ENOMEM;
	sbx_fd_steal(&at);
	return 0;
}

/* Symlinks on the way are followed here; sbx_protect_below() then covers the first of them. */
int sbx_protect_matches(struct sbx_protect *x, const char *dir, int fd, const char *pattern)
{
	const char *slash = pattern ? strrchr(pattern, '/') : NULL;
	SBX_AUTO_FREE char *way =
		strndup(slash ? pattern : "", slash ? (size_t)(slash - pattern) : 0);
	SBX_AUTO_CLOSEDIR DIR *list = NULL;
	const struct dirent *e;
	int r = !way ? -ENOMEM : fd < 0 ? 0 : list_place(x, fd, dir, way, &list);

	while (r == 0 && list && (e = readdir(list))) {
		SBX_AUTO_FREE char *rest = NULL;

		if (!is_match(x, pattern, e->d_name))
			continue;
		rest = sbx_protect_join(way, e->d_name);
		r = rest ? sbx_protect_obeyed(x, dir, rest, false) : -ENOMEM;
	}
	return r;
}

/* Most names are absent. One call tells that; sbx_protect_obeyed() takes 5 us among 1,000
 * mounts. */
static bool is_absent(int fd, const char *path)
{
	struct stat st;

	return fd >= 0 && fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	       (errno == ENOENT || errno == ENOTDIR);
}

bool sbx_protect_covers_absent(const struct sbx_protect *x, const struct sbx_protect_base *b)
{
	return b->top && x->d->protections->new_protected == SBX_NEW_PROTECTED_REFUSE;
}

static int protect_name(struct sbx_protect *x, const struct sbx_protect_base *b, int fd,
			const struct sbx_protect_entry *e)
{
	if (sbx_protect_covers_absent(x, b) && e->absent)
		return sbx_protect_obeyed(x, b->path, e->path, true);
	return is_absent(fd, e->path) ? 0 : sbx_protect_obeyed(x, b->path, e->path, false);
}

static int protect_base(struct sbx_protect *x, const struct sbx_protect_base *b)
{
	SBX_AUTO_CLOSE int fd = sbx_protect_open(x, b->path, O_PATH | O_DIRECTORY);
	bool git_file = false;
	int r = sbx_protect_has_git(x) ? sbx_protect_git(x, b, &git_file) : 0;

	if (r == 0 && x->has_names)
		r = sbx_protect_matches(x, b->path, fd, NULL);
	for (const struct sbx_protect_entry *e = x->entries; e->path && r == 0; e++)
		if (strcmp(e->path, SBX_GIT_HEAD) == 0)
			r = sbx_protect_head(x, b, git_file);
		else if (sbx_protect_git_entry(e->path))
			continue;
		else if (!e->pattern)
			r = protect_name(x, b, fd, e);
		else if (strchr(e->path, '/'))
			r = sbx_protect_matches(x, b->path, fd, e->path);
	return r;
}

/* The top of the grant is found by its inode: the file's path may reach it by another way. */
static int hold_source(struct sbx_protect *x, const struct sbx_plan_source *s)
{
	const struct stat *top = &sbx_protect_grant(x)->source.st;
	SBX_AUTO_FREE char *path = strdup(s->path);
	struct stat st;
	int r = 0;

	if (!path)
		return -ENOMEM;
	for (char *end = path; r == 0 && (end = strchr(end + 1, '/'));) {
		*end = '\0';
		if (lstat(path, &st) == 0 && st.st_dev == top->st_dev && st.st_ino == top->st_ino)
			r = sbx_protect_below(x, "", end + 1, false);
		*end = '/';
	}
	return r;
}

int sbx_protect_sources(struct sbx_protect *x)
{
	int r = 0;

	for (size_t i = 0; i < x->d->sources->n && r == 0; i++)
		r = hold_source(x, &x->d->sources->v[i]);
	return r;
}

int sbx_protect_end(struct sbx_protect *x, int r, struct sbx_err_list *errs)
{
	if (r == 0)
		r = hold_inner_mounts(x);
	for (size_t i = 0; i < x->n_bases && r == 0; i++)
		r = protect_base(x, &x->bases[i]);
	if (r == 0)
		r = x->failure;
	if (r != -E2BIG)
		return r;
	sbx_err_list_add(
		errs, "", 0, 0,
		"'%s' holds more repositories and other things to protect than can be: grant "
		"less of it, or read-only",
		sbx_protect_grant(x)->dest);
	return -ECANCELED;
}

size_t sbx_protect_names(const struct sbx_protect *x, const char **names, size_t n_max)
{
	/* Entries of one part, and `.git`. Other entries begin with a common name of a directory
	 * and are protected at bases only. A bare repository is found by more names than HEAD,
	 * which a command could have moved away. Cargo reads `.cargo` in any directory that it is
	 * started in. */
	static const struct {
		const char *entry, *name;
	} marks[] = { { SBX_GIT_HEAD, "commondir" },
		      { SBX_GIT_HEAD, "refs" },
		      { ".cargo/config.toml", ".cargo" } };
	size_t n = 0;

	for (const struct sbx_protect_entry *e = x->entries; e->path && n < n_max; e++)
		if (sbx_protect_git_entry(e->path))
			names[n++] = SBX_GIT;
		else if (!e->pattern && !strchr(e->path, '/'))
			names[n++] = e->path;
	for (size_t i = 0; i < SBX_N_ELEMENTS(marks) && n < n_max; i++)
		if (sbx_protect_is_listed(x, marks[i].entry))
			names[n++] = marks[i].name;
	return n;
}

struct sbx_protect *sbx_protect_new(const struct sbx_draft *d)
{
	struct sbx_protect *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->d = d;
	return read_list(x) < 0 ? sbx_protect_free(x) : x;
}

struct sbx_protect *sbx_protect_free(struct sbx_protect *x)
{
	if (x) {
		forget_bases(x);
		sbx_protect_forget_git(x);
		free(x->entries);
	}
	free(x);
	return NULL;
}
