/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Judges whether another user can change a file that sbx trusts.
 *
 * A profile, a job and the system policy say what a sandbox may touch, and in its own directories
 * sbx writes with its own privileges. So the file, and every directory and symlink on the way to
 * it, must belong to root or to the caller, and nobody else may be able to write there. In a sticky
 * directory (/tmp) everybody may add a name, but it stays its owner's.
 *
 * A privileged launcher acts for the host: a group that may write is another user, too. An ordinary
 * user's group is that user's own choice, and on many hosts a group of one with which everything is
 * shared (umask 002), so the group may write.
 *
 * Files installed beside the program (profiles, helpers) are not judged: a user who could change
 * them could change the program.
 */
#include "launcher/host/trust.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/fs/path_resolve.h"

static bool is_trusted(const struct sbx_facts *f, uid_t uid)
{
	return uid == 0 || uid == f->caller_uid;
}

/* Of a file, or of a directory in which a name is to be made. 0 or -EPERM with @err. */
static int judge_object(const struct sbx_facts *f, const char *what, const struct stat *st,
			bool strict, struct sbx_err *err)
{
	mode_t others = strict || f->privileged ? 0022 : 0002;

	if (!is_trusted(f, st->st_uid)) {
		sbx_err_set(err, "%s belongs to uid %u, who can change it", what, st->st_uid);
		return -EPERM;
	}
	if (!(st->st_mode & others) || (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX)))
		return 0;
	sbx_err_set(err, "others than its owner can write %s (mode %03o), and so change it", what,
		    st->st_mode & 0777);
	return -EPERM;
}

static int judge_way(const struct sbx_facts *f, const struct sbx_path_steering *way,
		     struct sbx_err *err)
{
	if (f->privileged ? way->by_others : way->by_strangers) {
		sbx_err_set(err, "on the way to it is a directory that others than its owner can "
				 "write, or directories and "
				 "symlinks of several users, who can change it");
		return -EPERM;
	}
	if (!is_trusted(f, way->by)) {
		sbx_err_set(
			err,
			"on the way to it is a directory or symlink of uid %u, who can change it",
			way->by);
		return -EPERM;
	}
	return 0;
}

static int resolve(const char *path, struct sbx_resolved *ret_found, struct sbx_err *err)
{
	SBX_AUTO_FREE char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0), *absolute = NULL;
	int r;

	if (path[0] != '/' && !cwd) {
		sbx_err_set(err, "the current directory has no name: %s", strerror(errno));
		return -errno;
	}
	if (asprintf(&absolute, "%s%s%s", cwd ? cwd : "", cwd ? "/" : "", path) < 0) {
		absolute = NULL;
		return -ENOMEM;
	}
	r = sbx_path_resolve(absolute, err, ret_found);
	return r > 0 ? -EPERM : r;
}

int sbx_trust_file(const struct sbx_facts *f, const char *path, const struct stat *opened,
		   bool strict, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_resolved_fini) struct sbx_resolved found = { .fd = -1 };
	int r = resolve(path, &found, err);

	if (r < 0)
		return r;
	if (found.missing || found.st.st_dev != opened->st_dev ||
	    found.st.st_ino != opened->st_ino) {
		sbx_err_set(err, "somebody can change it, and did so while it was read");
		return -EPERM;
	}
	r = judge_way(f, &found.steering, err);
	return r < 0 ? r : judge_object(f, "it", opened, strict, err);
}

int sbx_trust_dir(const struct sbx_facts *f, const char *path, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_resolved_fini) struct sbx_resolved found = { .fd = -1 };
	int r = resolve(path, &found, err);

	if (r == 0)
		r = judge_way(f, &found.steering, err);
	return r < 0 || !found.missing ? r : judge_object(f, found.parent, &found.st, true, err);
}
