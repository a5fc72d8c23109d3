/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A home that stays: a directory of the host at the place of the scratch home.
 *
 * It is a writable grant with three differences:
 *
 * - It is made if it is missing.
 * - It must be the user's own, because everybody who can write there decides what the command runs
 *   (.profile).
 * - Places to mount on (the current directory below the home, files of filesystem.home_read) are
 *   made in it if they are missing. An earlier run may have left a symlink at such a place, so a
 *   place must not be reached over a symlink: planning checks this, and tree.c again when it
 *   mounts.
 */
#include "launcher/rootfs/view_home.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"
#include "sys/fs/path_normalise.h"

const char *sbx_view_home_asked(const struct sbx_options *o, const struct sbx_facts *f,
				const struct sbx_profile *profile,
				enum sbx_mount_origin *ret_origin)
{
	const char *home = o->home ? o->home : profile->filesystem.home;

	*ret_origin = o->home ? SBX_ORIGIN_FLAG : SBX_ORIGIN_PROFILE;
	/* The profile may be for everybody, so the command starts in a scratch home then. */
	return home && home[0] == '~' && !o->home && f->throwaway_user ? NULL : home;
}

int sbx_view_make_dirs(const char *path, struct sbx_err *err)
{
	char part[PATH_MAX];

	for (size_t n = 0; path[n];) {
		n += 1 + strcspn(path + n + 1, "/");
		if (sbx_text_copy_n(part, sizeof(part), path, n) < 0)
			return -ENAMETOOLONG;
		if (mkdir(part, 0700) == 0 || errno == EEXIST)
			continue;
		sbx_err_set(err, "'%s' cannot be made: %s", part, strerror(errno));
		return SBX_PATH_E_ACCESS;
	}
	return 0;
}

int sbx_view_home_judge(const struct sbx_draft *d, const struct sbx_path *path, struct sbx_err *err)
{
	if (!S_ISDIR(path->st.st_mode)) {
		sbx_err_set(err, "'%s' is no directory", path->resolved);
		return SBX_PATH_E_FORBIDDEN;
	}
	/* An id-mapped home belongs to the sandbox's user, whoever owns it outside (owner.h). */
	if (path->st.st_uid == d->facts->uid || sbx_facts_idmap(d->facts))
		return 0;
	sbx_err_set(err,
		    "'%s' belongs to uid %u and the sandbox's user is %u: a home must be its "
		    "user's own",
		    path->resolved, path->st.st_uid, d->facts->uid);
	return SBX_PATH_E_FORBIDDEN;
}

bool sbx_view_is_own(const struct sbx_mount_op *op)
{
	return op->is_home || op->origin == SBX_ORIGIN_CACHE;
}

/* A home has no masks and no protected paths. So it must not contain files that have them in
 * another grant. */
static bool overlaps(const struct sbx_mount_op *home, const struct sbx_mount_op *other)
{
	const struct stat *a = &home->source.st, *b = &other->source.st;

	if (!sbx_view_is_grant(other) || !S_ISDIR(b->st_mode))
		return false;
	if ((a->st_dev == b->st_dev && a->st_ino == b->st_ino) ||
	    sbx_path_in_prefix(home->source.resolved, other->source.resolved))
		return true;
	return (other->writable || other->kind == SBX_MOUNT_OVERLAY) &&
	       sbx_path_in_prefix(other->source.resolved, home->source.resolved);
}

int sbx_view_home_check_overlap(const struct sbx_draft *d, struct sbx_err *err)
{
	const struct sbx_mount_op *home = NULL;

	for (size_t i = 0; i < d->view->n_mounts; i++)
		if (d->view->mounts[i].is_home)
			home = &d->view->mounts[i];
	for (size_t i = 0; home && i < d->view->n_mounts; i++) {
		const struct sbx_mount_op *op = &d->view->mounts[i];

		if (op == home || !overlaps(home, op))
			continue;
		sbx_err_set(err,
			    "the home '%s' and '%s', which is granted too, hold the same files, "
			    "and nothing is protected in "
			    "a home: name a directory beside it, or start elsewhere",
			    home->source.resolved, op->source.resolved);
		return SBX_EXIT_REFUSED;
	}
	return 0;
}

int sbx_view_home_check_place(const struct sbx_draft *d, const char *target, mode_t mode,
			      struct sbx_err *err)
{
	size_t n = strlen(d->facts->home);
	char part[PATH_MAX];

	/* First each directory on the way, then the place itself. */
	while (target[n]) {
		struct sbx_view_hit hit;
		int r;

		n += 1 + strcspn(target + n + 1, "/");
		if (sbx_text_copy_n(part, sizeof(part), target, n) < 0)
			return -ENAMETOOLONG;
		r = sbx_view_resolve(d, part, NULL, NULL, &hit);
		if (r == SBX_VIEW_E_MISSING)
			return 0;
		if (r < 0)
			return r;
		if (r == 0 && strcmp(hit.path, part) == 0 &&
		    S_ISDIR(hit.mode) == (target[n] ? true : S_ISDIR(mode)))
			continue;
		sbx_err_set(
			err,
			"'%s' in the sandbox's home is no %s, so nothing can be mounted at '%s'",
			part, target[n] || S_ISDIR(mode) ? "directory" : "file", target);
		return SBX_EXIT_REFUSED;
	}
	return 0;
}
