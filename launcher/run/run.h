/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_RUN_H
#define SBX_LAUNCHER_RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/fold.h"
#include "ipc/messages.h"
#include "launcher/helpers/keep_helper.h"
#include "launcher/helpers/protect_helper.h"
#include "launcher/plan/plan.h"
#include "launcher/process/terminal.h"
#include "launcher/record/refusals.h"
#include "launcher/plan/bwrap_argv.h"
#include "launcher/stage/stage_config.h"
#include "store/store.h"
#include "sys/cgroup/cgroup.h"

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
	struct sbx_plan *plan; /* NULL while the stage is prepared */

	/* runtime directory and guard (runtime.c) */
	char runtime_path[512]; /* "" before it exists */
	int runtime_fd;         /* the locked directory */
	int guard_fd;           /* write end of a pipe; the guard acts when it closes */
	pid_t guard_pid;
	bool guard_gone;
	bool guard_stays; /* when we are done: it has something to wait for */

	/* cgroup (cgroup.c) */
	struct sbx_cgroup cgroup;
	struct sbx_cgroup_usage usage;
	enum sbx_cgroup_source cgroup_source;
	char cgroup_path[SBX_CGROUP_PATH_MAX + 64];
	uint32_t limited; /* SBX_CGROUP_BITs of the limits that the cgroup holds */

	/* attach cgroup (attach.c) */
	struct sbx_run_attach {
		int nl_fd;	  /* nfnetlink; kept open: closing one after a removal waits */
		int watch_fd;	  /* the kernel tells changes of rulesets */
		int probe_fds[2]; /* listeners that the self-test must not reach */
		int fds[SBX_N_BROKER_FDS]; /* for the broker, until the stage has its own */
		struct sbx_nft_ruleset *rules;
		uint32_t level;
		uint64_t cgroup_id;
		struct sbx_attach_room room; /* for pins */
		bool added;	 /* the rules may be there */
		bool changed;	 /* by somebody else: the sandbox was ended */
		bool complained; /* about pins, once */
	} attach;

	struct sbx_protect_helpers protect;

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

	/* broker */
	pid_t broker_pid;
	int broker_fd;
	bool broker_ready, broker_released, broker_gone, broker_stopped;
	struct sbx_msg_stats stats;

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

	struct sbx_keep_helper keep_helper; /* --keep */

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
	uint32_t step_us[16]; /* time taken per step, by index into the table */
	enum sbx_outcome outcome;
	struct sbx_err err;   /* why, for the one line on stderr and the receipt */
};

/* @r is zero. */
void sbx_run_init(struct sbx_run *r, const struct sbx_options *o, const struct sbx_facts *f);
void sbx_run_fini(struct sbx_run *r);

/* The steps (steps.c): apply in order; on failure, and at the end, undo in reverse. */
struct sbx_step {
	const char *name;
	int (*apply)(struct sbx_run *r); /* 0, or -errno with r->err set */
	void (*undo)(struct sbx_run *r); /* NULL: nothing to undo */
};
extern const struct sbx_step sbx_steps[];
extern const size_t sbx_n_steps;

/* Apply all, wait for the command, undo all. Returns the exit status of sbx-run. */
int sbx_run_carry_out(struct sbx_run *r);

/* The exit status that the outcome stands for (DESIGN section 5). */
int sbx_run_exit_status(const struct sbx_run *r);

#endif
