/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Id-mapped grants.
 *
 * A sandbox with a uid of the pool owns nothing on the host, and no file may belong to a uid that
 * the next sandbox gets. So its grants are mounted with their ids mapped: the owner and group of
 * the source are the sandbox's uid and gid inside, and files that the sandbox makes belong to them
 * outside. Files of other owners have no owner inside: they can be read as others may read them,
 * and not be written, whatever their mode.
 *
 * Uid 0 and gid 0 are never mapped. A sandbox may set the setuid bit of its file, and nosuid holds
 * on its own mount only: outside that would be a program that anybody can run as root. So a
 * writable grant of root's directory is refused; a read-only grant is bound unmapped, and read as
 * others may. The same holds for a setgid bit and the groups of the system (owner.h).
 *
 * With the mapping the launcher opens files that only the owner may open. So the way to the source
 * must be root's or that owner's own (struct sbx_path_steering): a symlink or a directory of a
 * third user could make the path lead to another user's files.
 *
 * The launcher makes the mounts, from the judged object, because it alone has privileges over the
 * file systems; the stage mounts them. Only an attempt shows whether a file system can be mapped,
 * so planning tries.
 */
#include "launcher/user/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/host/facts.h"
#include "launcher/user/owner.h"
#include "sys/process/idmap.h"

static int check_owner(const struct sbx_path *path, struct sbx_err *err)
{
	const struct stat *st = &path->st;

	if (st->st_uid == 0 || st->st_gid == 0) {
		sbx_err_set(err,
			    "'%s' belongs to %s root, for whom no sandbox may write: give it to a "
			    "user once "
			    "(chown -R NAME: '%s'; --user NAME runs as that one), or grant it "
			    "read-only (--ro-bind)",
			    path->resolved, st->st_uid == 0 ? "user" : "group", path->resolved);
		return SBX_IDMAP_E_UNABLE;
	}
	if (sbx_owner_check_group(path, err) != 0)
		return SBX_IDMAP_E_UNABLE;
	if (path->steering.by_others ||
	    (path->steering.by != 0 && path->steering.by != st->st_uid)) {
		sbx_err_set(err,
			    "'%s' belongs to uid %u, but others than root and that user can change "
			    "what is at that path: their directories, or symlinks, are on the way",
			    path->resolved, st->st_uid);
		return SBX_IDMAP_E_UNABLE;
	}
	return 0;
}

static bool can_be_mapped(const char *mount_point, int userns)
{
	SBX_AUTO_CLOSE int fd = open(mount_point, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	SBX_AUTO_CLOSE int copy = fd < 0 ? -1 : sbx_idmap_clone(fd, userns, false, false);

	return fd >= 0 && copy >= 0;
}

/* Name the file system that refused: that of the source, or one mounted below it. */
static void explain(const struct sbx_path *path, int userns, int error, struct sbx_err *err)
{
	SBX_AUTO_FCLOSE FILE *file = fopen("/proc/self/mountinfo", "re");
	char where[PATH_MAX] = "", type[64] = "unknown";
	SBX_AUTO_FREE char *line = NULL;
	const char *point, *fs;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		if (!sbx_idmap_mountinfo_line(line, &point, &fs))
			continue;
		if (sbx_path_in_prefix(path->resolved, point) && strlen(point) >= strlen(where)) {
			sbx_text_cut(where, sizeof(where), "%s", point);
			sbx_text_cut(type, sizeof(type), "%s", fs);
		} else if (sbx_path_in_prefix(point, path->resolved) &&
			   !can_be_mapped(point, userns)) {
			sbx_text_cut(where, sizeof(where), "%s", point);
			sbx_text_cut(type, sizeof(type), "%s", fs);
			break;
		}
	}
	sbx_err_set(err,
		    "'%s' cannot be id-mapped to the sandbox's user: %s (%s) %s; name its owner "
		    "with --user, or let the profile's mount say `idmap: read-only`",
		    path->resolved, where, type,
		    error == -EINVAL  ? "does not support that"
		    : error == -EPERM ? "is id-mapped already, or not ours to map"
				      : strerror(-error));
}

/* With the launcher's own ids. */
static int make(const struct sbx_facts *f, const struct sbx_path *path, bool writable, int *ret_fd,
		struct sbx_err *err)
{
	const struct sbx_idmap_pair owner = { path->st.st_uid, path->st.st_gid },
				    inside = { f->uid, f->gid };
	SBX_AUTO_CLOSE int userns = sbx_idmap_userns(&owner, &inside, err);
	int fd;

	if (userns < 0)
		return SBX_IDMAP_E_UNABLE;
	fd = sbx_idmap_clone(path->fd, userns, true, writable);
	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	explain(path, userns, fd, err);
	return SBX_IDMAP_E_UNABLE;
}

int sbx_idmap_grant(const struct sbx_draft *d, const struct sbx_path *path, bool writable,
		    int *ret_fd, struct sbx_err *err)
{
	int r, back;

	*ret_fd = -1;
	if (!writable && path->st.st_uid == 0)
		return 0;
	if (d->lookup_ids)
		sbx_lookup_ids_restore(d->lookup_ids);
	r = check_owner(path, err);
	if (r == 0)
		r = make(d->facts, path, writable, ret_fd, err);
	back = d->lookup_ids ? sbx_lookup_ids_use_sandbox(d->facts, d->lookup_ids) : 0;
	return back < 0 ? back : r;
}
