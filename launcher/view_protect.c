/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Protection of what the host's tools execute later.
 *
 * What is there is mounted over itself read-only; what is not is covered by a placeholder that a mask is mounted on
 * (placeholders.h), so that nobody can make it. A directory on the way is mounted over itself, writable: a mount
 * point cannot be renamed, so none can be moved away with what it protects and made anew without. A symlink on the
 * way or at the end cannot be held in place like that; a mask covers it, and what the one at the end leads to is
 * read-only (view_protect_links.c).
 *
 * Where: at the top of a writable grant, at the current directory and at other writable grants below it (one
 * directory by two ways) all of it; where the walk finds one of the names deeper down, what is there. Not in
 * node_modules: packages bring editors' settings along, and package managers rename them.
 *
 * A git directory is more than its name: `.git` may be a file that names it, submodules and worktrees have theirs
 * below modules/ and worktrees/, and any directory with a HEAD may be one (a bare repository). All that are found
 * get what the list says of `.git/`. Nothing here is followed that their configuration says.
 */
#include "launcher/view_protect_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/plan_internal.h"
#include "launcher/view.h"

/* --- the list --- */

/* Entry @i of the lists, first the system policy's; NULL: there are no more. */
const char *sbx_protect_entry(const struct sbx_protect *x, size_t i)
{
	const struct sbx_str_list *system = &x->p->system->protected_paths;
	const struct sbx_str_list *profile = &x->p->profile->filesystem.protected_paths;

	if (i < system->n)
		return system->v[i];
	return i - system->n < profile->n ? profile->v[i - system->n] : NULL;
}

/* What comes behind `.git/`; NULL: it is no entry of a git directory. */
const char *sbx_protect_git_entry(const char *e)
{
	return strncmp(e, SBX_GIT "/", sizeof(SBX_GIT)) == 0 ? e + sizeof(SBX_GIT) : NULL;
}

const struct sbx_mount_op *sbx_protect_grant(const struct sbx_protect *x)
{
	return &x->p->mounts[x->grant];
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

/* @path, outside, if it is below the grant. */
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
		r = add_base_of(x, x->p->facts->cwd);
	for (size_t i = 0; i < x->p->n_mounts && r == 0; i++)
		if (sbx_view_is_writable_dir(&x->p->mounts[i]) && i != grant)
			r = add_base_of(x, x->p->mounts[i].source.resolved);
	return r;
}

int sbx_protect_found(struct sbx_protect *x, const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	int r = 0;

	if (slash && strncmp(path, "node_modules/", 13) != 0 && !strstr(path, "/node_modules/"))
		r = add_base(x, path, (size_t)(slash - path), false);
	return r < 0 ? r : strcmp(name, SBX_GIT) == 0; /* names in a repository mean nothing */
}

int sbx_protect_way(struct sbx_protect *x, const char *path)
{
	SBX_CLEANUP(sbx_trail_fini) struct sbx_trail t = SBX_TRAIL_NONE;
	struct stat st;
	int what, r = sbx_trail_follow_parent(x, path, &t, &st, &what);

	return r < 0 ? r : r > 0 ? -ESTALE : sbx_trail_pin(x, &t);
}

/* A mount inside the grant shows what it is for only as long as the way to it stays: what is above it keeps its place. */
static int hold_inner_mounts(struct sbx_protect *x)
{
	const struct sbx_mount_op *grant = sbx_protect_grant(x);
	size_t n = grant->dest[1] ? strlen(grant->dest) : 0;
	int r = 0;

	for (size_t i = x->grant + 1; i < x->p->n_mounts && r == 0; i++) {
		const struct sbx_mount_op *op = &x->p->mounts[i];
		SBX_AUTO_FREE char *parent = NULL;

		if (op->kind == SBX_MOUNT_PIN || op->kind == SBX_MOUNT_MASK || !sbx_path_in_prefix(op->dest, grant->dest) ||
		    !op->dest[n])
			continue;
		parent = strndup(op->dest, (size_t)(strrchr(op->dest, '/') - op->dest));
		if (!parent)
			return -ENOMEM;
		if (sbx_view_covering(x->p, *parent ? parent : "/") == grant)
			r = sbx_protect_way(x, op->dest + n + 1);
	}
	return r;
}

static int protect_base(struct sbx_protect *x, const struct sbx_protect_base *b)
{
	bool git_file = false;
	const char *e;
	int r = sbx_protect_has_git(x) ? sbx_protect_git(x, b, &git_file) : 0;

	for (size_t i = 0; (e = sbx_protect_entry(x, i)) && r == 0; i++)
		if (strcmp(e, SBX_GIT_HEAD) == 0)
			r = sbx_protect_head(x, b, git_file);
		else if (!sbx_protect_git_entry(e))
			r = sbx_protect_obeyed(x, b->path, e, b->top);
	return r;
}

/* By inode: the grant may be reached by another path than the file was. */
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

	for (size_t i = 0; i < x->p->sources.n && r == 0; i++)
		r = hold_source(x, &x->p->sources.v[i]);
	return r;
}

int sbx_protect_end(struct sbx_protect *x, int r, struct sbx_err_list *errs)
{
	if (r == 0)
		r = hold_inner_mounts(x);
	for (size_t i = 0; i < x->n_bases && r == 0; i++)
		r = protect_base(x, &x->bases[i]);
	if (r != -E2BIG)
		return r;
	sbx_err_list_add(errs, "", 0, 0, "'%s' holds more repositories and other things to protect than can be: grant "
					 "less of it, or read-only", sbx_protect_grant(x)->dest);
	return -ECANCELED;
}

static bool is_listed(const struct sbx_protect *x, const char *entry)
{
	const char *e;

	for (size_t i = 0; (e = sbx_protect_entry(x, i)); i++)
		if (strcmp(e, entry) == 0)
			return true;
	return false;
}

size_t sbx_protect_names(const struct sbx_protect *x, const char **names, size_t n_max)
{
	/* Only whole entries, and the directory of git's: others begin with a directory that may be anywhere. A repository by
	 * itself is found by more than its HEAD, which a command could have moved away. */
	static const char *const marks[] = { "commondir", "refs" };
	const char *e;
	size_t n = 0;

	for (size_t i = 0; (e = sbx_protect_entry(x, i)) && n < n_max; i++)
		if (sbx_protect_git_entry(e))
			names[n++] = SBX_GIT;
		else if (!strchr(e, '/'))
			names[n++] = e;
	for (size_t i = 0; i < SBX_N_ELEMENTS(marks) && is_listed(x, SBX_GIT_HEAD) && n < n_max; i++)
		names[n++] = marks[i];
	return n;
}

struct sbx_protect *sbx_protect_new(struct sbx_plan *p)
{
	struct sbx_protect *x = calloc(1, sizeof(*x));

	if (x)
		x->p = p;
	return x;
}

struct sbx_protect *sbx_protect_free(struct sbx_protect *x)
{
	if (x) {
		forget_bases(x);
		sbx_protect_forget_git(x);
	}
	free(x);
	return NULL;
}
