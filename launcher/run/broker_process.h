/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_BROKER_PROCESS_H
#define SBX_LAUNCHER_RUN_BROKER_PROCESS_H

#include "launcher/run/run.h"

/* Spawn sbx-broker. 0 or -errno with r->err. */
int sbx_broker_start(struct sbx_run *r);
/* Hand over the policy and the sandbox's sockets. 0 or -errno with r->err. */
int sbx_broker_configure(struct sbx_run *r);
/* Ask for its last events. */
void sbx_broker_ask(struct sbx_run *r);
/* Take them in (it is asked, unless that was done). One that does not come to its last word is ended; one that
 * does waits: its end would cost processor time that what is left to do wants first. */
void sbx_broker_stop(struct sbx_run *r);
/* SIGKILL. */
void sbx_broker_kill(struct sbx_run *r);

#endif
