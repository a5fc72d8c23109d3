/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_API_NET_RULE_H
#define SBX_DAEMON_API_NET_RULE_H

#include <jansson.h>

#include "base/err.h"
#include "daemon/api/field.h"

/*
 * A rule of one sandbox, {action, host|cidr, ports, protocol, methods, paths}, as the text of a
 * live rule (policy/decide/live.h), and back. PURE.
 */
#define SBX_N_NET_RULE_FIELDS 7
extern const struct sbx_field sbx_net_rule_fields[SBX_N_NET_RULE_FIELDS];
#define SBX_NET_RULES_MAX 256

/*
 * The texts of @rules, an array whose members sbx_fields_check() took, as a new array of strings.
 * NULL: *ret_field is the member that is wrong, "ABOVE[3].ports", with @err; or "" (no memory).
 */
json_t *sbx_net_rules_texts(const json_t *rules, const char *above,
			    char ret_field[SBX_FIELD_NAME_MAX], struct sbx_err *err);
/* The objects of @texts, strings that a launcher gave; one that is no rule is left out. NULL: no
 * memory. */
json_t *sbx_net_rules_objects(const json_t *texts);

#endif
