/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROCESS_RUNTIME_DIR_H
#define SBX_LAUNCHER_PROCESS_RUNTIME_DIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Make the runtime directory @path (absolute) and the directories above it, unless they exist.
 * Nobody but root and this user may be able to replace any of them; @privileged: this user's
 * group may not either. 0 or -errno with @err. */
int sbx_runtime_dir_make(const char *path, bool privileged, struct sbx_err *err);

/* Make a directory in one that nobody else can write. It gets @mode whatever the umask is: a
 * sandbox's user may have to pass through it. 0, also if @path exists already, or -errno. */
int sbx_runtime_mkdir(const char *path, mode_t mode);

/* Does sandbox @id have its directory below @path? True also if that cannot be found out. A
 * sandbox has its directory before its row is inserted, and until the row has its final state. */
bool sbx_runtime_dir_may_have(const char *path, const char *id);

#endif
