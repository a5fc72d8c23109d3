/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A privileged launcher looks at files with the ids of the sandbox's user, so that it sees no more
 * than that user may see. */
#include "launcher/host/lookup_ids.h"

#include <errno.h>
#include <grp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/process/proc.h"

int sbx_lookup_ids_use(const struct sbx_facts *f, uid_t uid, gid_t gid,
		       struct sbx_lookup_ids *ret_saved)
{
	struct sbx_lookup_ids s = { .uid = geteuid(), .gid = getegid() };
	uint64_t effective;
	int r;

	memset(ret_saved, 0, sizeof(*ret_saved));
	if (!f->privileged || s.uid != f->caller_uid)
		return 0;
	/* No effective capability: the ids were changed already. The uids do not tell, where the
	 * sandbox has the caller's. */
	r = sbx_caps_effective(&effective);
	if (r < 0 || !effective)
		return r;
	s.n_groups = getgroups(0, NULL);
	if (s.n_groups < 0)
		return -errno;
	s.groups = calloc((size_t)s.n_groups + 1, sizeof(*s.groups));
	if (!s.groups)
		return -ENOMEM;
	s.n_groups = getgroups(s.n_groups, s.groups);
	if (s.n_groups < 0) {
		r = -errno;
		free(s.groups);
		return r;
	}
	s.active = 1;
	*ret_saved = s;
	r = setgroups(0, NULL) < 0 || setegid(gid) < 0 || seteuid(uid) < 0 ? -errno
									   : sbx_caps_use(false);
	if (r < 0)
		sbx_lookup_ids_restore(ret_saved);
	return r;
}

int sbx_lookup_ids_use_sandbox(const struct sbx_facts *f, struct sbx_lookup_ids *ret_saved)
{
	return sbx_lookup_ids_use(f, f->uid, f->gid, ret_saved);
}

void sbx_lookup_ids_restore(struct sbx_lookup_ids *s)
{
	static const char msg[] = "sbx-run: cannot get back its privileges; nothing was run\n";

	if (!s->active)
		return;
	if (sbx_caps_use(true) < 0 || seteuid(s->uid) < 0 || setegid(s->gid) < 0 ||
	    setgroups((size_t)s->n_groups, s->groups) < 0 || geteuid() != s->uid ||
	    getegid() != s->gid) {
		(void)!write(STDERR_FILENO, msg, sizeof(msg) - 1);
		_exit(125);
	}
	free(s->groups);
	memset(s, 0, sizeof(*s));
}
