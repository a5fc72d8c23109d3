/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds a command as the sandbox will (its PATH, its mounts, its working directory), and the files
 * that the kernel executes with it: the interpreter of a script, the interpreters of that
 * interpreter, the loader of an ELF file.
 *
 * Files are read through the fd that was found, with the privileges that the sandbox will have, and
 * only as far as the kernel reads them. The kernel executes a program that may not be read; a
 * script that may not be read cannot run.
 */
#include "launcher/commands/command_follow.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/commands/command_masks.h"
#include "launcher/commands/command_names.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/exec_format.h"
#include "launcher/view/draft.h"
#include "sys/fs/path_normalise.h"

/* --- finding --- */

int sbx_command_try(const struct sbx_draft *d, const char *path, struct sbx_names *names,
		    struct sbx_view_hit *ret_hit, const char **ret_why)
{
	int r;

	sbx_names_add(names, path);
	r = sbx_view_resolve(d, path, sbx_names_add, names, ret_hit);
	if (r == 0) {
		sbx_names_add(names, ret_hit->path);
		if (S_ISREG(ret_hit->mode) && sbx_view_executable(d, ret_hit))
			return 0;
		*ret_why = sbx_command_masked(d, ret_hit->path)
				   ? "is masked: it is a file that commands.deny means, or "
				     "a copy of one (--dry-run tells)"
			   : S_ISDIR(ret_hit->mode) ? "is a directory"
			   : S_ISREG(ret_hit->mode) ? "is not executable"
						    : "is not a regular file";
		return SBX_EXIT_NOT_EXECUTABLE;
	}
	if (r == SBX_VIEW_E_ACCESS || r == SBX_VIEW_E_LOOP ||
	    (r < 0 && sbx_errno_says_nothing(-r))) {
		*ret_why =
			r == SBX_VIEW_E_ACCESS ? "cannot be reached by the sandbox's user" :
			r < 0 ? "cannot be looked at: memory or descriptors are short, or a disk "
				"fails" :
				"leads through too many symbolic links";
		return SBX_EXIT_NOT_EXECUTABLE;
	}
	return SBX_EXIT_NOT_FOUND;
}

/* execvp(3): the first executable wins; another file is remembered and passed by. */
static int search_path(const struct sbx_draft *d, const char *name, struct sbx_names *names,
		       struct sbx_view_hit *ret_hit, const char **ret_why)
{
	const char *dir = sbx_environment_get(d->env, "PATH");
	char remembered[PATH_MAX] = "";

	while (dir && *dir) {
		size_t n = strcspn(dir, ":");
		char path[PATH_MAX];

		if (n > 0 && dir[0] == '/' &&
		    snprintf(path, sizeof(path), "%.*s/%s", (int)n, dir, name) <
			    (int)sizeof(path)) {
			int r;

			sbx_names_fini(names);
			r = sbx_command_try(d, path, names, ret_hit, ret_why);
			if (r == 0)
				return 0;
			if (r == SBX_EXIT_NOT_EXECUTABLE)
				sbx_text_fit(remembered, sizeof(remembered), "%s", path);
		}
		dir += n + (dir[n] == ':');
	}
	sbx_names_fini(names);
	return remembered[0] ? sbx_command_try(d, remembered, names, ret_hit, ret_why)
			     : SBX_EXIT_NOT_FOUND;
}

int sbx_command_find(const struct sbx_draft *d, const char *name, struct sbx_names *names,
		     struct sbx_view_hit *ret_hit, const char **ret_why)
{
	char path[PATH_MAX];

	if (!strchr(name, '/'))
		return search_path(d, name, names, ret_hit, ret_why);
	if (name[0] == '/')
		return sbx_command_try(d, name, names, ret_hit, ret_why);
	if (snprintf(path, sizeof(path), "%s/%s", d->view->chdir, name) >= (int)sizeof(path))
		return SBX_EXIT_NOT_FOUND;
	return sbx_command_try(d, path, names, ret_hit, ret_why);
}

/* --- following --- */

struct follower {
	const struct sbx_draft *d;
	bool loaders;
	sbx_command_visit visit;
	void *userdata;
	struct sbx_err *err;
};

static int follow(const struct follower *f, const struct sbx_view_hit *hit, int depth);

/* The kernel opens an interpreter by its path, also one without a '/'. */
static int find_path(const struct sbx_draft *d, const char *name, struct sbx_names *names,
		     struct sbx_view_hit *ret_hit, const char **ret_why)
{
	char path[PATH_MAX];

	if (strchr(name, '/'))
		return sbx_command_find(d, name, names, ret_hit, ret_why);
	if (snprintf(path, sizeof(path), "./%s", name) >= (int)sizeof(path))
		return SBX_EXIT_NOT_FOUND;
	return sbx_command_find(d, path, names, ret_hit, ret_why);
}

enum how { BY_PATH, BY_SEARCH, AS_LOADER };

/* Find @name, which @by needs. @depth: the nesting of the files that it needs in turn; negative:
 * they are not followed. */
