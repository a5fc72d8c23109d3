/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_FACTS_USER_H
#define SBX_LAUNCHER_HOST_FACTS_USER_H

#include <sys/types.h>

#include "base/err.h"
#include "launcher/host/facts.h"
#include "launcher/host/options.h"

/* The users of the sandbox and of its broker: a part of the facts. */

/* The home, in the sandbox only, of a user without a home on the host. */
#define SBX_THROWAWAY_HOME "/home/sandbox"

/* One line of the user database. Strings are malloc'ed. */
struct sbx_user {
	uid_t uid;
	gid_t gid;
	char *name, *home, *shell;
};
/* 0, 1 when there is no such user, -errno. /etc/passwd is read first; then getent is asked, which
 * costs a process. */
int sbx_user_by_uid(uid_t uid, struct sbx_user *ret_user);
/* The user in @text, lines of passwd(5), with the name @name or, where that is NULL, with @uid.
 * getent may answer with other users: it takes a name of digits for a uid, and a name service may
 * ignore case. 0, 1 when there is none (lines that are not passwd(5)'s are passed over), -ENOMEM.
 */
int sbx_user_in_text(const char *text, const char *name, uid_t uid, struct sbx_user *ret_user);
void sbx_user_fini(struct sbx_user *u);

/* Fill the uid, gid, user_name, home, shell and broker fields; uids of @f->uid_pool are leased
 * there.
 * @f->caller_uid, privileged and id are set already; without a pool the default range serves,
 * unleased.
 * @sudo_uid and @sudo_gid are the variables' values, or NULL. 0, 1 with @err, -errno. */
int sbx_facts_user(const struct sbx_options *o, const char *sudo_uid, const char *sudo_gid,
		   struct sbx_facts *f, struct sbx_err *err);

#endif
