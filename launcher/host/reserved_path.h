/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_RESERVED_PATH_H
#define SBX_LAUNCHER_HOST_RESERVED_PATH_H

#include <stdbool.h>

#define SBX_RESERVED_MADE "that part of the sandbox is made by sbx-run itself"

/* PURE. Why nothing else can be at @target (absolute and normalised) in a sandbox; NULL: something
 * can. @host_root: the sandbox has the host's /usr. */
const char *sbx_reserved_path_problem(const char *target, bool host_root);

#endif
