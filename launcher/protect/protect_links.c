/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Symlinks among protected paths. A protected path may be a symlink, or a directory with symlinks
 * in it (`.git/hooks/pre-commit -> ../../scripts/check`). The host's tools act on the target. So
 * the target, where a writable grant has it, becomes read-only too, with the way to it. A symlink
 * that leads nowhere, or to a directory that it lies in, holds nothing.
 */
#include "launcher/protect/protect_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "sys/fs/path.h"

int sbx_protect_lead(struct sbx_protect *x, const char *path, struct sbx_resolved *ret_found)
{
	SBX_AUTO_FREE char *link = NULL;
	struct sbx_resolved others;
	int r;

	if (asprintf(&link, "%s/%s", sbx_protect_grant(x)->source.resolved, path) < 0) {
		link = NULL;
		return -ENOMEM;
	}
	if (sbx_protect_opened(x, sbx_path_resolve(link, NULL, ret_found)) != 0) {
		*ret_found = (struct sbx_resolved){ .fd = -1 };
		return 0;
	}
	if (ret_found->missing || ret_found->n_hops == 0 ||
	    sbx_path_in_prefix(link, ret_found->path))
		return 0;
	others = *ret_found; /* the first hop is @path itself, which is held already */
	others.hops++;
	others.n_hops--;
	r = sbx_protect_hops(x, &others);
	return r < 0 ? r : 1;
}

static int hold_target(struct sbx_protect *x, const char *path)
{
	SBX_CLEANUP(sbx_resolved_fini) struct sbx_resolved found = { .fd = -1 };
	int r = sbx_protect_lead(x, path, &found);

	return r > 0 ? sbx_protect_hold_outside(x, found.path) : r;
}

static int hold_targets_in(struct sbx_protect *x, const char *path)
{
	SBX_AUTO_CLOSEDIR DIR *list = NULL;
	const struct dirent *e;
	int r = sbx_protect_list(x, path, &list);

	while (r == 0 && list && (e = readdir(list))) {
		SBX_AUTO_FREE char *sub = NULL;

		if (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)
			continue;
		sub = sbx_protect_join(path, e->d_name);
		r = sub ? hold_target(x, sub) : -ENOMEM;
	}
	return r;
}

int sbx_protect_obeyed(struct sbx_protect *x, const char *dir, const char *rest, bool absent)
{
	SBX_AUTO_FREE char *path = sbx_protect_join(dir, rest);
	int r = path ? sbx_protect_below(x, dir, rest, absent) : -ENOMEM;
	SBX_AUTO_CLOSE int fd = r == 0 ? sbx_protect_open(x, path, O_PATH) : -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return r;
	return S_ISLNK(st.st_mode) ? hold_target(x, path) :
	       S_ISDIR(st.st_mode) ? hold_targets_in(x, path) :
				     0;
}
