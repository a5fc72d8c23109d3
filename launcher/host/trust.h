/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_TRUST_H
#define SBX_LAUNCHER_HOST_TRUST_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "launcher/host/facts.h"

/*
 * Can another user change the file or directory at @path, or lead @path elsewhere? Other users are
 * all but root and the caller. The launcher looks with its own privileges; only caller_uid and
 * privileged of @f are read. 0: no. -EPERM with @err: yes. -errno with @err.
 */

/* A configuration file. @opened: what was opened by that name. @strict: its group may not write it
 * either. */
int sbx_trust_file(const struct sbx_facts *f, const char *path, const struct stat *opened,
		   bool strict, struct sbx_err *err);

/* A directory of sbx, which may be missing yet: then the way to it and its parent are judged. An
 * existing directory is judged by its user. @path is absolute. */
int sbx_trust_dir(const struct sbx_facts *f, const char *path, struct sbx_err *err);

#endif
