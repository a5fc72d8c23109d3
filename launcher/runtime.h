/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUNTIME_H
#define SBX_LAUNCHER_RUNTIME_H

#include "launcher/run.h"

/* Make the sandbox's runtime directory (mode 0700, locked) and start its guard; sweep what dead
 * launchers left. 0 or -errno with r->err (-EEXIST: a sandbox with this id is up). */
int sbx_runtime_make(struct sbx_run *r);

/* Remove the directory and send the guard home. */
void sbx_runtime_remove(struct sbx_run *r);

#endif
