/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RULES_RULE_CHECK_H
#define SBX_LAUNCHER_RULES_RULE_CHECK_H

#include <stdbool.h>

#include "base/err.h"
#include "store/store_rules.h"

/* Rules before they are stored. */

/* Would planning take this rule? The pattern is parsed as planning does. 0;
 * SBX_PROFILE_E_INVALID with @err, which begins with the field; -ENOMEM. */
int sbx_rule_check(const struct sbx_store_rule *r, struct sbx_err *err);

/* Is it a floor that the compiler holds without its row? */
bool sbx_rule_is_shipped(const struct sbx_store_rule *r);

/* The shipped floor that denies all that the network pattern @allow would allow, or NULL: such an
 * entry changes nothing. */
const char *sbx_rule_floor_over(const char *allow);

/* The reason against a text, or NULL. */
const char *sbx_rule_check_type(const char *s);
const char *sbx_rule_check_action(const char *s);
const char *sbx_rule_check_priority(const char *s);

#endif