static int need(const struct follower *f, const char *name, const char *by, enum how how, int depth)
{
	bool loader = how == AS_LOADER;
	SBX_CLEANUP(sbx_names_fini) struct sbx_names names = { 0 };
	const char *why = "", *what = loader ? "loader" : "interpreter";
	struct sbx_view_hit hit;
	const struct sbx_needed needed = { name, by, loader, &names, &hit };
	int r = (how == BY_SEARCH ? sbx_command_find : find_path)(f->d, name, &names, &hit, &why);

	if (names.failed) {
		sbx_err_set(f->err, "%s's %s '%s' goes by too many names", by, what, name);
		return SBX_EXIT_NOT_EXECUTABLE;
	}
	if (r == SBX_EXIT_NOT_FOUND)
		sbx_err_set(f->err, "%s needs the %s '%s', which is not in the sandbox%s", by, what,
			    name,
			    how == BY_SEARCH && !strchr(name, '/') ? "'s PATH"
								   : " (grant it with --ro-bind)");
	else if (r != 0)
		sbx_err_set(f->err, "%s needs the %s '%s', which %s", by, what, name, why);
	if (r == 0)
		r = f->visit(f->userdata, &needed);
	return r != 0 || depth < 0 ? r : follow(f, &hit, depth);
}

static int follow_script(const struct follower *f, const struct sbx_view_hit *hit,
			 const struct sbx_exec_format *format, int depth)
{
	char name[SBX_EXEC_HEAD_MAX];
	int r;

	if (depth >= SBX_EXEC_DEPTH_MAX) {
		sbx_err_set(f->err, "more than %d scripts interpret one another (the last is %s)",
			    SBX_EXEC_DEPTH_MAX, hit->path);
		return SBX_EXIT_NOT_EXECUTABLE;
	}
	r = need(f, format->interpreter, hit->path, BY_PATH, depth + 1);
	if (r == 0 && strcmp(sbx_base_name(format->interpreter), "env") == 0 &&
	    sbx_exec_env_program(format->arg, name))
		r = need(f, name, hit->path, BY_SEARCH, depth + 1);
	return r;
}

/* The loader's path in an ELF file. False: there is none, or the kernel would refuse it. */
static bool read_interp(int fd, const struct sbx_exec_format *format, char *ret_path, size_t n_path)
{
	uint8_t phdr[SBX_EXEC_PHDR_BYTES];
	uint64_t at, n;

	for (uint32_t i = 0; i < format->n_phdrs; i++) {
		off_t from = (off_t)(format->phdrs_at + (uint64_t)i * sizeof(phdr));

		if (from < 0 || pread(fd, phdr, sizeof(phdr), from) != (ssize_t)sizeof(phdr))
			return false;
		if (!sbx_exec_is_interp(sbx_span(phdr, sizeof(phdr)), &at, &n))
			continue;
		if (n < 2 || n > n_path || (off_t)at < 0 ||
		    pread(fd, ret_path, n, (off_t)at) != (ssize_t)n)
			return false;
		return ret_path[n - 1] == '\0' && ret_path[0];
	}
	return false;
}

/* The number of bytes, or -errno; without *ret_fd it may not be read. */
static ssize_t read_head(const struct follower *f, const struct sbx_view_hit *hit, int *ret_fd,
			 uint8_t *head)
{
	ssize_t n;
	int fd = sbx_view_open(f->d, hit);

	if (fd < 0)
		return fd == -EACCES || fd == -EPERM ? 0 : fd;
	*ret_fd = fd;
	n = pread(fd, head, SBX_EXEC_HEAD_MAX, 0);
	return n < 0 ? -errno : n;
}

static int refuse_line(const struct follower *f, const char *path, int e)
{
	if (e == SBX_EXEC_E_TOO_LONG)
		sbx_err_set(f->err,
			    "the interpreter in the first line of %s is longer than the %d bytes "
			    "that the kernel reads",
			    path, SBX_EXEC_HEAD_MAX);
	else
		sbx_err_set(f->err, "the first line of %s (#!) names no interpreter", path);
	return SBX_EXIT_NOT_EXECUTABLE;
}

static int follow(const struct follower *f, const struct sbx_view_hit *hit, int depth)
{
	SBX_AUTO_CLOSE int fd = -1;
	struct sbx_exec_format format;
	uint8_t head[SBX_EXEC_HEAD_MAX];
	ssize_t n = read_head(f, hit, &fd, head);
	char path[PATH_MAX];
	int e;

	if (n < 0) {
		sbx_err_set(f->err, "%s cannot be read: %s", hit->path, strerror((int)-n));
		return SBX_EXIT_NOT_EXECUTABLE;
	}
	if (fd < 0)
		return 0;
	e = sbx_exec_parse(sbx_span(head, (size_t)n), &format);
	if (e != 0)
		return refuse_line(f, hit->path, e);
	switch (format.kind) {
	case SBX_EXEC_SCRIPT:
		return follow_script(f, hit, &format, depth);
	case SBX_EXEC_ELF:
		return f->loaders && read_interp(fd, &format, path, sizeof(path))
			       ? need(f, path, hit->path, AS_LOADER, -1)
			       : 0;
	case SBX_EXEC_UNKNOWN:
		break;
	}
	/* execvp(3) has /bin/sh run it, if it is the command itself; the kernel does not for
	 * interpreters. */
	return depth == 0 && f->loaders ? need(f, "/bin/sh", hit->path, BY_PATH, 1) : 0;
}

int sbx_command_follow(const struct sbx_draft *d, const struct sbx_view_hit *hit, bool loaders,
		       sbx_command_visit visit, void *userdata, struct sbx_err *err)
{
	const struct follower f = { d, loaders, visit, userdata, err };

	return follow(&f, hit, 0);
}
