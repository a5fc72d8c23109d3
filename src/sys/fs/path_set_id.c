/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Set-id programs in a directory that is to be granted writable.
 *
 * A set-id program trusts the files beside it (libraries found by $ORIGIN, configuration, helpers
 * that it starts), and runs with its owner's privileges for every user that starts it outside. So a
 * directory that holds one is not granted writable. The mode of each entry costs a system call, and
 * the current directory of every run is checked. So the check is bounded to the directory itself
 * and its first entries in the file system's order, which are all entries in the directories where
 * programs are kept. It catches a bin directory that somebody added to the allowed prefixes; the
 * prefixes themselves must keep deeper directories out.
 *
 * A file that the sandbox could have made itself does not count: the sandbox would gain nothing
 * from the files beside it, and could close its own workspace to every later run. That is a set-gid
 * file with the sandbox's own ids, since chmod may set that bit (docs/SECCOMP.md). A set-uid file
 * of that user counts: seccomp keeps the sandbox from making one, and a user that runs it outside
 * becomes that user without a sandbox.
 */
#include "sys/fs/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ENTRIES_MAX 256 /* a quarter of a millisecond with warm caches */

/* The record of getdents64(2). */
struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

/* The ids that the sandbox writes with. */
struct writer {
	uid_t uid;
	gid_t gid;
};

/* execve(2): a set-group-ID bit without the group's x means locking, not privileges. */
static bool is_set_id(const struct stat *st, struct writer w)
{
	if (!S_ISREG(st->st_mode))
		return false;
	if (st->st_mode & S_ISUID)
		return true;
	return (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	       !(st->st_uid == w.uid && st->st_gid == w.gid);
}

static int refuse(const struct sbx_path *path, const char *name, struct sbx_err *err)
{
	sbx_err_set(err,
		    "'%s' %s%s%s a set-id program: it cannot be granted writable; grant it "
		    "read-only, or a directory below or beside it",
		    path->resolved, name ? "holds '" : "", name ? name : "is", name ? "'," : "");
	return SBX_PATH_E_SET_ID;
}

static int check_entry(const struct sbx_path *path, struct writer w, int dir, const struct entry *e,
		       struct sbx_err *err)
{
	struct stat st;

	if (e->type != DT_REG && e->type != DT_UNKNOWN)
		return 0;
	/* A file that is gone by now does not count. Nor does a file whose mode we cannot read: we
	 * cannot run it either. */
	if (fstatat(dir, e->name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return 0;
	return is_set_id(&st, w) ? refuse(path, e->name, err) : 0;
}

static int check_directory(const struct sbx_path *path, struct writer w, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int dir = openat(path->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct entry) char buf[32768];
	unsigned int seen = 0;

	if (dir < 0) {
		int error = errno;

		sbx_err_set(err,
			    "'%s' cannot be read (%s); a directory that cannot be searched for "
			    "set-id programs is not granted writable",
			    path->resolved, strerror(error));
		if (error != EACCES && error != EPERM)
			return -error;
		return path->st.st_uid == w.uid ? SBX_PATH_E_SET_ID : SBX_PATH_E_ACCESS;
	}
	for (;;) {
		long n = syscall(SYS_getdents64, dir, buf, sizeof(buf));

		if (n <= 0)
			return n < 0 ? -errno : 0;
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(const void *)(buf + at);
			int r = check_entry(path, w, dir, e, err);

			if (r != 0 || ++seen >= ENTRIES_MAX)
				return r;
			at += e->reclen;
		}
	}
}

int sbx_path_check_set_id(const struct sbx_path *path, uid_t uid, gid_t gid, struct sbx_err *err)
{
	const struct writer w = { uid, gid };

	if (S_ISDIR(path->st.st_mode))
		return check_directory(path, w, err);
	return is_set_id(&path->st, w) ? refuse(path, NULL, err) : 0;
}
