/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The target of --keep. Its path was judged; here it is opened. The result is written to this
 * descriptor, wherever the command may have led the path meanwhile. Planning opens it with the
 * privileges of the sandbox's user, who writes there later.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/grants/keep_target.h"
#include "launcher/user/idmap.h"
#include "launcher/view/draft.h"
#include "sys/fs/path_normalise.h"

/* A resolved path had no symlink in it: if it has one now, another process put it there. */
static int open_dir(const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS };
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int sbx_keep_target_is_empty(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	SBX_AUTO_CLOSEDIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		int error = -errno;

		sbx_fd_close(fd);
		return error;
	}
	while ((errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return 0;
	return errno ? -errno : 1;
}

static int check(int fd, const char *name)
{
	int r;

	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return -errno;
	r = name ? 0 : sbx_keep_target_is_empty(fd);
	return r < 0 ? r : r == 0 && !name ? -ENOTEMPTY : 0;
}

/* For a sandbox with a uid of its own: through a mount on which that is the owner, as a grant's
 * would be. */
static int map(const struct sbx_draft *d, const struct sbx_path *judged, int *ret_fd,
	       struct sbx_err *err)
{
	int r;

	if (judged->fd < 0) {
		sbx_err_set(err,
			    "'%s' must be there for a sandbox with a uid of its own: make it, "
			    "empty, for the user that is to have the result",
			    judged->resolved);
		return SBX_EXIT_REFUSED;
	}
	r = sbx_idmap_grant(d, judged, true, ret_fd, err);
	return r > 0 ? SBX_EXIT_REFUSED : r;
}

/* The directory @path, or the one that it will be made in as *ret_name. fd or -errno. */
static int open_place(const char *path, bool missing, char **ret_name)
{
	SBX_AUTO_FREE char *dir = strdup(path);
	char *slash;

	if (!dir)
		return -ENOMEM;
	if (missing) {
		slash = strrchr(dir, '/');
		*ret_name = strdup(slash + 1);
		if (!*ret_name)
			return -ENOMEM;
		slash[slash == dir] = '\0';
	}
	return open_dir(dir);
}

int sbx_keep_target_open(const struct sbx_draft *d, const struct sbx_path *judged,
			 struct sbx_err *err)
{
	SBX_AUTO_FREE char *path = strdup(judged->resolved), *name = NULL;
	SBX_AUTO_CLOSE int fd = -1;
	int r;

	if (!path)
		return -ENOMEM;
	if (sbx_facts_idmap(d->facts)) {
		r = map(d, judged, &fd, err);
		if (r != 0)
			return r;
	} else {
		fd = open_place(path, judged->fd < 0, &name);
	}
	r = fd < 0 ? fd : check(fd, name);
	if (r == -ENOTEMPTY) {
		sbx_err_set(err, "'%s' is not empty: name a new directory, or move its files away",
			    path);
		return SBX_EXIT_REFUSED;
	}
	if (r < 0) {
		sbx_err_set(err, "'%s' cannot be %s: %s", path, judged->fd < 0 ? "made" : "used",
			    strerror(-r));
		return SBX_EXIT_REFUSED;
	}
	d->keep->fd = sbx_fd_steal(&fd);
	d->keep->path = sbx_steal_ptr(&path);
	d->keep->name = sbx_steal_ptr(&name);
	return 0;
}

void sbx_keep_target_fini(struct sbx_keep_target *k)
{
	sbx_fd_close(k->fd);
	free(k->path);
	free(k->name);
	*k = (struct sbx_keep_target){ .fd = -1 };
}
