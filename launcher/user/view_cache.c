/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --cache: downloads of package managers stay for the next run.
 *
 *   STATE/cache/by-name/PROFILE/TOOL   of a profile that was found by its name
 *   STATE/cache/by-file/PATH/TOOL      of a profile that is a file, by its real path
 *
 * The next run of the same profile executes files that a run leaves there. So a profile never sees
 * the caches of another one, and no program outside a sandbox reads them: the host's own caches are
 * elsewhere. The state directory is closed to all sandboxes except for these mounts, so every entry
 * in it was made by sbx-run or lies in a cache.
 *
 * The places inside are the tools' defaults, so no variable needs to be set. A cache that the
 * profile grants, or that a home has at such a place, is not replaced.
 */
#include "launcher/user/view_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/host/config.h"
#include "launcher/rootfs/view_home.h"
#include "launcher/view/draft.h"
#include "sys/fs/path_normalise.h"

static const struct sbx_view_cache caches[] = {
	{ "npm", ".npm" },
	{ "pip", ".cache/pip" },
	{ "cargo-registry", ".cargo/registry" },
	{ "cargo-git", ".cargo/git" },
	{ "go-mod", "go/pkg/mod" },
	{ "go-build", ".cache/go-build" },
};

const struct sbx_view_cache *sbx_view_cache_at(size_t i)
{
	return i < SBX_N_ELEMENTS(caches) ? &caches[i] : NULL;
}

int sbx_view_cache_dir(const struct sbx_draft *d, const char *state, char **ret_dir,
		       struct sbx_err *err)
{
	const struct sbx_facts *f = d->facts;
	const char *name = d->options->profile;
	bool is_file = sbx_options_profile_is_file(name);
	SBX_AUTO_FREE char *absolute = NULL, *file = NULL;

	if (f->throwaway_user) {
		sbx_err_set(err, "a user made up for this run has no caches that stay: name a user "
				 "with --user");
		return SBX_EXIT_REFUSED;
	}
	if (is_file) {
		if (asprintf(&absolute, "%s%s%s", name[0] == '/' || !f->cwd ? "" : f->cwd,
			     name[0] == '/' ? "" : "/", name) < 0) {
			absolute = NULL;
			return -ENOMEM;
		}
		file = sbx_path_real_location(absolute);
		if (!file)
			return -ENOMEM;
	}
	return asprintf(ret_dir, "%s/cache/by-%s%s%s", state, is_file ? "file" : "name",
			is_file ? "" : "/", is_file ? file : name) < 0
		       ? -ENOMEM
		       : 0;
}

int sbx_view_cache_open(const struct sbx_draft *d, const char *path, struct sbx_path *ret_path,
			struct sbx_err *err)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS };
	SBX_AUTO_CLOSE int fd = -1;
	int r = sbx_view_make_dirs(path, err);

	if (r != 0)
		return r;
	fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (fd < 0 || fstat(fd, &ret_path->st) < 0) {
		sbx_err_set(err, "'%s' cannot be opened: %s", path, strerror(errno));
		return SBX_PATH_E_ACCESS;
	}
	if (ret_path->st.st_uid != d->facts->uid) {
		sbx_err_set(err, "'%s' belongs to uid %u, and the sandbox's user is %u", path,
			    ret_path->st.st_uid, d->facts->uid);
		return SBX_PATH_E_FORBIDDEN;
	}
	ret_path->resolved = strdup(path);
	if (!ret_path->resolved)
		return -ENOMEM;
	ret_path->fd = sbx_fd_steal(&fd);
	return 0;
}
