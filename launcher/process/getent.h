/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROCESS_GETENT_H
#define SBX_LAUNCHER_PROCESS_GETENT_H

#include <stdbool.h>
#include <stddef.h>

/* The user database beyond /etc/passwd, by way of getent(1). */

#define SBX_GETENT	      "/usr/bin/getent"
#define SBX_GETENT_TIMEOUT_MS 10000
#define SBX_GETENT_KEYS_MAX   4
#define SBX_GETENT_TEXT_MAX   4096 /* with the NUL */
#define SBX_NSSWITCH	      "/etc/nsswitch.conf"

/* Is the passwd file the whole user database, according to @path, an nsswitch.conf(5)? False if
 * in doubt. */
bool sbx_nsswitch_files_only(const char *path);

/* Ask @program, `getent passwd` for @keys (names or decimal uids, not beginning with '-'), at most
 * SBX_GETENT_KEYS_MAX. 0 with a line of passwd(5) for each known key in @ret_text. -ENOENT, -EACCES
 * and the like: @program cannot be executed; -ETIMEDOUT; -EMSGSIZE: a longer answer, or NULs; -EIO:
 * it failed; or another -errno. The answer is as trusted as /etc/passwd: the host's administrator
 * configures both. */
int sbx_getent_passwd(const char *program, const char *const keys[], size_t n_keys, int timeout_ms,
		      char ret_text[SBX_GETENT_TEXT_MAX]);

#endif
