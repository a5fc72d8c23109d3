/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The allow list as files. sbx-init enforces it by Landlock before the self-test. Exactly these
 * files execute: those that the entries mean in the view, the command itself, the interpreters of
 * scripts among them, and the loaders of ELF files among them. A file that a deny entry means never
 * executes.
 *
 * Files that the sandbox may write never execute: their mounts are noexec, which also keeps the
 * loader, run as a command, from mapping them. So a listed file on such a mount is left out; if it
 * is the command, the run is refused.
 *
 * The caller's descriptors 0-2 may be files on the host's mounts, without noexec. init's rules are
 * for directories, on every mount of them, so they may allow such a file (init_programs.c).
 *
 * init gets path, device and inode of each file. It opens the file in the sandbox, and refuses
 * another one than was judged here.
 */
#include "launcher/commands/command_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/messages.h"
#include "launcher/commands/command_expand.h"
#include "launcher/commands/command_follow.h"
#include "launcher/commands/command_names.h"
#include "launcher/commands/commands.h"
#include "launcher/host/exit_status.h"
#include "launcher/rules/tool_rules.h"
#include "launcher/view/draft.h"
#include "sys/fs/path_normalise.h"

struct files {
	const struct sbx_draft *d;
	struct sbx_err err;
	size_t n_text;
};

static int refuse_many(struct files *f)
{
	sbx_err_set(&f->err,
		    "commands.allow of profile '%s' means more than %d files, or ones with very "
		    "long paths: name fewer",
		    f->d->options->profile, SBX_PROGRAMS_MAX);
	return SBX_EXIT_REFUSED;
}

static bool is_known(const struct sbx_draft *d, const struct stat *st)
{
	for (size_t i = 0; i < d->commands->n_programs; i++)
		if (d->commands->programs[i].dev == st->st_dev &&
		    d->commands->programs[i].ino == st->st_ino)
			return true;
	return false;
}

/* Could the sandbox's user change the file if a writable path led to it? */
static bool may_change(const struct sbx_draft *d, const struct sbx_view_hit *hit)
{
	uid_t owner = hit->op->idmap ? hit->op->source.st.st_uid : d->facts->uid;

	return hit->st.st_uid == owner || (hit->st.st_mode & 0022);
}

/* Does a writable grant contain the file, or may it contain another name of it? */
static bool is_within(const struct sbx_draft *d, const struct sbx_mount_op *grant,
		      const struct sbx_view_hit *hit)
{
	char path[2 * PATH_MAX], inside[PATH_MAX];
	struct sbx_view_hit other;
	int r;

	if (hit->st.st_nlink > 1 && grant->source.st.st_dev == hit->st.st_dev)
		return true;
	sbx_text_fit(path, sizeof(path), "%s%s%s", hit->op->source.resolved,
		     hit->below[0] ? "/" : "", hit->below);
	if (!sbx_path_in_prefix(path, grant->source.resolved))
		return false;
	if (sbx_text_format(inside, sizeof(inside), "%s%s", grant->dest,
			    path + strlen(grant->source.resolved)) < 0)
		return true;
	r = sbx_view_resolve(d, inside, NULL, NULL, &other);
	return r < 0 ||
	       (r == 0 && sbx_view_writable(&other)); /* a path that is too long may be reached
						       * in steps */
}

static bool is_written_elsewhere(const struct sbx_draft *d, const struct sbx_view_hit *hit)
{
	for (size_t i = 0; i < d->view->n_mounts; i++)
		if (d->view->mounts[i].kind == SBX_MOUNT_BIND && d->view->mounts[i].writable &&
		    may_change(d, hit) && is_within(d, &d->view->mounts[i], hit))
			return true;
	return false;
}

/* The reason why the file cannot execute although it is listed; NULL: it can. */
static const char *problem(const struct sbx_draft *d, const struct sbx_view_hit *hit)
{
	if (!hit->op || hit->op->kind == SBX_MOUNT_ETC)
		return "is made by sbx-run itself";
	if (sbx_view_writable(hit))
		return "is in a writable place, and nothing there executes with a "
		       "commands.allow list (grant it read-only: --ro-bind)";
	return is_written_elsewhere(d, hit)
		       ? "is granted read-only, but a writable grant may lead to the same file (by "
			 "another path, or a hard link): grant a copy"
		       : NULL;
}

