/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RULES_TOOL_RULES_H
#define SBX_LAUNCHER_RULES_TOOL_RULES_H

#include <stddef.h>

#include "policy/decide/rules.h"

/*
 * The tool rules, in the order in which they decide: floors, then by priority; among those with the
 * same priority a plain entry before a pattern, then deny before allow. The first one that matches
 * a command decides, above the lists of the profile and below the deny list of the system policy.
 */
struct sbx_tool_rules {
	size_t n;
	const struct sbx_rule **v;	 /* owned; the rules are borrowed */
	struct sbx_str_list allow, deny; /* the patterns, borrowed like the rules */
};

/* 0 or -ENOMEM. @rules must outlive *ret_tools. */
int sbx_tool_rules_init(struct sbx_tool_rules *ret_tools, const struct sbx_rules *rules);
/* Accepts a zero one. */
void sbx_tool_rules_fini(struct sbx_tool_rules *tools);

#endif
