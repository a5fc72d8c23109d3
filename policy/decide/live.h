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
struct sbx_live_rule {
	enum sbx_action action;
	struct sbx_net_entry entry;
	/* Of requests to an allowed name, which sbx-tls then judges: "GET,HEAD /v1/a", methods
	 * ("*": all) and patterns of paths. NULL: every request. */
	char *requests;
	char *text; /* all of it, canonical */
};

struct sbx_live_rules {
	size_t n;
	struct sbx_live_rule *v;
};

struct sbx_live {
	bool air_gapped; /* only what @allow lists and rules allow leaves the sandbox */
	struct sbx_net_list allow, deny;
	struct sbx_live_rules rules; /* judged with the entries of the lists */
};

#define SBX_LIVE_ENTRIES_MAX  1000 /* of each list, and rules */
#define SBX_LIVE_FIELD_MAX    64
#define SBX_LIVE_REQUESTS_MAX 2048 /* bytes of what a rule says of requests */
#define SBX_LIVE_RULES_BYTES  32768 /* of all rules: the answers of a launcher have them, too */

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

/*
 * The same for rules, each of them one text:
 *
 *     allow|deny ENTRY [METHODS [PATH...]]
 *
 * with one space between the words. ENTRY is one of the lists'. METHODS is "GET,HEAD", or "*" for
 * all; PATH is a pattern of paths as in `access` of a profile. Both are for an allowed name alone.
 */
int sbx_live_add_rules(struct sbx_live *live, const char *field, const char *const *texts, size_t n,
		       char ret_field[SBX_LIVE_FIELD_MAX], struct sbx_err *err);
/* Copies @from to *ret_live. 0 or -ENOMEM, then nothing is left. */
int sbx_live_copy(const struct sbx_live *from, struct sbx_live *ret_live);
/* Does an entry or a rule allow anything? */
bool sbx_live_allows(const struct sbx_live *live);
/* Does a rule say something of requests? */
bool sbx_live_has_requests(const struct sbx_live *live);
/*
 * Can sbx-tls judge the requests that the rules speak of, beside the settled @profile? Not where
 * the profile itself judges the requests to such a name: its entry or the rule would be lifted.
 * Nor if two rules are for the same names and ports. With @first, the lists of the sandbox's
 * start, nor for a name that no such rule of them covers: the sandbox's authority is for those
 * alone. 0; SBX_PROFILE_E_INVALID with @err and "FIELD[i].methods" or ".paths" in @ret_field.
 */
int sbx_live_check_requests(const struct sbx_live *live, const struct sbx_live *first,
			    const struct sbx_profile *profile, const char *field,
			    char ret_field[SBX_LIVE_FIELD_MAX], struct sbx_err *err);

#endif
