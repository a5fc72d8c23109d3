/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_LIVE_LIVE_H
#define SBX_LAUNCHER_LIVE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "ipc/messages.h"
#include "launcher/loop/watches.h"
#include "launcher/plan/plan.h"
#include "launcher/record/recorder.h"
#include "launcher/resources/attach.h"
#include "launcher/resources/broker_process.h"
#include "launcher/setup/setup.h"
#include "launcher/stage/stage.h"
#include "policy/decide/policy.h"

/*
 * Changes of a running sandbox's policy, by generations (docs/architecture/run.md, Live changes).
 *
 * A change is compiled and checked; a bad one is refused whole, and the old policy holds. Then the
 * kernel's rules follow, then the broker, which cuts the flows that are not allowed any more; then
 * the row; then the asker hears. Changes are made one at a time, in the order in which they came. A
 * change that was begun and cannot be finished ends the sandbox: half a policy is no policy.
 */

/* The policy that holds now, and what it was made of. */
struct sbx_live_state {
	uint64_t generation;
	struct sbx_live live; /* owned; each entry's text is as it was written */
	const struct sbx_profile *profile; /* borrowed, like the next two */
	const struct sbx_system_policy *system;
	const struct sbx_rules *rules; /* NULL: none */
	/* heap, owned: the ones of these three that were read again; NULL: the plan's, and in
	 * `next` also if they stay */
	struct sbx_profile *own_profile;
	struct sbx_system_policy *own_system;
	struct sbx_rules *own_rules;
	void *blob;			/* owned */
	size_t n_blob;
	struct sbx_policy *policy; /* owned; borrows the blob */
};

enum sbx_live_what {
	SBX_LIVE_NETWORK = 0, /* the members below */
	SBX_LIVE_RULES,	      /* the rules of the workspace and the host are read again */
	SBX_LIVE_ALL,	      /* the profile and the system policy too; but for the network's lists
			       * nothing in them may have changed */
};

/* A change that is asked for. Everything is borrowed for the call. */
struct sbx_live_request {
	enum sbx_live_what what;
	bool has_air_gapped, air_gapped;
	/* Replace the live lists; NULL: as they are. Entries as for --allow and --deny. */
	const struct sbx_str_list *allow_out, *deny_out;
	const struct sbx_str_list *add_allow, *add_deny; /* are added; NULL: none */
	uint64_t if_generation; /* refused if the policy is of another one by then; 0: of any */
	const struct sbx_str_list *rules; /* replace the live rules; NULL: as they are (live.h) */
};

enum sbx_live_code {
	SBX_LIVE_DONE = 0,
	SBX_LIVE_INVALID, /* the request, by err and field: nothing was changed */
	SBX_LIVE_DENIED,  /* the policy of the host forbids it: nothing was changed */
	SBX_LIVE_BUSY,	  /* too many changes wait */
	SBX_LIVE_CHANGED, /* not of if_generation: nothing was changed */
	SBX_LIVE_GONE,	  /* the sandbox ends */
	SBX_LIVE_FAILED,  /* by err; nothing was changed, or the sandbox is ended */
};

struct sbx_live_answer {
	enum sbx_live_code code;
	uint64_t generation; /* DONE: the new one */
	uint32_t n_cut;	     /* DONE: flows that were cut */
	struct sbx_err err;  /* else: one line: what, where, what to do */
	char field[SBX_LIVE_FIELD_MAX]; /* "deny_out[2]"; "" none */
};

/* Called once for each change, with what it borrows for the call. */
typedef void (*sbx_live_done_fn)(void *userdata, const struct sbx_live_answer *answer);
/* Called for each message of the list of flows; the last has @page->last. NULL: there is no answer
 * (the sandbox ends). */
typedef void (*sbx_live_flows_fn)(void *userdata, const struct sbx_msg_flow_list *page);

/* The parts of the run that a change works on; all are borrowed and outlive it. */
struct sbx_live_parts {
	const struct sbx_plan *plan;
	struct sbx_setup *setup; /* nft: the ruleset that the kernel has */
	struct sbx_watches *watches;
	struct sbx_recorder *recorder;
	struct sbx_stage *stage;
	struct sbx_broker_process *broker;
	struct sbx_attach_run *attach;
};

struct sbx_live_change; /* live.c: one that waits, or is under way */
struct sbx_live_asker;

enum sbx_live_step {
	SBX_LIVE_IDLE = 0,
	SBX_LIVE_KERNEL, /* the kernel's rules are being changed */
	SBX_LIVE_BROKER, /* the broker has, or is to get, the policy */
};

/* The rules in the database (live_follow.c). */
struct sbx_live_follow {
	struct sbx_watch *watch;
	bool asked; /* a change to them is under way */
	bool known; /* the next two are those of the last look */
	int64_t data_version;
	uint64_t rules_stamp;
	char told[SBX_ERR_MSG_MAX]; /* why they were refused last; "": they were not */
};

struct sbx_live_run {
	struct sbx_live_parts parts;
	struct sbx_live_state state;
	struct sbx_live_state next;	      /* of the change under way */
	struct sbx_live_change *first, *last; /* the first is under way, unless `step` is IDLE */
	size_t n_changes;
	enum sbx_live_step step;
	bool kernel_changed; /* by the change under way */
	bool sent;	     /* BROKER: the policy */
	struct sbx_nft_input ruleset; /* KERNEL: the one that the stage was sent */
	struct sbx_nft_cidr *cidrs, *cidrs_next; /* of setup->nft and of `ruleset`; heap */
	struct sbx_live_asker *askers, *last_asker; /* of flows; the first is being answered */
	size_t n_askers;
	struct sbx_watch *watch; /* of the step */
	uint64_t until_us;	 /* monotonic: when the step must be done */
	struct sbx_live_follow follow;
	bool started, ended;
	/* A change was begun and cannot be finished: the sandbox must end. err says why. */
	bool broken;
	struct sbx_err err;
};

/* @l is zero: no change is taken. */
void sbx_live_run_init(struct sbx_live_run *l);
/* The command was released: changes are made from here on. Those that came before waited. 0 or
 * -ENOMEM. */
int sbx_live_start(struct sbx_live_run *l, const struct sbx_live_parts *parts);
/* The sandbox ends: askers that wait hear GONE. */
void sbx_live_end(struct sbx_live_run *l);
void sbx_live_run_fini(struct sbx_live_run *l);

/* Asks for a change. @done is called once, maybe from inside this call. */
void sbx_live_change(struct sbx_live_run *l, const struct sbx_live_request *request,
		     sbx_live_done_fn done, void *userdata);
/* Asks for the list of open flows. @fn is called for each part of it, maybe from inside this
 * call. */
void sbx_live_flows(struct sbx_live_run *l, sbx_live_flows_fn fn, void *userdata);

/* Messages, judged by the launcher's loop (run/supervise.c). 0, or -1: nothing asked for it. */
int sbx_live_heard_policy(struct sbx_live_run *l, const struct sbx_msg_policy_done *m);
int sbx_live_heard_flows(struct sbx_live_run *l, const struct sbx_msg_flow_list *m);
int sbx_live_heard_ruleset(struct sbx_live_run *l, const struct sbx_msg_ruleset_done *m);

#endif
