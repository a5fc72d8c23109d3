/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_PUBLISH_H
#define SBX_LAUNCHER_RUN_PUBLISH_H

#include "launcher/run/run.h"

/* The step `publish`: a listener on the host for each published port, on its way to the broker in r->stage.sandbox_fds. Ports
 * that were the kernel's to choose are in the plan from here on. 0 or -errno with r->err. */
int sbx_publish_open(struct sbx_run *r);
void sbx_publish_close(struct sbx_run *r);
/* A line on stderr for each; with -q only for what the caller cannot know, a chosen port. */
void sbx_publish_tell(const struct sbx_plan *p);

#endif
