/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROCESS_RUNTIME_DIR_H
#define SBX_LAUNCHER_PROCESS_RUNTIME_DIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Make the runtime directory @path (absolute) with what is above it, where it is missing. Nobody but root and
 * us may be able to replace it or anything on the way; @privileged: not our group either. 0 or -errno with
 * @err. */
int sbx_runtime_dir_make(const char *path, bool privileged, struct sbx_err *err);

/* Make a directory where nobody else can; with @mode, whatever our caller's umask is, because a sandbox's user may have to
 * pass. 0, also where something is there already, or -errno. */
int sbx_runtime_mkdir(const char *path, mode_t mode);

#endif
