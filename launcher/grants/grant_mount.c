/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Grants become mounts of the plan, outer targets first.
 *
 * If the state or runtime directory of sbx lies below a grant, an empty read-only file system is
 * mounted over it. A place to mount on is never made on the host: below another grant it must
 * exist. Only a home that stays is the sandbox's to change (view_home.h).
 */
#include "launcher/grants/grant_mount.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/grants/grant_judge.h"
#include "launcher/host/exit_status.h"
#include "launcher/host/facts.h"
#include "launcher/rootfs/overlay.h"
#include "launcher/rootfs/view_home.h"
#include "launcher/rootfs/view_root.h"
#include "launcher/rootfs/view_scratch.h"
#include "launcher/user/idmap.h"
#include "launcher/user/view_cache.h"
#include "launcher/view/view.h"
#include "launcher/view/view_add.h"

/* In the order of bytes an outer target comes before those below it. */
static int compare_targets(const void *a, const void *b)
{
	const struct sbx_grant *x = a, *y = b;

	return strcmp(x->target, y->target);
}

/* May a place to mount on be made in it? It is in memory, so nothing stays on the host. */
static bool is_fresh(const struct sbx_mount_op *op)
{
	return (op->kind == SBX_MOUNT_TMPFS || op->kind == SBX_MOUNT_SCRATCH) &&
	       op->origin != SBX_ORIGIN_MASK;
}

/* A grant inside another one needs an existing mount point, because a missing one would be made on
 * the host. */
static int check_mount_point(struct sbx_grants *all, const struct sbx_grant *g, mode_t mode,
			     struct sbx_err *err)
{
	struct sbx_view_hit hit;
	bool inside = false, in_home = false;
	int r = sbx_view_root_make_room(all->d, g->target, mode, err);

	if (r != 0)
		return r;
	for (size_t i = 0; i < all->d->view->n_mounts; i++) {
		const struct sbx_mount_op *op = &all->d->view->mounts[i];

		if (op->origin == SBX_ORIGIN_VIEW || !sbx_path_in_prefix(g->target, op->dest))
			continue;
		if (strcmp(op->dest, g->target) == 0) {
			sbx_err_set(err, "two mounts at '%s'", g->target);
			return SBX_EXIT_REFUSED;
		}
		in_home = op->is_home;
		inside = !is_fresh(op);
	}
	if (in_home)
		return sbx_view_home_check_place(all->d, g->target, mode, err);
	if (!inside)
		return 0;
	r = sbx_view_resolve(all->d, g->target, NULL, NULL, &hit);
	if (r < 0)
		return r;
	if (r == 0 && strcmp(hit.path, g->target) == 0 && S_ISDIR(hit.mode) == S_ISDIR(mode))
		return 0;
	sbx_err_set(err, "'%s' lies inside another mount, which has no such %s to mount on",
		    g->target, S_ISDIR(mode) ? "directory" : "file");
	return SBX_EXIT_REFUSED;
}

/* Masks the directories of sbx below a grant. 0, SBX_EXIT_REFUSED with @err, -ENOMEM. */
static int mask_own_dirs(struct sbx_grants *all, const char *source, const char *target,
			 struct sbx_err *err)
{
	for (size_t i = 0; i < SBX_N_OWN_HIDDEN; i++) {
		SBX_AUTO_FREE char *dest = NULL;
		const char *other = all->own[SBX_N_OWN_HIDDEN - 1 - i];

		if (!sbx_path_in_prefix(all->own[i], source))
			continue;
		/* Below the other one's mask nothing is left to mount on. */
		if (sbx_path_in_prefix(all->own[i], other) &&
		    (i > 0 || strcmp(all->own[i], other) != 0))
			continue;
		if (asprintf(&dest, "%s%s", target, all->own[i] + strlen(source)) < 0)
			return -ENOMEM;
		if (strlen(dest) >= PATH_MAX) {
			sbx_err_set(err,
				    "nothing can be mounted at '%s': sbx's own '%s' is below '%s' "
				    "and could not be masked there: the path is too long",
				    target, all->own[i], source);
			return SBX_EXIT_REFUSED;
		}
		if (sbx_view_add_tmpfs(all->d, dest, 4096, 0500) < 0)
			return -ENOMEM;
		all->d->view->mounts[all->d->view->n_mounts - 1].origin = SBX_ORIGIN_MASK;
		if (sbx_view_add_plain(all->d, SBX_MOUNT_REMOUNT_RO, dest) < 0)
			return -ENOMEM;
		all->d->view->mounts[all->d->view->n_mounts - 1].origin = SBX_ORIGIN_MASK;
	}
	return 0;
}

