/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_DECIDE_RULES_H
#define SBX_POLICY_DECIDE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/profile/net_entry.h"
#include "policy/profile/profile.h"

/*
 * Stored rules, parsed: those of one workspace and those of the host (docs/RULES.md). A floor is a
 * deny that nothing lifts. Of the other rules the one with the lowest priority number that matches
 * decides; among those with the same number the most specific, and on a tie deny.
 */

enum sbx_rule_type {
	SBX_RULE_NETWORK = 0, /* the pattern is an entry of a list (net_entry.h) */
	SBX_RULE_TOOL,	      /* the pattern is an entry of commands.allow or .deny */
	SBX_N_RULE_TYPES,
};
const char *sbx_rule_type_str(enum sbx_rule_type t); /* "network", "tool" */

#define SBX_RULE_PRIORITY	  100 /* unless the rule says another */
#define SBX_RULE_PRIORITY_MAX	  1000000
#define SBX_RULES_MAX		  10000 /* of a workspace, with the host's */

struct sbx_rule {
	int64_t id; /* the row's */
	enum sbx_rule_type type;
	enum sbx_action action; /* allow or deny */
	uint32_t priority;	/* 0..SBX_RULE_PRIORITY_MAX; the lowest first */
	bool is_floor;		/* of the host, and denies */
	bool of_host;		/* for every workspace */
	char *pattern;		/* as written */
	struct sbx_net_entry entry; /* type NETWORK */
};

struct sbx_rules {
	size_t n;
	struct sbx_rule *v;
	bool default_set;		/* the workspace has a network_default_action */
	enum sbx_action default_action; /* then: allow or deny; it replaces the profile's */
};

/* Parse one row and append it; rows that are not enabled are not for here. 0;
 * SBX_PROFILE_E_INVALID with @err, which says what to write instead; -ENOMEM. */
int sbx_rules_add(struct sbx_rules *rules, int64_t id, enum sbx_rule_type type,
		  enum sbx_action action, int64_t priority, bool is_floor, bool of_host,
		  const char *pattern, struct sbx_err *err);
void sbx_rules_fini(struct sbx_rules *rules);

/* A rule that is not stored: it is judged as if it were (sbxctl explain --draft). */
#define SBX_RULE_DRAFT INT64_MAX /* its id; after every stored one, as a new row would be */
struct sbx_rule_draft {
	enum sbx_rule_type type;
	enum sbx_action action;
	bool is_floor;
	int64_t priority;
	int64_t replaces; /* the id of the rule whose place it takes; 0: none */
	const char *pattern;
};
/* Appends the draft, and removes the rule that it replaces. As sbx_rules_add(). */
int sbx_rules_add_draft(struct sbx_rules *rules, const struct sbx_rule_draft *d,
			struct sbx_err *err);

#endif
