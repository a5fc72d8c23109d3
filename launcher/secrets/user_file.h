/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SECRETS_USER_FILE_H
#define SBX_LAUNCHER_SECRETS_USER_FILE_H

#include <limits.h>
#include <stddef.h>

#include "launcher/host/facts.h"

/* Makes "~/..." absolute, and leaves other paths as they are. 0 or -ENAMETOOLONG. */
int sbx_user_file_path(const char *path, const struct sbx_facts *f, char ret_path[PATH_MAX]);

/* Both read a regular file: at most @max bytes into @buf, which has room for one more. 0; -EFBIG:
 * it is longer; -ENOTSUP or -EISDIR: it is no regular file; -errno. */

/* Of the user's, absolute or "~/...", with the ids of the sandbox's user. */
int sbx_user_file_read(const char *path, const struct sbx_facts *f, char *buf, size_t max,
		       size_t *ret_n);
/* With the ids of the launcher. */
int sbx_own_file_read(const char *path, char *buf, size_t max, size_t *ret_n);

/* The text of such an error, for a message: "it is no regular file". */
const char *sbx_user_file_strerror(int e);

#endif
