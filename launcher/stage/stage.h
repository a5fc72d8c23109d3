/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_STAGE_STAGE_H
#define SBX_LAUNCHER_STAGE_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "ipc/messages.h"
#include "launcher/stage/init_process.h"
#include "launcher/stage/stage_config.h"

/*
 * The stage (stage_process.c) as the launcher sees it: the process that owns the sandbox's
 * namespaces. The launcher starts it, sends its config, reads its messages, and kills it. It is pid
 * 1 of the sandbox's pid namespace: with it every process in the sandbox ends.
 */
struct sbx_stage {
	pid_t pid;			 /* our child; 0: none */
	int fd;				 /* channel */
	/* write end of the pipe that bwrap reads the command's seccomp program from */
	int seccomp_fd;
	/* write end of the pipe that bwrap reads its arguments from */
	int args_fd;
	struct sbx_stage_config *config; /* shared with the stage; NULL: none */
	/* the sockets that the stage made, on their way to the broker */
	int sandbox_fds[SBX_N_BROKER_FDS];
	int fills[SBX_N_FILLS]; /* files to write when sbx-tls is ready; -1: none */
	bool begun;
	/* -errno of a stage that was begun before the plan; told when the plan is good */
	int error;

	/* values from the stage's messages (run/supervise.c) */
	bool ready, gone, mounts_checked;
	/* with mounts_checked: 0: every mount is locked; n: the plan's mount n - 1 is not */
	uint32_t open_mount;
	int root_fd; /* the sandbox's root directory, a path; -1: none */
	struct sbx_msg_stage_failed failed; /* step "": it did not fail */
};

/* How a stage is started. All is borrowed. */
struct sbx_stage_start {
	const struct sbx_facts *facts;
	const struct sbx_options *options;
	int cgroup_fd;	   /* directory of the cgroup that the sandbox is born in; -1: ours */
	bool host_network; /* attach cgroup: no network namespace is made */
};

/* There is no stage. */
void sbx_stage_init(struct sbx_stage *s);
/* Ends the stage, closes its descriptors and frees its config. The received values stay. */
void sbx_stage_fini(struct sbx_stage *s);

/* Starts the stage and opens @init's channel. Returns as soon as the process exists: the stage then
 * prepares the parts that need no plan, and waits for its config. Signals must be blocked. 0 or
 * -errno with @err. */
int sbx_stage_begin(struct sbx_stage *s, struct sbx_init_process *init,
		    const struct sbx_stage_start *how, struct sbx_err *err);

/* Lets the stage build @p. It answers with STAGE_READY and the sandbox's sockets, or with
 * STAGE_FAILED. @processes: the command's RLIMIT_NPROC; 0: as it is. 0 or -errno with @err. */
int sbx_stage_configure(struct sbx_stage *s, const struct sbx_plan *p,
			const struct sbx_setup *setup, const struct sbx_placeholders *placeholders,
			uint32_t processes, struct sbx_err *err);

/* Sends a message of one number, with @n_fds borrowed descriptors. Ignores a stage that has ended:
 * its channel shows that. */
void sbx_stage_send(const struct sbx_stage *s, enum sbx_msg_type type, uint32_t value,
		    const int *fds, size_t n_fds);

/* SIGKILL for the stage and, with it, everything in the sandbox. Does not wait. */
void sbx_stage_kill(const struct sbx_stage *s);
/* The same, and waits until all of these processes are gone. A second call does nothing. */
void sbx_stage_end(struct sbx_stage *s);

/* Closes the sandbox's sockets that were not handed on. */
void sbx_stage_close_sandbox_fds(struct sbx_stage *s);

#endif
