/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_PROCESS_IDMAP_H
#define SBX_SYS_PROCESS_IDMAP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Id-mapped mounts. */

struct sbx_idmap_pair {
	uid_t uid;
	gid_t gid;
};

/* A user namespace that maps @from, as files have them, to @to, as the kernel is to see them, and nothing else:
 * all other owners have no number on such a mount, and what they own cannot be written, whatever its mode
 * (mount_setattr(2)). Needs CAP_SETUID, CAP_SETGID and CAP_SYS_ADMIN. fd or -errno with @err. */
int sbx_idmap_userns(const struct sbx_idmap_pair *from, const struct sbx_idmap_pair *to, struct sbx_err *err);

/* A detached copy of what is mounted at @source_fd (O_PATH), @recursive: with all below it, mapped by
 * @userns_fd; nosuid, nodev, private, read-only unless @writable. Needs CAP_SYS_ADMIN over the file systems'
 * user namespaces. fd or -errno: -EINVAL where one of the file systems cannot, -EPERM where it may not (it is
 * id-mapped already, or another user namespace's). */
int sbx_idmap_clone(int source_fd, int userns_fd, bool recursive, bool writable);

/* PURE. Where a line of proc_pid_mountinfo(5) mounts, and the type of its file system; both point into @line, which is
 * taken apart. */
bool sbx_idmap_mountinfo_line(char *line, const char **ret_mount_point, const char **ret_type);

#endif
