/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Git directories: the one of a `.git`, wherever that leads, those of submodules and worktrees in it, and directories
 * that are one themselves. What their configuration says is not followed.
 */
#include "launcher/view_protect_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/plan_internal.h"
#include "launcher/view.h"
#include "sys/path_resolve.h"

#define GIT_DIRS_MAX 256 /* submodules and worktrees of one repository */
#define GIT_DEPTH    4	 /* modules of modules; names of modules with slashes */
#define GIT_FILE_MAX 4096

bool sbx_protect_has_git(const struct sbx_protect *x)
{
	const char *e;

	for (size_t i = 0; (e = sbx_protect_entry(x, i)); i++)
		if (sbx_protect_git_entry(e))
			return true;
	return false;
}

static int protect_git_dir(struct sbx_protect *x, const char *dir, bool worktree, unsigned int depth);

/* Modules have names with slashes: a directory without a HEAD may lead to one. */
static int protect_sub_dirs(struct sbx_protect *x, const char *dir, const char *kind, bool worktree,
			    unsigned int depth)
{
	SBX_AUTO_FREE char *path = sbx_protect_join(dir, kind);
	SBX_AUTO_CLOSEDIR DIR *list = NULL;
	const struct dirent *e;
	int r = 0, fd;

	if (!path)
		return -ENOMEM;
	fd = depth < GIT_DEPTH ? sbx_protect_open(x, path, O_RDONLY | O_DIRECTORY) : -ENOENT;
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
	list = fdopendir(fd);
	if (!list) {
		sbx_fd_close(fd);
		return -ENOMEM;
	}
	while (r == 0 && (e = readdir(list))) {
		SBX_AUTO_FREE char *sub = e->d_name[0] == '.' && (!e->d_name[1] || strcmp(e->d_name, "..") == 0) ?
						  NULL : sbx_protect_join(path, e->d_name);

		if (!sub || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
			continue;
		if (++x->n_git_dirs > GIT_DIRS_MAX)
			return -E2BIG;
		r = sbx_protect_exists(x, sub, SBX_GIT_HEAD) ? protect_git_dir(x, sub, worktree, depth + 1) :
					   protect_sub_dirs(x, sub, "", worktree, depth + 1);
	}
	return r;
}

/* The git directory @path, outside, in whichever writable grants have it. */
static int protect_outside(struct sbx_protect *x, const char *path, unsigned int depth)
{
	const size_t was = x->grant;
	int r = 0;

	for (size_t i = 0; i < x->p->n_mounts && r == 0; i++) {
		const struct sbx_mount_op *op = &x->p->mounts[i];
		size_t n;

		if (!sbx_view_is_writable_dir(op) || !sbx_path_in_prefix(path, op->source.resolved))
			continue;
		n = strlen(op->source.resolved);
		x->grant = i;
		r = protect_git_dir(x, path + n + (path[n] == '/'), false, depth);
	}
	x->grant = was;
	return r;
}

/* @path is a file below the grant that names a git directory, behind @prefix, from the directory that @from is. */
static int protect_named(struct sbx_protect *x, const char *path, const char *prefix, const char *from,
			 unsigned int depth)
{
	SBX_AUTO_CLOSE int fd = sbx_protect_open(x, path, O_RDONLY);
	SBX_AUTO_FREE char *there = NULL;
	char text[GIT_FILE_MAX + 1];
	struct sbx_resolved found;
	size_t n_prefix = strlen(prefix);
	ssize_t n;
	int r;

	if (fd < 0 || depth >= GIT_DEPTH)
		return 0;
	n = pread(fd, text, sizeof(text) - 1, 0);
	if (n <= (ssize_t)n_prefix || strncmp(text, prefix, n_prefix) != 0)
		return 0; /* git does not take it either */
	n = (ssize_t)strnlen(text, (size_t)n); /* where git stops, too */
	while (n > (ssize_t)n_prefix && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	text[n] = '\0';
	if (text[n_prefix] == '/')
		there = strdup(text + n_prefix);
	else if (asprintf(&there, "%s/%s/%s", sbx_protect_grant(x)->source.resolved, from, text + n_prefix) < 0)
		there = NULL;
	if (!there)
		return -ENOMEM;
	if (sbx_path_resolve(there, NULL, &found) != 0)
		return 0;
	r = protect_outside(x, found.path, depth + 1); /* missing, it must not be made either */
	sbx_resolved_fini(&found);
	return r;
}

/* Only these are a linked worktree's own. */
static bool is_of_worktree(const char *name)
{
	return strcmp(name, "commondir") == 0 || strcmp(name, "config.worktree") == 0;
}

static int protect_git_dir(struct sbx_protect *x, const char *dir, bool worktree, unsigned int depth)
{
	SBX_AUTO_FREE char *common = sbx_protect_join(dir, "commondir");
	const char *e;
	int r = 0;

	if (!common)
		return -ENOMEM;
	for (size_t i = 0; (e = sbx_protect_entry(x, i)) && r == 0; i++)
		if (sbx_protect_git_entry(e) && (!worktree || is_of_worktree(sbx_protect_git_entry(e))))
			r = sbx_protect_below(x, dir, sbx_protect_git_entry(e), true);
	if (r == 0)
		r = protect_named(x, common, "", dir, depth);
	if (r == 0)
		r = protect_sub_dirs(x, dir, "modules", false, depth);
	return r < 0 ? r : protect_sub_dirs(x, dir, "worktrees", true, depth);
}

/* `.git` of a directory; *ret_repository: there is one. */
int sbx_protect_git(struct sbx_protect *x, const struct sbx_protect_base *b, bool *ret_git_file)
{
	SBX_CLEANUP(sbx_trail_fini) struct sbx_trail t = SBX_TRAIL_NONE;
	SBX_AUTO_FREE char *path = sbx_protect_join(b->path, SBX_GIT);
	struct stat st;
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
		return protect_git_dir(x, path, false, 0);
	if (what == SBX_TRAIL_OUT_OF_REACH || strcmp(strrchr(t.dest, '/') + 1, SBX_GIT) != 0)
		return 0;
	if (what == SBX_TRAIL_FOUND) {
		r = sbx_trail_hold(x, &t, &st);
		return r < 0 || !S_ISREG(st.st_mode) ? r : protect_named(x, path, "gitdir: ", b->path, 0);
	}
	if (!b->top)
		return 0;
	r = sbx_trail_pin(x, &t);
	return r < 0 ? r : sbx_trail_cover_absent(x, t.fd, t.dest, SBX_PLACEHOLDER_SOCKET);
}

/* Nothing of that name comes to be in the base. */
static int keep_absent(struct sbx_protect *x, const struct sbx_protect_base *b, const char *name)
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
	r = sbx_trail_pin(x, &t);
	return r < 0 ? r : sbx_trail_cover_absent(x, t.fd, t.dest, SBX_PLACEHOLDER_SOCKET);
}

/*
 * A directory is a repository by itself, also beside a `.git` that is none, when it has HEAD, refs and objects, or a
 * commondir that leads to the last two. One that is, or may be, gets what the list says of git directories. Any other
 * is kept from it: by refs (or objects) and commondir, because a file called HEAD would make `git log HEAD` ambiguous.
 */
int sbx_protect_head(struct sbx_protect *x, const struct sbx_protect_base *b, bool git_file)
{
	bool refs = sbx_protect_exists(x, b->path, "refs");
	int r;

	if (git_file)
		return 0;
	if (sbx_protect_exists(x, b->path, SBX_GIT_HEAD) || sbx_protect_exists(x, b->path, "commondir") ||
	    (refs && sbx_protect_exists(x, b->path, "objects")))
		return protect_git_dir(x, b->path, false, 0);
	if (!b->top)
		return 0;
	r = keep_absent(x, b, refs ? "objects" : "refs");
	return r < 0 ? r : keep_absent(x, b, "commondir");
}
