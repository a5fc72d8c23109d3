/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_LOOKUP_IDS_H
#define SBX_LAUNCHER_HOST_LOOKUP_IDS_H

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/host/facts.h"

/* Look at files with the privileges of the sandbox's user, and come back. Failing to change over is
 * an error. Failing to come back ends the process (125): nothing may go on with half of its
 * privileges. */
struct sbx_lookup_ids {
	int active;
	int n_groups;
	gid_t *groups;
	uid_t uid;
	gid_t gid;
};
int sbx_lookup_ids_use_sandbox(const struct sbx_facts *f,
			       struct sbx_lookup_ids *ret_saved); /* 0 or -errno */
/* The same with other ids: planning looks at an id-mapped grant as its owner. */
int sbx_lookup_ids_use(const struct sbx_facts *f, uid_t uid, gid_t gid,
		       struct sbx_lookup_ids *ret_saved);
void sbx_lookup_ids_restore(struct sbx_lookup_ids *saved);

#endif
