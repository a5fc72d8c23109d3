/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_USERNS_H
#define SBX_SYS_USERNS_H

#include <stddef.h>

/* Why a kernel refuses user namespaces. For src/sys only. */

struct sbx_userns_facts {
	/* sysctls; -1: this kernel has no such setting */
	long long max_user_namespaces, unprivileged_userns_clone;
	long long apparmor_restrict_unprivileged_userns;
	/* The kind of namespace other than user of which none may be made ("net"); NULL: none such. */
	const char *none_of;
};

void sbx_userns_facts_read(struct sbx_userns_facts *ret_facts);
/* PURE. One line: the cause of @error (an errno of clone or of writing a map) and the remedy.
 * Returns @buf. */
const char *sbx_userns_explain(int error, const struct sbx_userns_facts *facts, char *buf,
			       size_t n_buf);

#endif
