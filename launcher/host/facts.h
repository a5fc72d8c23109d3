/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_FACTS_H
#define SBX_LAUNCHER_HOST_FACTS_H

#include <sys/types.h>

#include "base/err.h"
#include "launcher/cli/options.h"
#include "launcher/plan/plan.h"

#define SBX_DEFAULT_CONFIG_DIR "/etc/sbx"

/* What the planner must know of the host and the caller, read once. */

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

/* Look at files with the rights of the sandbox's user, and come back. Failing to change over is an
 * error; failing to come back ends the process (125): nothing may go on with half of its rights. */
struct sbx_as_user {
	int active;
	int n_groups;
	gid_t *groups;
	uid_t uid;
	gid_t gid;
};
int sbx_as_user_begin(const struct sbx_facts *f, struct sbx_as_user *ret_saved); /* 0 or -errno */
/* The same with other ids: an id-mapped grant is looked at as its owner will be. */
int sbx_as_ids_begin(const struct sbx_facts *f, uid_t uid, gid_t gid, struct sbx_as_user *ret_saved);
void sbx_as_user_end(struct sbx_as_user *saved);

#endif
