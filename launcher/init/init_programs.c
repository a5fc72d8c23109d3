/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Enforces an allow list from inside: one Landlock domain, and a filter for files that Landlock
 * does not judge.
 *
 * Execution is allowed file by file. Each file is opened here and compared with the one that the
 * launcher judged. Reading is allowed everywhere but in the directories of programs, because the
 * loader can be run as a command and maps every file that it can read. Landlock only allows, so
 * there is a rule for each directory beside those.
 *
 * Descriptors 0-2 that are terminals or the like may be opened again (/dev/stdin). If they are
 * files, they may not: they lie on the host's mounts, which are not noexec, and the loader would
 * map a file that the sandbox wrote there. A rule for the file, or for a directory above it on the
 * host's mount (a grant at the top of the view), would still allow that. So it is tried when the
 * rules are enforced, and the start is refused if it works.
 */
#include "launcher/init/init_programs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sys/seccomp/landlock.h"
#include "sys/seccomp/seccomp.h"

static const char *const parents[] = { "/", "/usr", "/usr/local" };
static const char *const program_dirs[] = {
	"/bin",	      "/sbin",		"/usr/bin",	   "/usr/sbin",
	"/usr/games", "/usr/local/bin", "/usr/local/sbin", "/usr/local/games",
};

static bool is_one_of(const char *path, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(path, list[i]) == 0)
			return true;
	return false;
}

/* A file that cannot be opened cannot be read either. */
static int allow_reading(int ruleset, const char *path)
{
	SBX_AUTO_CLOSE int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	return S_ISLNK(st.st_mode) ? 0 : sbx_landlock_allow(ruleset, fd, SBX_LANDLOCK_READ);
}

static int allow_child(int ruleset, const char *parent, const char *name)
{
	char path[sizeof("/usr/local/") + NAME_MAX];

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (snprintf(path, sizeof(path), "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	if (is_one_of(path, parents, SBX_N_ELEMENTS(parents)) ||
	    is_one_of(path, program_dirs, SBX_N_ELEMENTS(program_dirs)))
		return 0;
	return allow_reading(ruleset, path);
}

static int allow_children(int ruleset, const char *parent)
{
	SBX_AUTO_CLOSE int fd = open(parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	SBX_AUTO_CLOSEDIR DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return fd < 0 ? 0 : -errno;
	sbx_fd_steal(&fd); /* closedir() closes it */
	while (r == 0 && (errno = 0, e = readdir(dir)))
		r = allow_child(ruleset, parent, e->d_name);
	return r < 0 ? r : -errno;
}

static int allow_stdio(int ruleset)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		struct stat st;
		int r;

		if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode))
			continue;
		r = sbx_landlock_allow(ruleset, fd, SBX_LANDLOCK_READ);
		if (r < 0)
			return r;
	}
	return 0;
}

static int allow_changes(int ruleset)
{
	SBX_AUTO_CLOSE int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : sbx_landlock_allow(ruleset, fd, SBX_LANDLOCK_CHANGE_DIRS);
}

static int allow_program(int ruleset, const struct sbx_msg_program *p, const char *path)
{
	SBX_AUTO_CLOSE int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != p->dev || st.st_ino != p->ino || !S_ISREG(st.st_mode))
		return -ESTALE;
	return sbx_landlock_allow(ruleset, fd, SBX_LANDLOCK_EXECUTE | SBX_LANDLOCK_READ);
}

/* --- descriptors 0-2, when the rules are enforced --- */

/* The owner needs only fchmod(2) to make the file readable. */
static bool opens(int fd, const struct stat *st)
{
	char path[32];
	SBX_AUTO_CLOSE int again = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return again >= 0 || (st->st_uid == geteuid() && !(st->st_mode & S_IRUSR));
}

static bool is_noexec(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_flags & ST_NOEXEC);
}

int sbx_init_judge_stdio(char *why, size_t n_why)
{
	static const char *const names[] = { "input", "output", "error" };

	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		struct stat st;

		if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || is_noexec(fd) || !opens(fd, &st))
			continue;
		sbx_text_cut(
			why, n_why,
			"commands.allow: standard %s is a file that the command could open again "
			"and execute: "
			"redirect through a pipe (cat), or grant its directory deeper in the view",
			names[fd]);
		return -EPERM;
	}
	return 0;
}

int sbx_init_hold(const struct sbx_msg_programs *m, char *why, size_t n_why)
{
	SBX_AUTO_CLOSE int ruleset = sbx_landlock_programs_begin();
	int r = ruleset < 0 ? ruleset : allow_stdio(ruleset);

	if (r == 0)
		r = allow_changes(ruleset);
	for (size_t i = 0; i < SBX_N_ELEMENTS(parents) && r == 0; i++)
		r = allow_children(ruleset, parents[i]);
	for (uint32_t i = 0; i < m->n_programs && r == 0; i++) {
		const char *path = m->text + m->v[i].path;

		r = allow_program(ruleset, &m->v[i], path);
		if (r < 0) {
			sbx_text_cut(
				why, n_why, "cannot allow %s to execute: %s", path,
				r == -ESTALE
					? "it is not what it was when it was checked; try again"
					: strerror(-r));
			return r;
		}
	}
	if (r == 0)
		r = sbx_landlock_enforce(ruleset);
	if (r == 0)
		r = sbx_seccomp_hold_memfd();
	if (r < 0)
		sbx_text_cut(why, n_why, "cannot hold commands.allow: %s", strerror(-r));
	return r < 0 ? r : sbx_init_judge_stdio(why, n_why);
}
