/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROCESS_EXEC_FAILED_H
#define SBX_LAUNCHER_PROCESS_EXEC_FAILED_H

/* In a child that could not become @path: says so on stderr with the errno @error (positive), and
 * ends with status 125. @hint, or "", is the end of the line. */
_Noreturn void sbx_exec_failed(const char *path, int error, const char *hint);
/* The same with status @status. */
_Noreturn void sbx_exec_failed_as(int status, const char *path, int error, const char *hint);

#endif
