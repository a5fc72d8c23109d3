/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_EXEC_STDIO_H
#define SBX_LAUNCHER_EXEC_STDIO_H

#include "base/err.h"

/* Refuses descriptors that no command may have as standard input, output and error: @fds, which are
 * open. @program is the caller's, for the remedy. 0, or -EPERM with @err. */
int sbx_stdio_check(const int fds[3], const char *program, struct sbx_err *err);

#endif
