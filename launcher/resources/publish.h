/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RESOURCES_PUBLISH_H
#define SBX_LAUNCHER_RESOURCES_PUBLISH_H

#include "ipc/messages.h"
#include "launcher/plan/plan.h"
#include "launcher/setup/setup.h"

/* The step `publish`: opens a listener on the host for each published port; @fds holds it until the
 * broker gets it. Writes the ports that the kernel chose into @s. 0 or -errno with @err. */
int sbx_publish_open(const struct sbx_plan *p, struct sbx_setup *s, int fds[SBX_N_BROKER_FDS],
		     struct sbx_err *err);
/* A hint about the error (-errno) of listening. Static text. */
const char *sbx_publish_remedy(int e);
void sbx_publish_close(int fds[SBX_N_BROKER_FDS]);
/* Prints a line on stderr for each published port; with -q only for a port that the kernel chose,
 * which the caller cannot know. */
void sbx_publish_tell(const struct sbx_plan *p, const struct sbx_setup *s);

#endif
