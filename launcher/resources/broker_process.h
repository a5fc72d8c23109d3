/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RESOURCES_BROKER_PROCESS_H
#define SBX_LAUNCHER_RESOURCES_BROKER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "ipc/messages.h"
#include "launcher/plan/plan.h"
#include "launcher/setup/setup.h"

/* The broker's process. */
struct sbx_broker_process {
	pid_t pid;     /* the launcher's child; 0: none */
	int fd;	       /* channel; -1: none */
	bool ready;    /* it has its policy and serves */
	bool released; /* its events are the command's from here on */
	bool stopped;  /* it has sent its last event, and stats */
	bool gone;     /* its channel ended */
	struct sbx_msg_stats stats;
};

void sbx_broker_init(struct sbx_broker_process *b);
/* Ends the process and reaps it. */
void sbx_broker_fini(struct sbx_broker_process *b);

/* Starts sbx-broker, in the cgroup @cgroup_fd (-1: in the launcher's). 0 or -errno with @err. */
int sbx_broker_start(struct sbx_broker_process *b, const struct sbx_plan *p, int cgroup_fd,
		     struct sbx_err *err);
/* Hands over the policy and the sandbox's sockets @fds_take, which are closed here. 0 or -errno
 * with @err. */
int sbx_broker_configure(const struct sbx_broker_process *b, const struct sbx_plan *p,
			 const struct sbx_setup *s, int fds_take[SBX_N_BROKER_FDS],
			 struct sbx_err *err);
/* Asks for its last events. False: there is no broker. */
bool sbx_broker_ask_stop(const struct sbx_broker_process *b);

#endif
