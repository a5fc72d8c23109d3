/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HOST_FACTS_GATHER_H
#define SBX_LAUNCHER_HOST_FACTS_GATHER_H

#include "base/err.h"
#include "launcher/host/facts.h"
#include "launcher/host/options.h"

/* Reads the facts from the host. */

/* 0; SBX_FACTS_E_UNUSABLE with @err (exit status 125); -errno with @err. @ret_f is for
 * sbx_facts_fini() whatever the result. Reads the environment; the only part of planning that
 * does. */
enum { SBX_FACTS_E_UNUSABLE = 1 };
int sbx_facts_gather(const struct sbx_options *o, struct sbx_facts *ret_f, struct sbx_err *err);
/* The same in two parts: the facts that the stage needs to begin, and the rest, read while the
 * stage begins. For an ordinary user the first part has only the ids. */
int sbx_facts_gather_first(const struct sbx_options *o, struct sbx_facts *ret_f,
			   struct sbx_err *err);
int sbx_facts_gather_rest(const struct sbx_options *o, struct sbx_facts *f, struct sbx_err *err);
/* Only the caller and the directories: caller_uid, privileged, state_dir, runtime_dir, config_dir,
 * user_config_dir, libexec_dir, data_dir. The same results, for the same sbx_facts_fini(). */
int sbx_facts_gather_places(struct sbx_facts *ret_f, struct sbx_err *err);
/* Single facts after those: bwrap; and cgroup, cgroup_place and scope_helper (0 or -errno). */
int sbx_facts_gather_bwrap(struct sbx_facts *f, struct sbx_err *err);
int sbx_facts_gather_cgroup(struct sbx_facts *f);

/* PURE. The place of @compiled (an absolute directory that was configured together with @bindir)
 * for an sbx-run in @exe_dir: by the same relative path. malloc'ed; NULL: the two share no parent,
 * or @exe_dir does not end as @bindir does. */
char *sbx_facts_relocate(const char *exe_dir, const char *bindir, const char *compiled);

#endif
