/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The grants of a sandbox: the profile's mounts, those of the flags, and the current directory.
 *
 *   grant_asked     collects the grants that the profile and the flags ask for
 *   grant_work_dir  adds the current directory
 *   grant_judge     judges each grant
 *   grant_mount     appends its mount to the plan
 *
 * A refused explicit mount ends the run. A refused current directory ends it too, because results
 * would be lost in the scratch home, unless --scratch, --chdir or a home that stays say where the
 * command works.
 */
#include "launcher/grants/view_grants.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "launcher/grants/grant.h"
#include "launcher/grants/grant_asked.h"
#include "launcher/grants/grant_judge.h"
#include "launcher/grants/grant_mount.h"
#include "launcher/grants/grant_work_dir.h"
#include "launcher/grants/keep_target.h"
#include "launcher/host/exit_status.h"
#include "launcher/host/facts.h"
#include "launcher/view/draft.h"
#include "sys/fs/path_normalise.h"

/* Judges the place of --keep as a writable grant, for the user that the sandbox runs as. */
static int judge_keep(struct sbx_grants *all, const char *why)
{
	const char *asked = all->d->options->keep;
	struct sbx_path path = { .fd = -1 };
	struct sbx_err err = { 0 };
	SBX_AUTO_FREE char *absolute = NULL;
	bool overlay = false;
	int r = SBX_EXIT_REFUSED;

	for (size_t i = 0; i < all->d->view->n_mounts; i++)
		overlay = overlay || all->d->view->mounts[i].kind == SBX_MOUNT_OVERLAY;
	if (asprintf(&absolute, "%s%s%s",
		     asked[0] == '/'	  ? ""
		     : all->d->facts->cwd ? all->d->facts->cwd
					  : "",
		     asked[0] == '/' ? "" : "/", asked) < 0) {
		absolute = NULL;
		return -ENOMEM;
	}
	if (!overlay) {
		sbx_err_set(&err, "there is nothing to keep: %s",
			    why[0] ? why : "the current directory is not granted writable");
	} else {
		r = sbx_grant_judge_source(all, absolute, true, &path, &err);
		if (r == 0 || r == SBX_PATH_E_MISSING) {
			err = (struct sbx_err){ 0 };
			r = sbx_keep_target_open(all->d, &path, &err);
		}
	}
	sbx_path_fini(&path);
	if (r > 0)
		sbx_err_list_add(all->errs, "", 0, 0, "--keep: %s", err.msg);
	return r > 0 ? SBX_EXIT_REFUSED : r;
}

int sbx_view_add_grants(const struct sbx_draft *d, struct sbx_err_list *errs, char *why,
			size_t n_why)
{
	SBX_CLEANUP(sbx_grants_freep) struct sbx_grants *all = NULL;
	struct sbx_path cwd = { .fd = -1 };
	SBX_AUTO_CLOSE int cwd_mount_fd = -1;
	SBX_AUTO_FREE char *dir = NULL;
	int r = sbx_grants_new(d, errs, &all);

	if (r == 0)
		r = sbx_grants_ask_all(all);
	/* An explicit mount there wins: --ro-bind of the current directory stays read-only. */
	if (r == 0 && !d->options->scratch &&
	    !(d->facts->cwd && sbx_grants_have(all, d->facts->cwd)))
		r = sbx_grant_work_dir(all, &cwd, &cwd_mount_fd, why, n_why, &dir);
	if (r == 0 && dir)
		r = sbx_grant_ask(all, NULL, dir, NULL, SBX_ORIGIN_CWD, true, false);
	if (r == 0 && dir)
		all->grants[all->n_grants - 1].mount_fd = sbx_fd_steal(&cwd_mount_fd);
	if (r == 0)
		r = sbx_grants_ask_caches(all);
	if (r == 0)
		r = sbx_grants_mount(all, &cwd);
	if (r == 0 && d->options->keep)
		r = judge_keep(all, why);
	sbx_path_fini(&cwd);
	return r;
}

/* A root may not hold sbx's files of other sandboxes: below a root nothing is masked, as it is
 * below a grant. */
static int refuse_own_below(const struct sbx_grants *all, const struct sbx_path *path,
			    struct sbx_err *err)
{
	for (size_t i = 0; i < SBX_N_OWN_HIDDEN; i++)
		if (sbx_path_in_prefix(all->own[i], path->resolved)) {
			sbx_err_set(err, "'%s' holds sbx's own '%s'", path->resolved, all->own[i]);
			return SBX_PATH_E_FORBIDDEN;
		}
	if (S_ISDIR(path->st.st_mode))
		return 0;
	sbx_err_set(err, "'%s' is no directory", path->resolved);
	return SBX_PATH_E_FORBIDDEN;
}

int sbx_view_judge_root(const struct sbx_draft *d, const char *source, struct sbx_path *ret_path,
			struct sbx_err_list *errs)
{
	SBX_CLEANUP(sbx_grants_freep) struct sbx_grants *all = NULL;
	SBX_AUTO_FREE char *path = sbx_grant_expand_home(d, source);
	struct sbx_err err = { 0 };
	int r = sbx_grants_new(d, errs, &all);

	if (r != 0 || !path)
		return r != 0 ? r : -ENOMEM;
	r = sbx_grant_judge_source(all, path, false, ret_path, &err);
	if (r == 0)
		r = refuse_own_below(all, ret_path, &err);
	if (r > 0)
		sbx_err_list_add(errs, d->options->root ? "" : d->profile_file, 0, 0, "%s: %s",
				 d->options->root ? "--root" : "filesystem.root", err.msg);
	return r > 0 ? SBX_EXIT_REFUSED : r;
}
