/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_UNRESOLVED_H
#define SBX_LAUNCHER_UNRESOLVED_H

#include "launcher/run.h"

/* An event: where it says that an allowed name did not resolve, say so on stderr, once for each name and for the
 * first SBX_UNRESOLVED_MAX names of a run. The client inside cannot tell that from a server that is down. */
void sbx_unresolved_tell(struct sbx_run *r, const struct sbx_event *e);
void sbx_unresolved_free(struct sbx_run *r);

#endif