/* Makes the id-mapped mount of a grant. *ret_fd -1: the source is bound unmapped, because the
 * sandbox needs no map, or because none can be made and `idmap: read-only` allows that. 0,
 * SBX_EXIT_REFUSED with @err, -errno. */
static int map_grant(struct sbx_grants *all, struct sbx_grant *g, const struct sbx_path *path,
		     int *ret_fd, struct sbx_err *err)
{
	int r;

	*ret_fd = g->mount_fd;
	g->mount_fd = -1;
	if (*ret_fd >= 0 || !sbx_facts_idmap(all->d->facts))
		return 0;
	r = sbx_idmap_grant(all->d, path, g->writable, ret_fd, err);
	if (r != SBX_IDMAP_E_UNABLE)
		return r;
	if (!g->idmap_or_read_only)
		return SBX_EXIT_REFUSED;
	g->writable = false;
	r = sbx_notes_add(all->d->notes, "%s; so it is mounted read-only and as it is", err->msg);
	*err = (struct sbx_err){ 0 };
	return r;
}

/* Is @op the home that stays, which a profile or flag asked for? */
static bool is_home(const struct sbx_draft *d, const struct sbx_mount_op *op)
{
	enum sbx_mount_origin origin;

	return sbx_view_home_asked(d->options, d->facts, d->profile, &origin) &&
	       op->kind == SBX_MOUNT_BIND && op->writable && strcmp(op->dest, d->facts->home) == 0;
}

/* Takes @path. */
static int mount_grant(struct sbx_grants *all, struct sbx_grant *g, struct sbx_path *path,
		       struct sbx_err *err)
{
	SBX_AUTO_CLOSE int mount_fd = -1;
	struct sbx_mount_op *op;
	int r = check_mount_point(all, g, path->st.st_mode, err);

	if (r == 0 && g == all->overlay && sbx_overlay_has_mounts_below(path->resolved)) {
		sbx_err_set(err,
			    "'%s' cannot be an overlay: another file system is mounted below it",
			    path->resolved);
		r = SBX_EXIT_REFUSED;
	}
	if (r == 0)
		r = map_grant(all, g, path, &mount_fd, err);
	op = r == 0 ? sbx_view_add(all->d,
				   g == all->overlay && g->writable ? SBX_MOUNT_OVERLAY
								    : SBX_MOUNT_BIND,
				   g->target)
		    : NULL;
	if (!op) {
		sbx_path_fini(path);
		return r ? r : -ENOMEM;
	}
	op->origin = g->origin;
	op->writable = g->writable;
	op->is_home = is_home(all->d, op);
	op->idmap = mount_fd >= 0;
	op->mount_fd = sbx_fd_steal(&mount_fd);
	op->source = *path;
	path->fd = -1;
	path->resolved = NULL;
	return mask_own_dirs(all, op->source.resolved, g->target, err);
}

/* If another mount is at the place of a cache, a note says so, and the cache is not mounted. 0, > 0
 * with @err, -errno. */
static int mount_cache(struct sbx_grants *all, struct sbx_grant *g, struct sbx_err *err)
{
	struct sbx_path path = { .fd = -1 };
	struct sbx_err why = { 0 };
	int r = check_mount_point(all, g, S_IFDIR, &why);

	if (r > 0)
		return sbx_notes_add(all->d->notes, "--cache: none at '%s': %s", g->target,
				     why.msg);
	if (r == 0)
		r = sbx_view_cache_open(all->d, g->source, &path, err);
	return r == 0 ? mount_grant(all, g, &path, err) : r;
}

/* Makes a missing home at the place that was judged. --dry-run makes none. 0, SBX_PATH_E_* with
 * @err, -errno. */
