/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_DECIDE_LIVE_H
#define SBX_POLICY_DECIDE_LIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/reason.h"
#include "policy/profile/profile.h"

/* Changes of a running sandbox by its operator (sbxctl net). The lists stand above those of the
 * profile and below the rules of the workspace. */
struct sbx_live {
	bool air_gapped; /* only what @allow lists leaves the sandbox */
	struct sbx_net_list allow, deny;
};

#define SBX_LIVE_ENTRIES_MAX 1000 /* of each list */
#define SBX_LIVE_FIELD_MAX   64

/* Parse @patterns (untrusted; not NULL) and append them to the list of @action (allow or deny). A
 * pattern that is there already is not added again. @field is the name of the list in the caller's
 * request: on an error, @ret_field gets "FIELD[i]" and @err says what to write instead. Entries
 * before the wrong one were added: the caller drops @live. 0; SBX_PROFILE_E_INVALID; -ENOMEM. */
int sbx_live_add(struct sbx_live *live, enum sbx_action action, const char *field,
		 const char *const *patterns, size_t n, char ret_field[SBX_LIVE_FIELD_MAX],
		 struct sbx_err *err);

/* Make *ret_live (not initialised before) of both lists; the fields are "allow_out" and "deny_out".
 * On success the caller frees it by sbx_live_fini(), otherwise nothing is left. As
 * sbx_live_add(). */
int sbx_live_set(bool air_gapped, const char *const *allow, size_t n_allow,
		 const char *const *deny, size_t n_deny, struct sbx_live *ret_live,
		 char ret_field[SBX_LIVE_FIELD_MAX], struct sbx_err *err);
void sbx_live_fini(struct sbx_live *live);

#endif