/* Takes nothing of @hit. 1: the file is in the list already. */
static int add(struct files *f, const struct sbx_view_hit *hit, enum sbx_program_why why,
	       const char *for_what)
{
	const struct sbx_draft *d = f->d;
	struct sbx_program *program;

	if (is_known(d, &hit->st))
		return 1;
	f->n_text += strlen(hit->path) + 1;
	if (d->commands->n_programs >= SBX_PROGRAMS_MAX || f->n_text > SBX_PROGRAMS_TEXT_MAX)
		return refuse_many(f);
	if (!d->commands->programs)
		d->commands->programs = calloc(SBX_PROGRAMS_MAX, sizeof(*d->commands->programs));
	if (!d->commands->programs)
		return -ENOMEM;
	program = &d->commands->programs[d->commands->n_programs];
	program->path = strdup(hit->path);
	program->for_what = strdup(for_what);
	d->commands->n_programs++;
	program->why = why;
	program->dev = hit->st.st_dev;
	program->ino = hit->st.st_ino;
	return program->path && program->for_what ? 0 : -ENOMEM;
}

/* --- interpreters and loaders --- */

/* Add the files that a listed file needs. If one of them is missing, the listed file fails when it
 * is run. */
static int add_needed(void *userdata, const struct sbx_needed *needed)
{
	struct files *f = userdata;
	int r;

	if (problem(f->d, needed->hit) ||
	    sbx_command_denied(f->d, needed->asked, needed->names).entry)
		return 0;
	r = add(f, needed->hit, needed->loader ? SBX_PROGRAM_LOADER : SBX_PROGRAM_INTERPRETER,
		needed->by);
	return r == 1 ? 0 : r;
}

static int add_needs(struct files *f, const struct sbx_view_hit *hit)
{
	struct sbx_err ignored = { 0 };
	int r = sbx_command_follow(f->d, hit, true, add_needed, f, &ignored);

	/* If a part is missing or malformed, only that file fails. */
	return r == SBX_EXIT_NOT_FOUND || r == SBX_EXIT_NOT_EXECUTABLE ? 0 : r;
}

static int add_entry(void *userdata, const char *entry, const char *path)
{
	struct files *f = userdata;
	SBX_CLEANUP(sbx_names_fini) struct sbx_names names = { 0 };
	struct sbx_view_hit hit;
	const char *why;
	int r = sbx_command_try(f->d, path, &names, &hit, &why);

	if (r != 0 || names.failed || sbx_command_denied(f->d, NULL, &names).entry)
		return 0;
	why = problem(f->d, &hit);
	if (why)
		return strcmp(entry, path) == 0
			       ? sbx_notes_add(f->d->notes, "commands.allow: %s %s", path, why)
			       : 0;
	r = add(f, &hit, SBX_PROGRAM_ENTRY, entry);
	return r == 1 ? 0 : r != 0 ? r : add_needs(f, &hit);
}

/* The pattern of a rule means only the files that the rule decides on. */
static int add_allowed_by_rule(void *userdata, const char *entry, const char *path)
{
	struct files *f = userdata;
	SBX_CLEANUP(sbx_names_fini) struct sbx_names names = { 0 };
	struct sbx_view_hit hit;
	const char *why;

	if (sbx_command_try(f->d, path, &names, &hit, &why) != 0 || names.failed ||
	    !sbx_command_denied(f->d, NULL, &names).rule)
		return 0;
	return add_entry(userdata, entry, path);
}

/* --- the command itself --- */

static int add_needed_by_command(void *userdata, const struct sbx_needed *needed)
{
	struct files *f = userdata;
	const char *why = problem(f->d, needed->hit);

	if (!why)
		return add_needed(userdata, needed);
	sbx_err_set(&f->err, "command '%s': it needs %s, which %s", f->d->options->argv[0],
		    needed->hit->path, why);
	return SBX_EXIT_NOT_EXECUTABLE;
}

static int add_command(struct files *f, const struct sbx_view_hit *hit)
{
	const char *why = problem(f->d, hit);
	struct sbx_err err = { 0 };
	int r;

	if (why) {
		sbx_err_set(&f->err, "command '%s': %s %s", f->d->options->argv[0], hit->path, why);
		return SBX_EXIT_NOT_EXECUTABLE;
	}
	r = add(f, hit, SBX_PROGRAM_ENTRY, f->d->options->argv[0]);
	if (r == 0)
		r = sbx_command_follow(f->d, hit, true, add_needed_by_command, f, &err);
	if (err.msg[0])
		sbx_err_set(&f->err, "command '%s': %s", f->d->options->argv[0], err.msg);
	return r;
}

/* --- the list --- */

