/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads again what a policy is made of: the rules in the database, the profile, the system policy.
 *
 * A running sandbox takes the network's lists from a profile that was read again, and from the
 * system policy floors and admit. All the rest was carried out when the sandbox was made: mounts,
 * limits, seccomp, and what sbx-tls was told of requests and secrets. If any of that is different
 * now the change is refused, because the sandbox would not do what the profile says.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/live/live_internal.h"
#include "launcher/plan/planner.h"
#include "launcher/rules/rules_load.h"
#include "policy/keys/key.h"
#include "policy/keys/key_print.h"
#include "policy/keys/profile_parse.h"

#define LINE_SHOWN 80 /* bytes */

enum sbx_live_code sbx_live_read_rules(const struct sbx_live_run *l, struct sbx_live_state *next,
				       struct sbx_live_answer *a)
{
	SBX_AUTO_FREE struct sbx_rules *rules = calloc(1, sizeof(*rules));
	struct sbx_err err = { 0 };
	int r = rules ? -ENODEV : -ENOMEM;

	if (rules && l->parts.recorder->store)
		r = sbx_rules_load(l->parts.recorder->store, l->parts.plan->options->workspace,
				   rules, &err);
	if (r == 0) {
		next->rules = next->own_rules = sbx_steal_ptr(&rules);
		return SBX_LIVE_DONE;
	}
	sbx_err_set(&a->err, "%s; the old policy holds", err.msg[0] ? err.msg : strerror(-r));
	return r < 0 ? SBX_LIVE_FAILED : SBX_LIVE_DENIED;
}

/* --- what must be as it was --- */

/* malloc'ed, like the next two; NULL: out of memory. */
static char *rest_of_profile(const struct sbx_profile *p)
{
	struct sbx_profile rest = *p;

	rest.network.allow = rest.network.deny = (struct sbx_net_list){ 0 };
	return sbx_profile_print(&rest);
}

static char *rest_of_system(const struct sbx_system_policy *s)
{
	struct sbx_system_policy rest = *s;

	rest.floors = rest.admit = (struct sbx_net_list){ 0 };
	return sbx_key_print(&sbx_system_keys, &rest);
}

/* Compares two texts, which it takes. If they differ, or one is missing, @a says so of @what. */
static enum sbx_live_code compare(const char *what, char *was_take, char *is_take,
				  struct sbx_live_answer *a)
{
	SBX_AUTO_FREE char *was = was_take, *is = is_take;
	const char *line = is;
	int n_line;

	if (!was || !is) {
		sbx_err_set(&a->err, "out of memory; the old policy holds");
		return SBX_LIVE_FAILED;
	}
	if (strcmp(was, is) == 0)
		return SBX_LIVE_DONE;
	for (size_t i = 0; was[i] == is[i]; i++)
		if (is[i] == '\n')
			line = is + i + 1;
	n_line = (int)strnlen(line, LINE_SHOWN);
	if (memchr(line, '\n', (size_t)n_line))
		n_line = (int)strcspn(line, "\n");
	sbx_err_set(&a->err,
		    "%s changed in more than the network's lists (at '%.*s'): start the sandbox "
		    "again, or reload the rules alone; the old policy holds",
		    what, n_line, line);
	return SBX_LIVE_DENIED;
}

static enum sbx_live_code compare_all(const struct sbx_live_state *old, const struct sbx_plan *now,
				      struct sbx_live_answer *a)
{
	enum sbx_live_code code = compare("the profile", rest_of_profile(old->profile),
					  rest_of_profile(now->profile), a);

	if (code == SBX_LIVE_DONE)
		code = compare("what the profile says about requests",
			       sbx_key_print_requests(old->profile),
			       sbx_key_print_requests(now->profile), a);
	if (code == SBX_LIVE_DONE)
		code = compare("the system policy", rest_of_system(old->system),
			       rest_of_system(now->system), a);
	return code;
}

/* Needs the files that the start read, with the rights that the launcher has now. */
static enum sbx_live_code read_policy(const struct sbx_live_run *l, struct sbx_live_state *next,
				      struct sbx_live_answer *a)
{
	SBX_AUTO_FREE struct sbx_err_list *errs = calloc(1, sizeof(*errs));
	const struct sbx_plan *plan = l->parts.plan;
	struct sbx_plan *now = NULL;
	enum sbx_live_code code;
	int r = errs ? sbx_plan_policy(plan->options, plan->facts, errs, &now) : -ENOMEM;

	if (r != 0) {
		if (errs && errs->n)
			sbx_err_set(&a->err, "%s%s%s; the old policy holds", errs->v[0].file,
				    errs->v[0].file[0] ? ": " : "", errs->v[0].msg);
		else
			sbx_err_set(&a->err, "the profile cannot be read: %s; the old policy holds",
				    r < 0 ? strerror(-r) : "it was refused");
		return r < 0 ? SBX_LIVE_FAILED : SBX_LIVE_DENIED;
	}
	code = compare_all(&l->state, now, a);
	if (code == SBX_LIVE_DONE) {
		next->profile = next->own_profile = sbx_steal_ptr(&now->profile);
		next->system = next->own_system = sbx_steal_ptr(&now->system);
	}
	sbx_plan_free(now);
	return code;
}

enum sbx_live_code sbx_live_read_all(const struct sbx_live_run *l, struct sbx_live_state *next,
				     struct sbx_live_answer *a)
{
	enum sbx_live_code code = read_policy(l, next, a);

	return code == SBX_LIVE_DONE ? sbx_live_read_rules(l, next, a) : code;
}
