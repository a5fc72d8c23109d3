/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_LIVE_LIVE_INTERNAL_H
#define SBX_LAUNCHER_LIVE_LIVE_INTERNAL_H

#include "launcher/live/live.h"

/* Shared by the files of this room. */

struct sbx_live_change {
	struct sbx_live_change *next;
	enum sbx_live_what what;
	uint64_t if_generation;
	bool has_air_gapped, air_gapped;
	bool has_allow, has_deny, has_rules; /* the lists replace */
	struct sbx_str_list allow, deny, add_allow, add_deny, rules;
	sbx_live_done_fn done;
	void *userdata;
};

/* --- live_policy.c --- */

/* Copies the policy of the plan, generation 1. 0 or -ENOMEM. */
int sbx_live_state_first(struct sbx_live_state *s, const struct sbx_plan *p);
void sbx_live_state_fini(struct sbx_live_state *s);
/* Makes the policy that @c asks for. 0, or a code with a->err and a->field; *ret_next is zero
 * then. */
enum sbx_live_code sbx_live_state_next(const struct sbx_live_run *l,
				       const struct sbx_live_change *c,
				       struct sbx_live_state *ret_next, struct sbx_live_answer *a);

/* @next holds from here on, in the place of @state; @next is zero then. */
void sbx_live_state_replace(struct sbx_live_state *state, struct sbx_live_state *next);

/* --- live_reload.c --- */

/* Read the rules, or profile, system policy and rules again, into @next. 0, or a code with a->err;
 * what was read is freed with @next in any case. */
enum sbx_live_code sbx_live_read_rules(const struct sbx_live_run *l, struct sbx_live_state *next,
				       struct sbx_live_answer *a);
enum sbx_live_code sbx_live_read_all(const struct sbx_live_run *l, struct sbx_live_state *next,
				     struct sbx_live_answer *a);

/* --- live_follow.c --- */

/* Writes the state that holds, after the change @c, to the row, with an event. */
void sbx_live_record(const struct sbx_live_run *l, const struct sbx_live_change *c);
/* Follows the rules in the database. 0 or -ENOMEM. */
int sbx_live_follow_start(struct sbx_live_run *l);

/* --- live_kernel.c: the kernel's rules --- */

enum sbx_live_kernel {
	SBX_LIVE_KERNEL_SAME = 0, /* nothing to do */
	SBX_LIVE_KERNEL_DONE,
	SBX_LIVE_KERNEL_UNDER_WAY, /* sbx_live_heard_ruleset() will be called */
	SBX_LIVE_KERNEL_REFUSED,   /* nothing was changed; @err says why */
	SBX_LIVE_KERNEL_BROKEN,	   /* something was changed; @err says why */
};

/* Before the broker gets l->next: closes what it closes, and may open what only leads to the
 * broker. */
enum sbx_live_kernel sbx_live_kernel_close(struct sbx_live_run *l, struct sbx_err *err);
/* The stage has changed the ruleset. */
void sbx_live_kernel_changed(struct sbx_live_run *l);
/* The broker has l->next: opens what it opens. *ret_cut: flows that were ended here. */
enum sbx_live_kernel sbx_live_kernel_open(struct sbx_live_run *l, uint32_t *ret_cut,
					  struct sbx_err *err);

#endif