static int by_path(const void *a, const void *b)
{
	const struct sbx_program *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int check_host(struct files *f)
{
	if (f->d->facts->landlock_abi >= 2)
		return 0;
	if (f->d->facts->landlock_abi == 1)
		return sbx_notes_add(f->d->notes, "with a commands.allow list files cannot be "
						  "renamed from one directory to another "
						  "on this kernel (Landlock before Linux 5.19)");
	sbx_err_set(&f->err,
		    "commands.allow of profile '%s' cannot be held on this kernel: it has no "
		    "Landlock (Linux 5.13, CONFIG_SECURITY_LANDLOCK, and 'landlock' in lsm=)",
		    f->d->options->profile);
	return SBX_EXIT_REFUSED;
}

/* Is @dest directly below /, /usr or /usr/local, where init's rules allow reading? */
static bool is_at_top(const char *dest)
{
	size_t n = (size_t)(sbx_base_name(dest) - dest);

	return (n == 1 && dest[0] == '/') || (n == 5 && strncmp(dest, "/usr/", n) == 0) ||
	       (n == 11 && strncmp(dest, "/usr/local/", n) == 0);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is @path, or a directory above it, the source of @op? The path of a removed file has a wrong name
 * in the right directory. */
static bool lies_in(char *path, const struct stat *file, const struct sbx_mount_op *op)
{
	struct stat st;

	if (is_same_file(file, &op->source.st))
		return true;
	for (char *slash; (slash = strrchr(path, '/')) && slash > path;) {
		*slash = '\0';
		if (stat(path, &st) == 0 && is_same_file(&st, &op->source.st))
			return true;
	}
	return false;
}

/* init tests this too. But in an id-mapped grant the sandbox may change the mode of a file that it
 * cannot open yet. */
static int check_stdio_file(struct files *f, int fd, const struct stat *st)
{
	static const char *const names[] = { "input", "output", "error" };
	char link[32], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	for (size_t i = 0; i < f->d->view->n_mounts; i++) {
		const struct sbx_mount_op *op = &f->d->view->mounts[i];

		if (op->kind != SBX_MOUNT_BIND || !op->writable || !is_at_top(op->dest))
			continue;
		n = readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
		if (!lies_in(path, st, op))
			continue;
		sbx_err_set(&f->err,
			    "commands.allow: standard %s is a file in %s, which the command could "
			    "open again and "
			    "execute: redirect through a pipe (cat), or grant the directory deeper "
			    "in the view than at %s",
			    names[fd], op->source.resolved, op->dest);
		return SBX_EXIT_REFUSED;
	}
	return 0;
}

static int check_stdio(struct files *f)
{
	int r = 0;

	for (int fd = 0; fd <= STDERR_FILENO && r == 0; fd++) {
		struct statvfs fs;
		struct stat st;

		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		    !(fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_NOEXEC)))
			r = check_stdio_file(f, fd, &st);
	}
	return r;
}

static void forbid_execution_of_what_is_written(const struct sbx_draft *d)
{
	for (size_t i = 0; i < d->view->n_mounts; i++) {
		struct sbx_mount_op *op = &d->view->mounts[i];

		op->noexec = op->kind == SBX_MOUNT_OVERLAY || op->kind == SBX_MOUNT_SCRATCH ||
			     op->kind == SBX_MOUNT_TMPFS ||
			     (op->kind == SBX_MOUNT_BIND && op->writable);
	}
}

/* A plan without programs would be one without a list. */
static int refuse_none(struct files *f)
{
	sbx_err_set(&f->err,
		    "no program of the commands.allow list of profile '%s' is in the sandbox",
		    f->d->options->profile);
	return SBX_EXIT_REFUSED;
}

int sbx_plan_programs(const struct sbx_draft *d, const struct sbx_view_hit *hit,
		      struct sbx_err_list *errs)
{
	SBX_CLEANUP(sbx_program_dirs_fini) struct sbx_program_dirs dirs = { 0 };
	struct files f = { .d = d };
	int r = check_host(&f);

	if (r == 0)
		r = check_stdio(&f);
	if (r == 0 && hit)
		r = add_command(&f, hit);
	if (r == 0)
		r = sbx_program_dirs(d, NULL, 0, &dirs);
	if (r == 0)
		r = sbx_entries_expand(d, &d->profile->commands.allow, &dirs, add_entry, &f);
	if (r == 0 && d->tools)
		r = sbx_entries_expand(d, &d->tools->allow, &dirs, add_allowed_by_rule, &f);
	if (r == 0 && d->commands->n_programs == 0)
		r = refuse_none(&f);
	if (r == -E2BIG)
		r = refuse_many(&f);
	if (r > 0)
		sbx_err_list_add(errs, "", 0, 0, "%s", f.err.msg);
	if (r != 0)
		return r;
	if (d->commands->n_programs > 1)
		qsort(d->commands->programs, d->commands->n_programs,
		      sizeof(d->commands->programs[0]), by_path);
	forbid_execution_of_what_is_written(d);
	return 0;
}
