/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RULES_RULES_LOAD_H
#define SBX_LAUNCHER_RULES_RULES_LOAD_H

#include "base/err.h"
#include "launcher/host/facts.h"
#include "policy/decide/rules.h"
#include "store/store.h"

/*
 * The rules in force for a sandbox of @workspace (NULL: of none), in one snapshot: the enabled ones
 * of the host and of the workspace, and the workspace's default. The shipped floors are left
 * out: the compiler holds them without rows. *ret_rules is filled in only on success; the caller
 * frees it (sbx_rules_fini()).
 *
 * 0; SBX_PROFILE_E_INVALID with @err, one line that names the row and the remedy: a row does not
 * parse; or -errno with @err: the store cannot be read. In both cases a sandbox must not start, and
 * a running one keeps the rules that it has.
 */
int sbx_rules_load(struct sbx_store *store, const char *workspace, struct sbx_rules *ret_rules,
		   struct sbx_err *err);

/* For planning: opens the store that @f names for this call. Without a database there are no rules,
 * and none is made. Results as above. */
int sbx_rules_read(const struct sbx_facts *f, const char *workspace, struct sbx_rules *ret_rules,
		   struct sbx_err *err);

#endif
