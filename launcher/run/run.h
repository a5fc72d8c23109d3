/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_RUN_H
#define SBX_LAUNCHER_RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/fold.h"
#include "ipc/messages.h"
#include "launcher/helpers/keep_copy.h"
#include "launcher/helpers/new_protected.h"
#include "launcher/plan/plan.h"
#include "launcher/plan/setup.h"
#include "launcher/plan/step.h"
#include "launcher/process/terminal.h"
#include "launcher/record/refusals.h"
#include "launcher/plan/bwrap_argv.h"
#include "launcher/run/attach.h"
#include "launcher/run/broker_process.h"
#include "launcher/run/cgroup.h"
#include "launcher/stage/stage_config.h"
#include "store/store.h"

/*
 * The one context of a run. Every fd is -1 and every pid 0 until a step fills it in; an undo accepts
 * any state in between.
 */

#define SBX_UNRESOLVED_MAX 10

enum sbx_outcome {
	SBX_OUTCOME_SETUP_FAILED = 0, /* nothing ran */
	SBX_OUTCOME_SELFTEST_FAILED,
	SBX_OUTCOME_DONE,             /* the command ended by itself */
	SBX_OUTCOME_TIMED_OUT,        /* wall_time */
	SBX_OUTCOME_KILLED,           /* by a signal to sbx-run before the release */
	SBX_OUTCOME_OOM_KILLED,       /* limits.memory */
	SBX_OUTCOME_LOST,             /* a helper process ended under it, or broke its protocol */
};

struct sbx_run {
	const struct sbx_options *options; /* borrowed, like the next two */
	const struct sbx_facts *facts;
	const struct sbx_plan *plan; /* NULL while the stage is prepared */
	struct sbx_setup setup; /* what the steps learn */

	/* runtime directory and guard (runtime.c) */
	char runtime_path[512]; /* "" before it exists */
	int runtime_fd;         /* the locked directory */
	int guard_fd;           /* write end of a pipe; the guard acts when it closes */
	pid_t guard_pid;
	bool guard_gone;
	bool guard_stays; /* when we are done: it has something to wait for */

	struct sbx_cgroup_run cgroup;
	struct sbx_attach_run attach;
	struct sbx_broker_process broker;

	/* caretaker.c */
	struct sbx_run_caretaker {
		pid_t pid;
		int fd; /* channel */
		uid_t writer;
		bool ready;  /* it is at work */
		bool gone;   /* it ended under us */
		bool looked; /* at everything, at the end */
	} caretakers[SBX_GRANTS_MAX];
	size_t n_caretakers;
	struct {
		unsigned int blocked, appeared, moved, kept;
	} n_notices;
	struct sbx_new *new_protected; /* what the check goes by; NULL: there is none */
	bool caretaker_gone; /* one of them, while the command ran */
	struct sbx_err planted; /* the command did not give up: the sandbox is to be ended, for this reason */

	/* stage (stage.c) */
	pid_t stage_pid;
	int stage_fd;                       /* channel */
	int stage_go_fd;                    /* read end: a byte when a privileged launcher has mapped its ids */
	struct sbx_orders *orders;          /* shared with the stage */
	char **bwrap_argv;
	int stage_error;                    /* -errno of sbx_stage_begin(), with err */
	int sandbox_fds[SBX_N_BROKER_FDS];  /* what the stage made, on its way to the broker */
	bool stage_begun, stage_ready, stage_gone;
	bool swept_later;     /* placeholders are left: the runtime directory stays, for who sweeps it */
	bool mounts_checked;
	uint32_t open_mount; /* then: 0: all mounts of the sandbox are locked; n: the plan's mount n - 1 is not */
	struct sbx_msg_stage_failed stage_failed;

	/* init */
	int init_fd, init_peer_fd; /* the peer goes to the child */
	int init_exe_fd;
	int seccomp_fd, seccomp_peer_fd; /* pipe: the command's seccomp program, for bwrap */
	/* Pipe: bwrap's arguments, from the stage. Ours to hold until the orders: a bwrap that saw the end of it, because
	 * the stage was given up, would complain before it is killed. */
	int args_fd, args_peer_fd;
	int init_pidfd; /* of what becomes the command, as the kernel vouches: for signals */
	pid_t pid1;  /* of the sandbox, where the kernel told: not for kill() */
	bool init_hello, has_verdicts, init_gone, exec_failed;
	struct sbx_msg_verdicts verdicts; /* none before has_verdicts */
	struct sbx_msg_exec_failed exec_error;

	/* --keep (keep.c) */
	pid_t keeper_pid;
	int keep_fd;  /* channel to the keeper */
	int upper_fd; /* the overlay's upper directory */
	struct sbx_keep_counts keep_counts;
	struct sbx_err keep_err; /* why not, when the command ran and it is not */

	/* --scratch */
	int64_t scratch_files; /* in the scratch home at the start; when it is let go, what came to be there */

	struct sbx_terminals terminals; /* as they were before anything of ours had them */

	int receipt_dir_fd; /* where --receipt goes; -1: none asked for */
	int scratch_fd;	    /* the scratch home, with --scratch */

	/* supervision */
	int signal_fd, wall_fd;
	int watch_error;      /* -errno: there is no init_pidfd */
	uint64_t kill_at_us;  /* monotonic: SIGKILL after the wall time's grace; 0: not set */
	int interrupted;      /* signal that ended the run before the release */
	bool released, wall_expired, command_exited, protocol_broken;
	int wait_status;      /* bwrap's, which ends as the command did; from command_exited on */

	/* records (record.c) */
	struct sbx_store *store;
	struct sbx_fold *fold;
	bool kept;	      /* --keep */
	bool row;             /* the sandbox has its row */
	bool store_failed;    /* said once */
	bool at_end;	      /* nothing runs any more: the database may be waited for */
	int64_t released_ms;  /* when, if the row does not say so yet */
	struct sbx_event *pending; /* folded events that are not written yet; malloc'ed, or NULL */
	size_t n_pending;
	uint64_t failing_since_us; /* monotonic: writing has failed from then on; 0: it has not */
	uint64_t retry_at_us; /* when it is tried again */
	struct sbx_refusals *refusals; /* NULL: none */
	uint64_t unrecorded[SBX_N_ACTIONS]; /* counts of those there was no room for */
	uint64_t flush_at_us; /* when sbx_record_flush() is due; 0: it is not */
	uint64_t tidy_at_us;  /* when the command is not a short one (sbx_record_tidy); 0: not, or done */

	uint64_t started_us;  /* monotonic */
	uint32_t step_us[SBX_N_STEPS]; /* time taken by each step's apply */
	enum sbx_outcome outcome;
	struct sbx_err err;   /* why, for the one line on stderr and the receipt */
};

/* @r is zero. */
void sbx_run_init(struct sbx_run *r, const struct sbx_options *o, const struct sbx_facts *f);
void sbx_run_fini(struct sbx_run *r);

/* Applies all steps (steps.c), waits for the command, undoes all steps. Returns the exit status of sbx-run. */
int sbx_run_carry_out(struct sbx_run *r);

/* The exit status that the outcome stands for (DESIGN section 5). */
int sbx_run_exit_status(const struct sbx_run *r);

#endif