static int make_home(struct sbx_grants *all, struct sbx_grant *g, struct sbx_path *path,
		     struct sbx_err *err)
{
	int r;

	*err = (struct sbx_err){ 0 };
	if (all->d->options->dry_run) {
		free(g->source);
		g->source = NULL; /* an empty directory in memory stands for the home */
		r = sbx_notes_add(all->d->notes, "the home '%s' will be made", path->resolved);
		sbx_path_fini(path);
		return r == 0 ? sbx_view_add_tmpfs_asked(all->d, g->target, 0, g->origin) : r;
	}
	r = sbx_view_make_dirs(path->resolved, err);
	sbx_path_fini(path);
	path->fd = -1;
	return r == 0 ? sbx_grant_judge(all, g, path, err) : r;
}

static int mount_tmpfs(struct sbx_grants *all, const struct sbx_grant *g, struct sbx_err *err)
{
	int r = sbx_grant_judge_target(all, g, err);

	if (r == 0)
		r = check_mount_point(all, g, S_IFDIR, err);
	return r == 0 ? sbx_view_add_tmpfs_asked(all->d, g->target, g->size_bytes, g->origin) : r;
}

/* The overlay is the innermost grant around the current directory, if that grant is writable.
 * Grants are sorted. */
static void choose_overlay(struct sbx_grants *all)
{
	const char *cwd = all->d->facts->cwd;
	const struct sbx_grant *innermost = NULL;

	for (size_t i = 0; i < all->n_grants && cwd; i++)
		if (!all->grants[i].home && all->grants[i].origin != SBX_ORIGIN_CACHE &&
		    sbx_path_in_prefix(cwd, all->grants[i].target))
			innermost = &all->grants[i];
	if (sbx_draft_wants_overlay(all->d) && innermost && innermost->source &&
	    innermost->writable)
		all->overlay = innermost;
}

/* Judges and mounts one grant. Takes @cwd if @g is the current directory. 0; > 0 with @err;
 * -errno. */
static int mount_one(struct sbx_grants *all, struct sbx_grant *g, struct sbx_path *cwd,
		     struct sbx_err *err)
{
	struct sbx_path path = { .fd = -1 };
	int r = 0;

	if (g->origin == SBX_ORIGIN_CACHE)
		return mount_cache(all, g, err);
	if (!g->source)
		return mount_tmpfs(all, g, err);
	if (g->origin == SBX_ORIGIN_CWD) {
		path = *cwd;
		cwd->fd = -1;
		cwd->resolved = NULL;
	} else {
		r = sbx_grant_judge(all, g, &path, err);
	}
	if (r == SBX_PATH_E_MISSING && g->optional) {
		sbx_path_fini(&path);
		return 0;
	}
	if (r == SBX_PATH_E_MISSING && g->home) {
		r = make_home(all, g, &path, err);
		if (r == 0 && !g->source)
			return 0;
	}
	if (r == 0 && g->home)
		r = sbx_view_home_judge(all->d, &path, err);
	if (r == 0)
		return mount_grant(all, g, &path, err);
	sbx_path_fini(&path);
	return r;
}

int sbx_grants_mount(struct sbx_grants *all, struct sbx_path *cwd)
{
	size_t n_before = all->errs->n;
	struct sbx_err overlap = { 0 };

	qsort(all->grants, all->n_grants, sizeof(all->grants[0]), compare_targets);
	choose_overlay(all);
	for (size_t i = 0; i < all->n_grants; i++) {
		struct sbx_grant *g = &all->grants[i];
		struct sbx_err err = { 0 };
		int r = mount_one(all, g, cwd, &err);

		if (r == -ENAMETOOLONG) {
			sbx_err_set(&err, "the path that leads to '%s' is too long", g->target);
			r = SBX_EXIT_REFUSED;
		}
		if (r < 0)
			return r;
		if (r > 0)
			sbx_grant_refuse(all, g, &err);
	}
	if (all->errs->n == n_before && sbx_view_home_check_overlap(all->d, &overlap) != 0)
		sbx_err_list_add(all->errs, "", 0, 0, "%s", overlap.msg);
	return all->errs->n > n_before ? SBX_EXIT_REFUSED : 0;
}
