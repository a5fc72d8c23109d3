/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_KEYS_PROFILE_PARSE_H
#define SBX_POLICY_KEYS_PROFILE_PARSE_H

#include <stddef.h>

#include "base/err.h"
#include "base/span.h"
#include "policy/profile/profile.h"

/* Finds the profile @name, which an `extends` names. Returns its malloc'ed text (the caller's) and
 * in @ret_file the file's name for messages. NULL: there is no such profile. */
typedef char *(*sbx_profile_loader)(void *userdata, const char *name, size_t *ret_n, char *ret_file,
				    size_t n_file);

/* Parse and check. Every problem goes to @errs. `extends` is at most 8 deep; a cycle is an error.
 * 0; SBX_PROFILE_E_INVALID: @errs is not empty; -ENOMEM. */
int sbx_profile_parse(struct sbx_span yaml, const char *file, sbx_profile_loader load,
		      void *userdata, struct sbx_err_list *errs, struct sbx_profile **ret_profile);
struct sbx_profile *sbx_profile_free(struct sbx_profile *p);

int sbx_system_policy_parse(struct sbx_span yaml, const char *file, struct sbx_err_list *errs,
			    struct sbx_system_policy **ret_system);
/* The shipped blocked segments, command deny list and so on. NULL when out of memory. */
struct sbx_system_policy *sbx_system_policy_default(void);
struct sbx_system_policy *sbx_system_policy_free(struct sbx_system_policy *s);

/* Parse one --allow/--deny PATTERN and append it to the list (the most specific match wins in any
 * order). @what names the flag in the message. 0, SBX_PROFILE_E_INVALID, -ENOMEM. */
int sbx_net_list_add_pattern(struct sbx_net_list *list, const char *pattern, const char *what,
			     struct sbx_err *err);
/* Parse one --secret (sbx_secret_parse()) and append it. The same returns. */
int sbx_profile_add_secret_flag(struct sbx_profile *p, const char *text, struct sbx_err *err);
/* Parse one KEY=VALUE through the key table. 0, SBX_PROFILE_E_INVALID. */
int sbx_limit_set(struct sbx_limit_values *limits, const char *key_value, struct sbx_err *err);
/* Compare a value with its ceiling (0: none), naming both in @err. 0 or SBX_PROFILE_E_INVALID. */
int sbx_limits_check(const struct sbx_limit_values *ask, const struct sbx_limit_values *ceilings,
		     struct sbx_err *err);

/* Canonical YAML that parses to the same profile (extends already merged). malloc'ed. */
char *sbx_profile_print(const struct sbx_profile *p);

#endif
