/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file that --learn writes. Its directory is opened as that of a receipt is (receipt.c), before
 * the command runs. Besides, it must not be where the sandbox writes: the command could put a
 * profile of its own in its place, and somebody would use that.
 */
#include "launcher/learn/learn_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "launcher/host/config.h"
#include "launcher/learn/learn_profile.h"
#include "launcher/record/receipt.h"
#include "sys/fs/path.h"
#include "sys/process/proc.h"

#define DEPTH_MAX 256

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is the directory @dir_fd the one that is granted, or below it? Unknown is yes. */
static bool is_below(int dir_fd, const struct stat *granted)
{
	SBX_AUTO_CLOSE int fd = openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st, last = { 0 };

	for (int i = 0; i < DEPTH_MAX; i++) {
		int above;

		if (fd < 0 || fstat(fd, &st) < 0 || is_same_file(&st, granted))
			return true;
		if (is_same_file(&st, &last))
			return false; /* the root */
		last = st;
		above = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		sbx_fd_close(fd);
		fd = above;
	}
	return true;
}

/* 0, or -EPERM with @err. */
static int check_place(const struct sbx_plan *plan, int dir_fd, const char *dir,
		       struct sbx_err *err)
{
	for (size_t i = 0; i < plan->view.n_mounts; i++) {
		const struct sbx_mount_op *op = &plan->view.mounts[i];

		if (op->kind != SBX_MOUNT_BIND || !op->writable || !op->source.resolved ||
		    !S_ISDIR(op->source.st.st_mode) ||
		    (!sbx_path_in_prefix(dir, op->source.resolved) &&
		     !is_below(dir_fd, &op->source.st)))
			continue;
		sbx_err_set(err,
			    "--learn %s: the command writes in %s, and could put a profile of its "
			    "own there: name a file elsewhere",
			    plan->options->learn, op->source.resolved);
		return -EPERM;
	}
	return 0;
}

static int check_profile(const struct sbx_options *o, const char *base, struct sbx_err *err)
{
	size_t n = strlen(o->profile);

	if (sbx_options_profile_is_file(o->profile)) {
		sbx_err_set(err,
			    "--learn: a profile extends another by its name, and '%s' is a "
			    "file: put it among the profiles (sbx-run --list-profiles)",
			    o->profile);
		return -EINVAL;
	}
	if (strncmp(base, o->profile, n) == 0 && strcmp(base + n, ".yaml") == 0) {
		sbx_err_set(err,
			    "--learn %s: the file would have the name of the profile that it "
			    "extends: choose another",
			    o->learn);
		return -EINVAL;
	}
	return 0;
}

int sbx_learn_prepare(const struct sbx_plan *plan, int *ret_dir_fd, struct sbx_err *err)
{
	const struct sbx_options *o = plan->options;
	const char *slash = strrchr(o->learn, '/'), *base = slash ? slash + 1 : o->learn;
	SBX_AUTO_CLOSE int dir_fd = -1;
	SBX_AUTO_FREE char *dir = NULL;
	struct stat st;
	int e = check_profile(o, base, err);

	if (e == 0)
		e = sbx_receipt_open_dir(plan->facts, o->learn, "--learn", &dir_fd, &dir, err);
	if (e == 0)
		e = check_place(plan, dir_fd, dir, err);
	if (e < 0)
		return e;
	if (fstatat(dir_fd, base, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !(o->learn_force && S_ISREG(st.st_mode))) {
		sbx_err_set(err, "--learn %s: the file exists%s", o->learn,
			    S_ISREG(st.st_mode) ? " (--learn-force replaces it)" : "");
		return -EEXIST;
	}
	*ret_dir_fd = sbx_fd_steal(&dir_fd);
	return 0;
}

int sbx_learn_write(int dir_fd, const struct sbx_plan *plan, const struct sbx_learn *learn,
		    const struct sbx_learn_programs *programs, struct sbx_err *err)
{
	const struct sbx_options *o = plan->options;
	const char *slash = strrchr(o->learn, '/'), *base = slash ? slash + 1 : o->learn;
	const struct sbx_learn_run run = {
		.learn = learn,
		.programs = programs,
		.blind = plan->facts->privileged,
		.profile = plan->profile,
		.extends = o->profile,
		.id = plan->id,
		.command = o->argv,
		.program = plan->commands.path,
		.allowed = o->learn_allow,
		.now_ms = sbx_clock_realtime_ms(),
	};
	SBX_AUTO_FREE char *text = sbx_learn_profile(&run);
	int e = text ? sbx_receipt_write_file(dir_fd, base, text, o->learn_force) : -ENOMEM;

	if (e < 0)
		sbx_err_set(err, "cannot write %s: %s", o->learn, strerror(-e));
	return e;
}
