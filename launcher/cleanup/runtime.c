/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The directory RUNTIME/ID exists as long as its sandbox. It is made under another name, locked
 * (flock) and renamed: a directory RUNTIME/ID without a lock belongs to a dead launcher.
 */
#include "launcher/cleanup/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sandbox_id.h"
#include "base/text.h"
#include "launcher/cleanup/sweep.h"
#include "launcher/process/runtime_dir.h"
#include "sys/fs/file_lock.h"

void sbx_runtime_fini(struct sbx_runtime *r)
{
	r->fd = sbx_fd_close(r->fd);
}

static int lock_and_rename(struct sbx_runtime *r, int parent_fd, const char *temporary,
			   const char *id)
{
	int error;

	r->fd = openat(parent_fd, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->fd < 0) /* ENOENT: another start with this id has renamed it */
		return errno == ENOENT ? -ESTALE : -errno;
	error = sbx_file_lock(parent_fd, temporary, r->fd);
	if (error < 0)
		return error;
	if (renameat2(parent_fd, temporary, parent_fd, id, RENAME_NOREPLACE) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	return 0;
}

/* Make, lock and rename the directory. 0 or -errno: -EEXIST, -EWOULDBLOCK or -ESTALE if another
 * sandbox has the id, or had it a moment ago. */
static int claim(struct sbx_runtime *r, int parent_fd, const char *dir, const char *id)
{
	char temporary[SBX_ID_LEN + 8], path[sizeof(r->path)];
	int error;

	if (snprintf(path, sizeof(path), "%s/%s", dir, id) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	sbx_text_fit(temporary, sizeof(temporary), ".new-%s", id);
	if (mkdirat(parent_fd, temporary, 0700) < 0 && errno != EEXIST)
		return -errno;
	error = lock_and_rename(r, parent_fd, temporary, id);
	if (error < 0) {
		if (error != -EWOULDBLOCK) /* -EWOULDBLOCK: another start is about to rename it */
			unlinkat(parent_fd, temporary, AT_REMOVEDIR);
		return error;
	}
	memcpy(r->path, path, sizeof(path));
	return 0;
}

int sbx_runtime_make(struct sbx_runtime *r, const struct sbx_facts *f, const char *id,
		     struct sbx_err *err)
{
	const char *dir = f->runtime_dir;
	SBX_AUTO_CLOSE int parent_fd = -1;
	int error = sbx_runtime_dir_make(dir, f->privileged, err);

	if (error < 0)
		return error;
	parent_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (parent_fd < 0) {
		sbx_err_set(err, "cannot open %s: %s", dir, strerror(errno));
		return -errno;
	}
	error = claim(r, parent_fd, dir, id);
	if (error == -EEXIST || error == -EWOULDBLOCK || error == -ESTALE)
		sbx_err_set(err, "a sandbox with id %s is up already (leave out --id)", id);
	else if (error < 0)
		sbx_err_set(err, "cannot make %s/%s: %s", dir, id, strerror(-error));
	return error;
}

void sbx_runtime_remove(struct sbx_runtime *r)
{
	if (!r->path[0])
		return;
	sbx_sweep_remove_dir(AT_FDCWD, r->path);
	r->path[0] = '\0';
}
