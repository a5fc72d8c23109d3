/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_PROCESS_USERNS_H
#define SBX_SYS_PROCESS_USERNS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* Mapping the ids of a user namespace, and why a kernel refuses one. */

struct sbx_userns_facts {
	/* sysctls; -1: this kernel has no such setting */
	long long max_user_namespaces, unprivileged_userns_clone;
	long long apparmor_restrict_unprivileged_userns;
	/* A kind of namespace ("net") of which the sysctls allow none; NULL: all may be made. */
	const char *none_of;
};

void sbx_userns_facts_read(struct sbx_userns_facts *ret_facts);
/* PURE. One line: the cause of @error (an errno of clone or of writing a map) and the remedy.
 * Returns @buf. */
const char *sbx_userns_explain(int error, const struct sbx_userns_facts *facts, char *buf,
			       size_t n_buf);

/* In a child after clone(CLONE_NEWUSER): write setgroups (deny), gid_map and uid_map (one line
 * each, identity). @uid and @gid are the caller's effective ids outside. 0 or -errno with @err
 * naming cause and remedy. */
int sbx_userns_map_self(uid_t uid, gid_t gid, struct sbx_err *err);
/* The same for our child @pid, not yet reaped, by a launcher with CAP_SETUID and CAP_SETGID. The
 * child need not be dumpable. */
int sbx_userns_map_child(pid_t pid, uid_t uid, gid_t gid, struct sbx_err *err);
/* For the user namespace of child @pid: @uid inside is @outer_uid outside, @gid inside is
 * @outer_gid outside. The caller needs CAP_SETUID, CAP_SETGID and CAP_SYS_ADMIN. 0 or -errno
 * with @err. */
int sbx_userns_write_maps(pid_t pid, uid_t uid, uid_t outer_uid, gid_t gid, gid_t outer_gid,
			  struct sbx_err *err);

#endif
