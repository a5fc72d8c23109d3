/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_TRUST_H
#define SBX_LAUNCHER_HOST_TRUST_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "launcher/host/facts.h"

/*
 * Can another user change what is at @path, or lead @path elsewhere? Other users are all but root and the caller. Looked
 * at with our own rights; only caller_uid and privileged of @f are read. 0: no. -EPERM with @err: yes. -errno with @err.
 */

/* A configuration file. @opened: what was opened by that name. @strict: its group may not write it either. */
int sbx_trust_file(const struct sbx_facts *f, const char *path, const struct stat *opened, bool strict,
		   struct sbx_err *err);

/* A directory of ours, which may be yet to make; what it is itself is for who makes it to say. Absolute. */
int sbx_trust_dir(const struct sbx_facts *f, const char *path, struct sbx_err *err);

#endif
