/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_FACTS_H
#define SBX_LAUNCHER_HOST_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sandbox_id.h"
#include "launcher/process/uid_pool.h"
#include "sys/cgroup/cgroup.h"

#define SBX_DEFAULT_CONFIG_DIR "/etc/sbx"

/* The facts of the host and the caller that planning uses. Read once (facts_gather.h), constant
 * afterwards. */
struct sbx_facts {
	char id[SBX_ID_LEN + 1]; /* of this run: --id, or random */
	uid_t caller_uid;	 /* real uid of sbx-run */
	gid_t caller_gid;
	bool privileged; /* uid 0, or the capabilities of privileges.h */
	uid_t uid;	 /* the sandbox's user; never 0 */
	gid_t gid;
	/* Of the pool: an unprivileged uid that owns nothing, leased until sbx_facts_fini(). */
	bool throwaway_user;
	struct sbx_uid_pool *uid_pool; /* NULL: not privileged */
	bool may_attach;	       /* has the capabilities for attach cgroup (privileges.h) */
	int landlock_abi;	       /* 0: none */
	uid_t broker_uid;	       /* own user when privileged */
	gid_t broker_gid;
	/* Of uid; a throwaway user's home exists only in the sandbox. */
	char *user_name, *home, *shell;
	char *cwd; /* the caller's; NULL when it cannot be told */
	char *state_dir, *runtime_dir;
	char *config_dir, *user_config_dir; /* may not exist */
	char *libexec_dir, *data_dir;	    /* sbx-broker, sbx-init; profiles/, migrations/ */
	char *bwrap;			    /* absolute path of bwrap */
	/* Text of the host's files; "" when absent; at most 64 KiB and 1 MiB. */
	char *resolv_conf, *hosts;
	size_t n_hosts;
	struct sbx_cgroup_facts cgroup;
	struct sbx_cgroup_place
		cgroup_place; /* where a cgroup can be made without asking; NONE: nowhere */
	char *scope_helper;   /* sbx-scope, where systemd can be asked; NULL: it cannot */
	uint64_t machine_memory_bytes; /* the ceilings where system.yaml sets none; 0: unknown */
	uint32_t machine_cpus_milli;
	char *root;	/* in front of the host's /usr and /etc: "", or a directory in tests */
	char **environ; /* borrowed */
};

void sbx_facts_fini(struct sbx_facts *f);

/* The value of a variable in the caller's environment, borrowed; NULL: it is not set. */
const char *sbx_facts_getenv(const struct sbx_facts *f, const char *name);

/* PURE. Does the sandbox run as a user that no file belongs to? Its grants are id-mapped then. */
bool sbx_facts_idmap(const struct sbx_facts *f);

#endif
