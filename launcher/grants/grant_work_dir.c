/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/grants/grant_work_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/grants/grant_asked.h"
#include "launcher/grants/grant_judge.h"
#include "launcher/host/facts.h"
#include "launcher/rootfs/view_root.h"
#include "launcher/user/idmap.h"
#include "launcher/user/view_repository.h"
#include "launcher/view/draft.h"
#include "sys/fs/path.h"

/* A user made up for this run owns no directory: it gets one by an id-map, or not at all. */
static int map_cwd(struct sbx_grants *all, const struct sbx_path *path, int *ret_mount_fd,
		   struct sbx_err *err)
{
	struct sbx_err why = { 0 };
	int r;

	if (!sbx_facts_idmap(all->d->facts))
		return 0;
	r = sbx_idmap_grant(all->d, path, true, ret_mount_fd, &why);
	/* To name a user would not help where root is the owner. */
	if (r > 0 && (path->st.st_uid == 0 || path->st.st_gid == 0))
		*err = why;
	else if (r > 0)
		sbx_err_set(err,
			    "'%s' is not granted to a user made up for this run (%s): name one "
			    "with --user",
			    path->resolved, why.msg);
	return r;
}

/* May @g be granted at its own path, as the directory to work in? 0; > 0 with @err; -errno. */
static int judge_work_dir(struct sbx_grants *all, const struct sbx_grant *g,
			  struct sbx_path *ret_path, int *ret_mount_fd, struct sbx_err *err)
{
	int r = sbx_grant_judge(all, g, ret_path, err);

	if (r == 0 && (ret_path->st.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH)) {
		sbx_err_set(err, "'%s' is everybody's: work in a directory below it", g->source);
		r = SBX_PATH_E_FORBIDDEN;
	}
	if (r == 0)
		r = sbx_view_root_make_room(all->d, g->target, S_IFDIR, err);
	if (r == 0)
		r = map_cwd(all, ret_path, ret_mount_fd, err);
	if (r != 0) {
		sbx_path_fini(ret_path);
		ret_path->fd = -1;
	}
	return r;
}

/* The whole repository around the current directory, so that git works there. *ret_top NULL: there
 * is none, or it is not granted. 0 or -errno. */
static int try_repository(struct sbx_grants *all, struct sbx_path *ret_path, int *ret_mount_fd,
			  char **ret_top)
{
	SBX_AUTO_FREE char *top = NULL;
	struct sbx_grant g = { .writable = true, .origin = SBX_ORIGIN_CWD };
	struct sbx_err err = { 0 };
	int r = sbx_view_repository(all->d->facts->cwd, &top);

	if (r < 0 || !top)
		return r;
	g.source = g.target = top;
	r = judge_work_dir(all, &g, ret_path, ret_mount_fd, &err);
	if (r < 0)
		return r;
	if (r > 0)
		return sbx_notes_add(
			all->d->notes,
			"git finds no repository here: '%s', which the current directory is in, is "
			"not granted: %s",
			top, err.msg);
	r = sbx_notes_add(
		all->d->notes,
		"'%s' is granted, the git repository that the current directory is in (--bind "
		"\"$PWD\" grants that directory alone)",
		top);
	*ret_top = sbx_steal_ptr(&top);
	return r;
}

/* A linked worktree (git worktree add) needs the git directory that it was made from. That would be
 * a second writable grant that nobody asked for, so one line says how to grant it. */
static int note_worktree(const struct sbx_grants *all, const char *dir)
{
	SBX_AUTO_FREE char *git_dir = NULL;
	int r = sbx_view_worktree_of(dir, &git_dir);

	if (r < 0 || !git_dir || sbx_grants_have(all, git_dir) || sbx_path_in_prefix(dir, git_dir))
		return r;
	/* The flag will be copied to a shell, as it is. */
	if (strpbrk(git_dir, "':\\") || strlen(git_dir) > NAME_MAX)
		return 0;
	return sbx_notes_add(all->d->notes,
			     "git finds no repository here: '%s' is a worktree of '%s', which is "
			     "not granted (--bind '%s' grants it)",
			     dir, git_dir, git_dir);
}

/* Does the sandbox's user own nothing there and may not write? One note then, instead of an error
 * from each tool. */
static bool is_others(const struct sbx_draft *d, const struct sbx_path *path)
{
	const struct sbx_facts *f = d->facts;

	return f->privileged && path->st.st_uid != f->uid && !sbx_facts_idmap(f) &&
	       !sbx_draft_wants_overlay(d) &&
	       faccessat(path->fd, "", W_OK, AT_EACCESS | AT_EMPTY_PATH) < 0 && errno == EACCES;
}

int sbx_grant_work_dir(struct sbx_grants *all, struct sbx_path *ret_path, int *ret_mount_fd,
		       char *why, size_t n_why, char **ret_dir)
{
	const struct sbx_facts *f = all->d->facts;
	struct sbx_grant g = {
		.source = f->cwd, .target = f->cwd, .writable = true, .origin = SBX_ORIGIN_CWD
	};
	struct sbx_err err = { 0 };
	int r;

	if (!f->cwd) {
		snprintf(why, n_why, "the current directory has no name (was it removed?)");
		return 0;
	}
	r = try_repository(all, ret_path, ret_mount_fd, ret_dir);
	if (r == 0 && *ret_dir)
		r = note_worktree(all, *ret_dir);
	if (r != 0 || *ret_dir)
		return r;
	r = judge_work_dir(all, &g, ret_path, ret_mount_fd, &err);
	if (r < 0)
		return r;
	if (r == SBX_PATH_E_SET_ID)
		return sbx_grant_refuse(all, &g, &err);
	if (r == 0 && is_others(all->d, ret_path))
		r = sbx_notes_add(all->d->notes,
				  "'%s' belongs to uid %u, and '%s', the sandbox's user, may not "
				  "write there: give it to that user once (chown -R %s: '%s')",
				  ret_path->resolved, ret_path->st.st_uid, f->user_name,
				  f->user_name, ret_path->resolved);
	if (r < 0)
		return r;
	sbx_text_cut(why, n_why, "%s", err.msg);
	if (r != 0)
		return 0;
	*ret_dir = strdup(f->cwd);
	return *ret_dir ? note_worktree(all, *ret_dir) : -ENOMEM;
}
