/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The git repository of the current directory. git looks for `.git` upwards, and finds none if only
 * a subdirectory is granted.
 *
 * Everybody who can make a `.git` above would decide what is granted. So the search ends, like
 * git's own, at another file system, and at a directory or a `.git` that does not belong to the
 * current directory's owner. A file `.git` (a submodule, a worktree) names a git directory
 * elsewhere, mostly in the repository around it, so the search goes on.
 */
#include "launcher/user/view_repository.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/view/git_name.h"

static bool is_git_dir(int dir_fd, uid_t owner, bool *ret_elsewhere)
{
	struct stat st, head;

	if (fstatat(dir_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != owner)
		return false;
	*ret_elsewhere = S_ISREG(st.st_mode);
	return S_ISDIR(st.st_mode) && fstatat(dir_fd, ".git/HEAD", &head, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Does the git directory @name call @dir its worktree? There is no symlink in @name. */
static bool is_worktree_at(const char *name, const char *dir)
{
	SBX_AUTO_FREE char *real = realpath(name, NULL), *back = NULL, *git = NULL;
	SBX_AUTO_CLOSE int fd = -1, file = -1;

	if (!real || strcmp(real, name) != 0 || asprintf(&git, "%s/.git", dir) < 0)
		return false;
	fd = open(name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		file = openat(fd, "gitdir", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return sbx_git_name_read(file, "", &back) == 0 && back && strcmp(back, git) == 0;
}

int sbx_view_worktree_of(const char *dir, char **ret_git_dir)
{
	static const char below[] = "/.git/worktrees/";
	SBX_AUTO_CLOSE int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	SBX_AUTO_CLOSE int file =
		fd < 0 ? -1 : openat(fd, ".git", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	SBX_AUTO_FREE char *name = NULL;
	int r = sbx_git_name_read(file, "gitdir: ", &name);
	char *end = name ? strstr(name, below) : NULL;

	*ret_git_dir = NULL;
	if (!end || end == name || !is_worktree_at(name, dir))
		return r;
	end[sizeof("/.git") - 1] = '\0';
	*ret_git_dir = sbx_steal_ptr(&name);
	return 0;
}

int sbx_view_repository(const char *cwd, char **ret_top)
{
	SBX_AUTO_FREE char *dir = strdup(cwd), *with_file = NULL;
	struct stat first, st;

	*ret_top = NULL;
	if (!dir)
		return -ENOMEM;
	if (stat(dir, &first) < 0)
		return 0;
	for (char *end = dir + strlen(dir); end > dir; end = strrchr(dir, '/')) {
		SBX_AUTO_CLOSE int fd = -1;
		bool elsewhere = false;

		*end = '\0';
		fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != first.st_dev ||
		    st.st_uid != first.st_uid)
			break;
		if (is_git_dir(fd, first.st_uid, &elsewhere)) {
			if (strcmp(dir, cwd) != 0)
				*ret_top = sbx_steal_ptr(&dir);
			return 0;
		}
		if (elsewhere && !with_file && !(with_file = strdup(dir)))
			return -ENOMEM;
	}
	if (with_file && strcmp(with_file, cwd) != 0)
		*ret_top = sbx_steal_ptr(&with_file);
	return 0;
}
