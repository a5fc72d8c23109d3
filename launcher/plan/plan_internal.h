/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_PLAN_INTERNAL_H
#define SBX_LAUNCHER_PLAN_PLAN_INTERNAL_H

#include "base/err.h"
#include "launcher/plan/plan.h"

/*
 * The parts of planning, in the order in which the planner calls them. Each fills in its fields of
 * the plan. All return 0, an exit status (125-127) with @errs, or -errno.
 */

/* plan_profile.c. The first: profile, system policy. The second: compiled policy, nft,
 * resolvers. */
int sbx_plan_profile(struct sbx_plan *p, struct sbx_err_list *errs);
/* The rules of the workspace and the host, before the network. */
int sbx_plan_rules(struct sbx_plan *p, struct sbx_err_list *errs);
int sbx_plan_network(struct sbx_plan *p, struct sbx_err_list *errs);
/* plan_publish.c. The first adds the flags' ports to the profile's list; the second checks the list
 * and fills in publish. Both return 0; SBX_EXIT_REFUSED with @errs; or -ENOMEM. */
int sbx_plan_publish_merge(struct sbx_plan *p, struct sbx_err_list *errs);
int sbx_plan_publish(struct sbx_plan *p, struct sbx_err_list *errs);
/* The reason against publishing the port beside the @taken ones, or NULL. */
const char *sbx_plan_publish_problem(const struct sbx_system_policy *system,
				     const struct sbx_publish *publish,
				     const struct sbx_publish *taken, size_t n_taken);
/* plan_tls.c. The first: the terminated entries. The second, as the user: the trust store, and the
 * mounts that show it. */
int sbx_plan_tls(struct sbx_plan *p);
int sbx_plan_trust(struct sbx_plan *p, const struct sbx_draft *d, struct sbx_err_list *errs);
/* Adds the certificates of @path, which a variable of the caller's names, unless it is the host's
 * own store or cannot be read. 0 or -ENOMEM. */
int sbx_trust_add_named(struct sbx_plan *p, const char *path);
void sbx_plan_tls_fini(struct sbx_plan_tls *t);
/* plan_view.c: mounts, chdir, hostname. */
int sbx_plan_view(struct sbx_plan *p, const struct sbx_draft *d, struct sbx_err_list *errs);
/* plan_secrets.c, as the user: refuses files of secrets that the command could read, and notes
 * secrets that have no place. */
int sbx_plan_secrets(struct sbx_plan *p, const struct sbx_draft *d,
		     struct sbx_err_list *errs);
/* env.c */
int sbx_plan_env(struct sbx_plan *p, const struct sbx_draft *d, struct sbx_err_list *errs);
/* probes.c */
int sbx_plan_probes(struct sbx_plan *p, struct sbx_err_list *errs);

#endif
