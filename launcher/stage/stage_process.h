/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_STAGE_STAGE_PROCESS_H
#define SBX_LAUNCHER_STAGE_STAGE_PROCESS_H

#include <stdbool.h>

#include "base/err.h"
#include "launcher/host/facts.h"
#include "launcher/stage/stage_config.h"

/* The step of STAGE_FAILED whose reason the launcher finds: the limits of the host's user namespace
 * cannot be seen in the stage's own. */
#define SBX_STAGE_NETWORK "network namespace"

/* Everything that the stage gets from the launcher. Only these descriptors, and 0, 1 and 2, stay
 * open in it. */
struct sbx_stage_process {
	const struct sbx_facts *facts;
	const struct sbx_stage_config *config;
	char **bwrap_argv;
	bool host_network; /* attach cgroup: stay in the host's network namespace */

	int channel;	  /* to the launcher */
	/* read end: a byte when a privileged launcher has mapped our ids; -1: we map them */
	int go_fd;
	int init_fd;	  /* for bwrap: init's end of its channel, */
	int exec_fd;	  /* and of that for further commands, */
	int init_exe_fd;  /* the program sbx-init, */
	int seccomp_fd;	  /* the read end of the command's seccomp program, */
	int args_read_fd; /* and of the arguments */
	int args_fd;	  /* write end of bwrap's arguments */
};

/* The stage, from its first instruction in the new namespaces to its end. */
_Noreturn void sbx_stage_process_main(struct sbx_stage_process *p);

/* Tells the launcher that @step failed with @error (-errno), and ends the process. */
_Noreturn void sbx_stage_process_fail(const struct sbx_stage_process *p, int error,
				      const char *step, const struct sbx_err *err);

#endif
