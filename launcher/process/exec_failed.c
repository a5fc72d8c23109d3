/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/process/exec_failed.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOT_SET_UP 125

_Noreturn void sbx_exec_failed(const char *path, int error, const char *hint)
{
	sbx_exec_failed_as(NOT_SET_UP, path, error, hint);
}

_Noreturn void sbx_exec_failed_as(int status, const char *path, int error, const char *hint)
{
	dprintf(STDERR_FILENO, "sbx-run: cannot execute %s: %s%s\n", path, strerror(error), hint);
	_exit(status);
}
