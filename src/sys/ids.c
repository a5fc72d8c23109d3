/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Becoming another user for good. */
#include <errno.h>
#include <grp.h>
#include <unistd.h>

#include "sys/proc.h"

static int drop_groups(void)
{
	if (setgroups(0, NULL) == 0)
		return 0;
	/* Without CAP_SETGID, or in a user namespace with setgroups denied: they stay, as the
	 * caller had them. */
	return errno == EPERM ? 0 : -errno;
}

static bool ids_are(uid_t uid, gid_t gid)
{
	uid_t u[3];
	gid_t g[3];

	return getresuid(&u[0], &u[1], &u[2]) == 0 && getresgid(&g[0], &g[1], &g[2]) == 0 &&
	       u[0] == uid && u[1] == uid && u[2] == uid && g[0] == gid && g[1] == gid &&
	       g[2] == gid;
}

int sbx_ids_drop(uid_t uid, gid_t gid)
{
	bool changes = !ids_are(uid, gid);
	int r;

	r = drop_groups();
	if (r < 0)
		return r;
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	if (!ids_are(uid, gid))
		return -EPERM;
	/* A capability that survived (securebits, ambient) would let us back. */
	if (changes && uid != 0 && (setresuid((uid_t)-1, 0, (uid_t)-1) == 0 || !ids_are(uid, gid)))
		return -EPERM;
	return 0;
}
