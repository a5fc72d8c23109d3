/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_PATH_NORMALISE_H
#define SBX_SYS_FS_PATH_NORMALISE_H

/* PURE. The path without doubled and trailing slashes and "." parts. Other bytes are as they are.
 * malloc'ed; NULL when it is relative, has a "..", is then too long for the kernel (PATH_MAX,
 * NAME_MAX for each part), or there is no memory. */
char *sbx_path_normalise(const char *path);
/* The same for a pattern, of any length: a pattern may be longer than the paths that it matches. */
char *sbx_path_normalise_pattern(const char *path);

#endif
