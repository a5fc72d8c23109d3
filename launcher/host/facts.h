/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_FACTS_H
#define SBX_LAUNCHER_HOST_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/sandbox_id.h"
#include "launcher/host/options.h"
#include "launcher/process/uid_pool.h"
#include "sys/cgroup/cgroup.h"

#define SBX_DEFAULT_CONFIG_DIR "/etc/sbx"

/* What the planner must know of the host and the caller, read once. */

/* Gathered once by sbx_facts_gather(), and constant afterwards. */
struct sbx_facts {
	char id[SBX_ID_LEN + 1]; /* of this run: --id, or random */
	uid_t caller_uid;	 /* real uid of sbx-run */
	gid_t caller_gid;
	bool privileged; /* uid 0, or the capabilities of privileges.h */
	uid_t uid;	 /* who the sandbox runs as; never 0 */
	gid_t gid;
	/* Of the pool: an unprivileged uid with no rights to anything, leased until sbx_facts_fini(). */
	bool throwaway_user;
	struct sbx_uid_pool *uid_pool; /* NULL: not privileged */
	bool may_attach;     /* has what attach cgroup needs (privileges.h) */
	int landlock_abi;    /* 0: none */
	uid_t broker_uid;    /* own user when privileged */
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
	struct sbx_cgroup_place cgroup_place; /* where a cgroup can be made without asking; NONE: nowhere */
	char *scope_helper;		      /* sbx-scope, where systemd can be asked; NULL: it cannot */
	uint64_t machine_memory_bytes; /* the ceilings where system.yaml sets none; 0: unknown */
	uint32_t machine_cpus_milli;
	char *root;	/* in front of the host's /usr and /etc: "", or a directory in tests */
	char **environ; /* borrowed */
};

/* 0; SBX_FACTS_E_UNUSABLE with @err (exit status 125); -errno with @err. @ret_f is for
 * sbx_facts_fini() whatever the result. Reads the environment; the only part of planning that
 * does. */
enum { SBX_FACTS_E_UNUSABLE = 1 };
int sbx_facts_gather(const struct sbx_options *o, struct sbx_facts *ret_f, struct sbx_err *err);
/* The same in two parts: what the stage needs to begin, and the rest, which is read beside it. Of an ordinary
 * user's sandbox the first knows the ids alone. */
int sbx_facts_gather_first(const struct sbx_options *o, struct sbx_facts *ret_f, struct sbx_err *err);
int sbx_facts_gather_rest(const struct sbx_options *o, struct sbx_facts *f, struct sbx_err *err);
/* Only who calls and the directories: caller_uid, privileged, state_dir, runtime_dir, config_dir,
 * user_config_dir, libexec_dir, data_dir. The same results, for the same sbx_facts_fini(). */
int sbx_facts_gather_places(struct sbx_facts *ret_f, struct sbx_err *err);
void sbx_facts_fini(struct sbx_facts *f);

/* PURE. Where @compiled (an absolute directory that was configured together with @bindir) is when
 * sbx-run was found in @exe_dir: the same way from there. malloc'ed; NULL when the two share no
 * parent or @exe_dir does not end as @bindir does. */
char *sbx_facts_relocate(const char *exe_dir, const char *bindir, const char *compiled);

/* The value of a variable in the caller's environment, borrowed; NULL: it is not set. */
const char *sbx_facts_getenv(const struct sbx_facts *f, const char *name);

/* PURE. Does the sandbox run as a user that no file belongs to? Its grants are id-mapped then. */
bool sbx_facts_idmap(const struct sbx_facts *f);

#endif
