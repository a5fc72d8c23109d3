/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_LISTS_GIT_DIR_H
#define SBX_POLICY_LISTS_GIT_DIR_H

#include <stdbool.h>

/* By which of its entries is a directory known as a git directory (gitrepository-layout(5))? The
 * marks of all its entries, combined by |, are judged together. PURE. */

/* The mark of the entry @name, which may be a file, or a directory, or, where that is not known or
 * it is a symlink, either. 0: none. */
unsigned int sbx_git_dir_mark(const char *name, bool may_be_file, bool may_be_dir);

/* @strict: the directory is inside a git directory but not in modules/, so names of branches may
 * look like marks. */
bool sbx_git_dir_known(unsigned int marks, bool strict);

#endif
