/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_BROKER_PROCESS_H
#define SBX_LAUNCHER_RUN_BROKER_PROCESS_H

#include "launcher/run/run.h"

/* Spawn sbx-broker. 0 or -errno with r->err. */
int sbx_broker_start(struct sbx_run *r);
/* Hand over the policy and the sandbox's sockets. 0 or -errno with r->err. */
int sbx_broker_configure(struct sbx_run *r);
/* Ask for its last events and take them in. Then it is ended, and has gone. */
void sbx_broker_stop(struct sbx_run *r);

#endif
