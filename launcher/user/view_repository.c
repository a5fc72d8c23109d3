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
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool is_git_dir(int dir_fd, uid_t owner, bool *ret_elsewhere)
{
	struct stat st, head;

	if (fstatat(dir_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != owner)
		return false;
	*ret_elsewhere = S_ISREG(st.st_mode);
	return S_ISDIR(st.st_mode) && fstatat(dir_fd, ".git/HEAD", &head, AT_SYMLINK_NOFOLLOW) == 0;
}

int sbx_view_worktree_of(const char *dir, char **ret_git_dir)
{
	static const char key[] = "gitdir: ", below[] = "/.git/worktrees/";
	SBX_AUTO_CLOSE int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	SBX_AUTO_CLOSE int file =
		fd < 0 ? -1 : openat(fd, ".git", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[PATH_MAX + sizeof(key)], *end;
	struct stat st;
	ssize_t n;

	*ret_git_dir = NULL;
	if (file < 0 || fstat(file, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	n = pread(file, text, sizeof(text) - 1, 0);
	if (n <= 0 || memchr(text, 0, (size_t)n))
		return 0;
	text[n] = 0;
	text[strcspn(text, "\r\n")] = 0;
	if (strncmp(text, key, sizeof(key) - 1) != 0 || text[sizeof(key) - 1] != '/')
		return 0;
	end = strstr(text, below);
	if (!end || end == text + sizeof(key) - 1)
		return 0;
	end[sizeof("/.git") - 1] = 0;
	*ret_git_dir = strdup(text + sizeof(key) - 1);
	return *ret_git_dir ? 0 : -ENOMEM;
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
