/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_PLAN_INTERNAL_H
#define SBX_LAUNCHER_PLAN_PLAN_INTERNAL_H

#include <stdarg.h>
#include <stdint.h>

#include "base/err.h"
#include "launcher/plan/plan.h"

/*
 * The parts of planning, each of which fills in its fields of the plan, in this order. All return
 * 0, an exit status (125-127) with @errs filled in, or -errno.
 */

#define SBX_PLAN_REFUSED	125
#define SBX_PLAN_NOT_EXECUTABLE 126
#define SBX_PLAN_NOT_FOUND	127

/* plan_profile.c: profile, system, policy; nft, resolvers. */
int sbx_plan_profile(struct sbx_plan *p, struct sbx_err_list *errs);
int sbx_plan_network(struct sbx_plan *p, struct sbx_err_list *errs);
/* system.yaml alone; *ret_file, malloc'ed, is its path, NULL where there is none. 0, SBX_PLAN_REFUSED with
 * @errs, -errno. */
int sbx_plan_system(const struct sbx_facts *f, struct sbx_err_list *errs,
		    struct sbx_system_policy **ret_system, char **ret_file);
/* plan_publish.c: the flags' ports into the profile's list, and what becomes of that list. Both: 0;
 * SBX_PLAN_REFUSED with @errs; -ENOMEM. */
int sbx_plan_publish_merge(struct sbx_plan *p, struct sbx_err_list *errs);
int sbx_plan_publish(struct sbx_plan *p, struct sbx_err_list *errs);
/* view.c: mounts, chdir, hostname. */
int sbx_plan_view(struct sbx_plan *p, struct sbx_err_list *errs);
/* env.c */
int sbx_plan_env(struct sbx_plan *p, struct sbx_err_list *errs);
/* command.c */
int sbx_plan_command(struct sbx_plan *p, struct sbx_err_list *errs);
/* probes.c */
int sbx_plan_probes(struct sbx_plan *p, struct sbx_err_list *errs);

/* plan_keep.c: where --keep goes, by its judged path; fd -1: it will be made. 0; SBX_PLAN_REFUSED with @err;
 * -errno. */
int sbx_plan_keep(struct sbx_plan *p, const struct sbx_path *judged, struct sbx_err *err);

/* --- shared helpers (plan.c) --- */

/* Is the workspace an overlay, by profile or flag? */
bool sbx_plan_wants_overlay(const struct sbx_plan *p);

/* The i-th of what the profile's list and then a flag's values ask for; NULL: there are no more. *ret_origin is
 * SBX_ORIGIN_PROFILE or _FLAG. */
const char *sbx_plan_asked(const struct sbx_str_list *profile, const char *const *flags, size_t n_flags, size_t i,
			   enum sbx_mount_origin *ret_origin);

/* Move what an err says to the list; returns SBX_PLAN_REFUSED. */
int sbx_plan_refuse(struct sbx_err_list *errs, const struct sbx_err *err);
/* One more line for stderr. 0 or -ENOMEM; past SBX_PLAN_NOTES_MAX it is dropped. */
int sbx_plan_note(struct sbx_plan *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The value of a variable in p->env, borrowed; NULL when it is not there. */
const char *sbx_plan_getenv(const struct sbx_plan *p, const char *name);
/* In the caller's environment, borrowed; NULL. */
const char *sbx_facts_getenv(const struct sbx_facts *f, const char *name);

/* The text of a configuration file, malloc'ed, with a NUL. 0; 1 when there is no such file; otherwise @err and
 * -errno. Only root and the caller may be able to change it (trust.h). (plan_profile.c) */
enum sbx_config {
	SBX_CONFIG_INSTALLED, /* beside the program: not judged */
	SBX_CONFIG_USER,      /* an ordinary user's group may write it */
	SBX_CONFIG_SYSTEM,    /* and this one not */
};
int sbx_plan_read_config(const char *path, const struct sbx_facts *f, enum sbx_config which, char **ret_text,
			 size_t *ret_n, struct sbx_err *err);
/* PURE. The name of a profile or job, which becomes part of a path. */
bool sbx_plan_is_name(const char *name);
/* @i from 0 until NULL: where profiles are looked for, in order. malloc'ed. (plan_profile.c) */
char *sbx_plan_profile_dir(const struct sbx_facts *f, size_t i);
/* As sbx_plan_read_config(), in these directories; *ret_path is where it was found. */
int sbx_plan_find_profile(const struct sbx_facts *f, const char *name, char **ret_text, size_t *ret_n,
			  char **ret_path, struct sbx_err *err);

/* PURE. The path without doubled and trailing slashes and "." parts. Other bytes are as they are.
 * malloc'ed; NULL when it is relative, has a "..", is then too long for the kernel (PATH_MAX, NAME_MAX for each
 * part), or there is no memory. */
char *sbx_plan_normalise(const char *path);
/* The same of any length: a pattern may be longer than what it matches. */
char *sbx_plan_normalise_pattern(const char *path);

#endif
