/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_RUN_H
#define SBX_LAUNCHER_RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "launcher/cleanup/cleanup_process.h"
#include "launcher/cleanup/runtime.h"
#include "launcher/control/control.h"
#include "launcher/exec/execs.h"
#include "launcher/helpers/protect_helper.h"
#include "launcher/keep/keep_helper.h"
#include "launcher/learn/learn.h"
#include "launcher/learn/learn_execs.h"
#include "launcher/live/live.h"
#include "launcher/loop/watches.h"
#include "launcher/plan/plan.h"
#include "launcher/plan/step.h"
#include "launcher/process/terminal.h"
#include "launcher/record/record.h"
#include "launcher/resources/attach.h"
#include "launcher/resources/broker_process.h"
#include "launcher/resources/cgroup.h"
#include "launcher/resources/tls_process.h"
#include "launcher/review/reviewer.h"
#include "launcher/secrets/secret_helper.h"
#include "launcher/secrets/secrets.h"
#include "launcher/serve/exec.h"
#include "launcher/serve/usage.h"
#include "launcher/setup/setup.h"
#include "launcher/stage/init_process.h"
#include "launcher/stage/stage.h"

/*
 * The one context of a run. Every fd is -1 and every pid 0 until a step fills it in; an undo
 * accepts any state in between.
 */

enum sbx_outcome {
	SBX_OUTCOME_SETUP_FAILED = 0, /* nothing ran */
	SBX_OUTCOME_SELFTEST_FAILED,
	SBX_OUTCOME_DONE,	/* the command ended by itself */
	SBX_OUTCOME_TIMED_OUT,	/* wall_time */
	SBX_OUTCOME_OOM_KILLED, /* limits.memory */
	SBX_OUTCOME_KILLED,	/* by the operation kill of the control socket */
	SBX_OUTCOME_LOST,	/* a helper process ended under it, or broke its protocol */
};

struct sbx_run {
	const struct sbx_options *options; /* borrowed, like the next two */
	const struct sbx_facts *facts;
	const struct sbx_plan *plan; /* NULL while the stage is prepared */
	struct sbx_setup setup; /* values that the steps learn */

	struct sbx_runtime runtime;
	struct sbx_cleanup cleanup;
	struct sbx_recorder recorder;

	struct sbx_cgroup_run cgroup;
	struct sbx_attach_run attach;
	struct sbx_broker_process broker;
	struct sbx_secrets secrets; /* read before the first step, wiped when sbx-tls has them */
	struct sbx_secret_helper secret_helper;
	struct sbx_tls_process tls;

	struct sbx_protect_helpers protect;

	struct sbx_live_run live;
	struct sbx_reviewer reviewer;

	struct sbx_stage stage;
	struct sbx_init_process init; /* of the sandbox */
	struct sbx_execs execs;	      /* beside the first command */
	bool swept_later;     /* placeholders are left, so the runtime directory stays for the
			       * next sweep */

	struct sbx_keep_helper keep_helper; /* --keep */

	/* --scratch */
	int64_t scratch_files; /* files in the scratch home at the start; after the end, files
			        * that were added */

	struct sbx_terminals terminals; /* as they were before any process of the sandbox had
					 * them */

	int receipt_dir_fd; /* the directory of --receipt; -1: none asked for */
	int learn_dir_fd;   /* the directory of --learn; -1: none asked for */
	struct sbx_learn learn;
	struct sbx_learn_execs learn_execs;
	int scratch_fd;	    /* the scratch home, with --scratch */

	/* supervision */
	struct sbx_watches watches;
	int signal_fd, wall_fd;
	struct sbx_control *control; /* NULL: it is not open */
	struct sbx_serve_execs serve_execs;
	struct sbx_usage_counts usage_counts;
	uint64_t released_us; /* monotonic */
	uint64_t wall_ms;     /* from the release to the wall time; 0: there is none */
	uint64_t kill_at_us;  /* monotonic: SIGKILL after the wall time's grace; 0: not set */
	uint64_t heard;	      /* 1 << type of each message that came */
	int interrupted;      /* signal that ended the run before the release */
	bool released, wall_expired, command_exited, protocol_broken;
	bool frozen;	      /* by the operation freeze */
	bool killed;	      /* by the operation kill, that of uid killed_by; or tripped */
	bool tripped;	      /* by the breaker, and err says so */
	uid_t killed_by;
	int wait_status;      /* bwrap's, which ends as the command did; from command_exited on */

	uint64_t started_us;  /* monotonic */
	uint32_t step_us[SBX_N_STEPS]; /* time taken by each step's apply */
	enum sbx_outcome outcome;
	struct sbx_err err;   /* the reason, for the one line on stderr and the receipt */
};

/* @r is zero. */
void sbx_run_init(struct sbx_run *r, const struct sbx_options *o, const struct sbx_facts *f);
void sbx_run_fini(struct sbx_run *r);

#endif
