/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_USER_VIEW_CACHE_H
#define SBX_LAUNCHER_USER_VIEW_CACHE_H

#include "base/err.h"
#include "launcher/view/draft.h"

/* A package manager's cache: its directory below the profile's caches, and its place below the home
 * inside. */
struct sbx_view_cache {
	const char *name, *place;
};
/* The i-th cache; NULL: there are no more. */
const struct sbx_view_cache *sbx_view_cache_at(size_t i);

/* The directory of the profile's caches, below the @state directory of the sandbox's user (real
 * path). malloc'ed in *ret_dir. 0; SBX_EXIT_REFUSED with @err: this sandbox can have
 * none; -errno. */
int sbx_view_cache_dir(const struct sbx_draft *d, const char *state, char **ret_dir,
		       struct sbx_err *err);
/* Open the directory @path of one cache, and make it if it is missing. 0, SBX_PATH_E_* with @err,
 * -errno. */
int sbx_view_cache_open(const struct sbx_draft *d, const char *path, struct sbx_path *ret_path,
			struct sbx_err *err);

#endif
