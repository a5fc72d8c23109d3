/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_VIEW_DRAFT_H
#define SBX_LAUNCHER_VIEW_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/host/exit_status.h"
#include "launcher/host/facts.h"
#include "launcher/host/lookup_ids.h"
#include "launcher/host/options.h"
#include "launcher/view/environment.h"
#include "launcher/view/sandbox_view.h"
#include "policy/decide/policy.h"
#include "policy/profile/profile.h"

/*
 * A plan while it is made: the given facts, and pointers to the parts that planning fills in. It
 * ends with planning; the plan (plan/plan.h) stays and is constant from then on.
 */

#define SBX_NOTES_MAX 32

/* One line each for stderr ("starting in ... because ..."). */
struct sbx_notes {
	size_t n;
	char *v[SBX_NOTES_MAX];
};
/* One more. 0 or -ENOMEM; past SBX_NOTES_MAX it is dropped. */
int sbx_notes_add(struct sbx_notes *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sbx_notes_fini(struct sbx_notes *n);

struct sbx_draft {
	/* Given. All pointers are borrowed. */
	const struct sbx_options *options;
	const struct sbx_facts *facts;
	const struct sbx_profile *profile; /* with the flags merged in */
	const char *profile_file;
	const struct sbx_system_policy *system;
	const struct sbx_tool_rules *tools; /* rules/tool_rules.h */
	const struct sbx_plan_sources *sources; /* protect/plan_sources.h */
	/* Filled in: parts of the plan. */
	struct sbx_view *view;
	struct sbx_environment *env;
	struct sbx_protections *protections; /* protect/protections.h */
	struct sbx_commands *commands;	     /* commands/commands.h */
	struct sbx_keep_target *keep;	     /* grants/keep_target.h */
	struct sbx_notes *notes;
	/* While planning looks at files as the sandbox's user; else NULL. */
	struct sbx_lookup_ids *lookup_ids;
};

/* Is the workspace an overlay, by profile or flag? */
bool sbx_draft_wants_overlay(const struct sbx_draft *d);
/* Does the sandbox stay in the host's network? */
bool sbx_draft_attaches(const struct sbx_draft *d);

/* PURE. The i-th of what the profile's list and then a flag's values ask for; NULL: there are no
 * more. *ret_origin is SBX_ORIGIN_PROFILE or _FLAG. */
const char *sbx_draft_asked(const struct sbx_str_list *profile, const char *const *flags,
			    size_t n_flags, size_t i, enum sbx_mount_origin *ret_origin);

#endif
