/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The policy of the next generation: the lists of a change are parsed, and profile, system policy,
 * rules and live lists are compiled again. Nothing is changed here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/live/live_internal.h"
#include "policy/keys/profile_parse.h"

void sbx_live_state_fini(struct sbx_live_state *s)
{
	sbx_live_fini(&s->live);
	sbx_profile_free(s->own_profile);
	sbx_system_policy_free(s->own_system);
	if (s->own_rules)
		sbx_rules_fini(s->own_rules);
	free(s->own_rules);
	sbx_policy_free(s->policy);
	free(s->blob);
	*s = (struct sbx_live_state){ 0 };
}

void sbx_live_state_replace(struct sbx_live_state *state, struct sbx_live_state *next)
{
	if (next->profile == state->profile)
		next->own_profile = sbx_steal_ptr(&state->own_profile);
	if (next->system == state->system)
		next->own_system = sbx_steal_ptr(&state->own_system);
	if (next->rules == state->rules)
		next->own_rules = sbx_steal_ptr(&state->own_rules);
	sbx_live_state_fini(state);
	*state = *next;
	*next = (struct sbx_live_state){ 0 };
}

static int load(struct sbx_live_state *s)
{
	return sbx_policy_load(sbx_span(s->blob, s->n_blob), &s->policy);
}

int sbx_live_state_first(struct sbx_live_state *s, const struct sbx_plan *p)
{
	int r;

	*s = (struct sbx_live_state){
		.generation = sbx_policy_generation(p->policy),
		.profile = p->profile,
		.system = p->system,
		.rules = &p->rules,
		.blob = malloc(p->n_policy_blob),
		.n_blob = p->n_policy_blob,
	};
	if (!s->blob)
		return -ENOMEM;
	memcpy(s->blob, p->policy_blob, p->n_policy_blob);
	r = sbx_live_copy(&p->live, &s->live);
	if (r == 0)
		r = load(s);
	if (r < 0)
		sbx_live_state_fini(s);
	return r;
}

/* Appends the texts to the list of @action. */
static enum sbx_live_code add(struct sbx_live *live, enum sbx_action action, const char *field,
			      const struct sbx_str_list *texts, struct sbx_live_answer *a)
{
	struct sbx_err err = { 0 };
	int r = texts->n ? sbx_live_add(live, action, field, (const char *const *)texts->v,
					texts->n, a->field, &err) :
			   0;

	if (r == 0)
		return SBX_LIVE_DONE;
	sbx_err_set(&a->err, "%s: %s", a->field,
		    r < 0 ? "out of memory; the old policy holds" : err.msg);
	return r < 0 ? SBX_LIVE_FAILED : SBX_LIVE_INVALID;
}

/* The list that holds. */
static enum sbx_live_code add_old(struct sbx_live *live, enum sbx_action action,
				  const struct sbx_net_list *old, struct sbx_live_answer *a)
{
	struct sbx_str_list texts = { 0 };
	enum sbx_live_code code;
	int r = 0;

	for (size_t i = 0; r == 0 && i < old->n; i++)
		r = sbx_str_list_add(&texts, old->v[i].text);
	code = r == 0 ? add(live, action, "", &texts, a) : SBX_LIVE_FAILED;
	if (r < 0)
		sbx_err_set(&a->err, "out of memory; the old policy holds");
	sbx_str_list_fini(&texts);
	return code;
}

/* The rules that are given, or those that hold. Each must be one that sbx-tls can judge. */
static enum sbx_live_code make_rules(const struct sbx_live_run *l, struct sbx_live *next,
				     const struct sbx_live_change *c, struct sbx_live_answer *a)
{
	const struct sbx_live_rules *old = &l->state.live.rules;
	struct sbx_err err = { 0 };
	int r = 0;

	if (c->rules.n)
		r = sbx_live_add_rules(next, "rules", (const char *const *)c->rules.v, c->rules.n,
				       a->field, &err);
	for (size_t i = 0; r == 0 && !c->has_rules && i < old->n; i++)
		r = sbx_live_add_rules(next, "", (const char *const *)&old->v[i].text, 1, a->field,
				       &err);
	if (r == 0)
		r = sbx_live_check_requests(next, &l->parts.plan->live, l->state.profile, "rules",
					    a->field, &err);
	if (r == 0)
		return SBX_LIVE_DONE;
	sbx_err_set(&a->err, "%s: %s", a->field,
		    r < 0 ? "out of memory; the old policy holds" : err.msg);
	return r < 0 ? SBX_LIVE_FAILED : SBX_LIVE_INVALID;
}

/* Each list: the old one or its replacement, then the entries that are added. */
static enum sbx_live_code make_lists(const struct sbx_live_run *l, struct sbx_live *next,
				     const struct sbx_live_change *c, struct sbx_live_answer *a)
{
	const struct sbx_live *old = &l->state.live;
	enum sbx_live_code code;

	next->air_gapped = c->has_air_gapped ? c->air_gapped : old->air_gapped;
	next->deny.deny = true;
	code = c->has_allow ? add(next, SBX_ALLOW, "allow_out", &c->allow, a) :
			      add_old(next, SBX_ALLOW, &old->allow, a);
	if (code == SBX_LIVE_DONE)
		code = add(next, SBX_ALLOW, "add_allow", &c->add_allow, a);
	if (code == SBX_LIVE_DONE)
		code = c->has_deny ? add(next, SBX_DENY, "deny_out", &c->deny, a) :
				     add_old(next, SBX_DENY, &old->deny, a);
	if (code == SBX_LIVE_DONE)
		code = add(next, SBX_DENY, "add_deny", &c->add_deny, a);
	return code == SBX_LIVE_DONE ? make_rules(l, next, c, a) : code;
}

static enum sbx_live_code compile(struct sbx_live_state *next, struct sbx_live_answer *a)
{
	const struct sbx_policy_input in = {
		.profile = next->profile,
		.system = next->system,
		.rules = next->rules,
		.live = &next->live,
		.generation = next->generation,
	};
	int r = sbx_policy_compile(&in, &next->blob, &next->n_blob);

	if (r == 0)
		r = load(next);
	if (r == 0)
		return SBX_LIVE_DONE;
	sbx_err_set(&a->err, "the policy cannot be compiled: %s; the old one holds", strerror(-r));
	return SBX_LIVE_FAILED;
}

static enum sbx_live_code read_again(const struct sbx_live_run *l, enum sbx_live_what what,
				     struct sbx_live_state *next, struct sbx_live_answer *a)
{
	switch (what) {
	case SBX_LIVE_RULES:
		return sbx_live_read_rules(l, next, a);
	case SBX_LIVE_ALL:
		return sbx_live_read_all(l, next, a);
	case SBX_LIVE_NETWORK:
		break;
	}
	return SBX_LIVE_DONE;
}

enum sbx_live_code sbx_live_state_next(const struct sbx_live_run *l,
				       const struct sbx_live_change *c,
				       struct sbx_live_state *ret_next, struct sbx_live_answer *a)
{
	const struct sbx_live_state *old = &l->state;
	struct sbx_live_state next = {
		.generation = old->generation + 1,
		.profile = old->profile,
		.system = old->system,
		.rules = old->rules,
	};
	enum sbx_live_code code = make_lists(l, &next.live, c, a);

	if (code == SBX_LIVE_DONE)
		code = read_again(l, c->what, &next, a);
	if (code == SBX_LIVE_DONE)
		code = compile(&next, a);
	if (code != SBX_LIVE_DONE) {
		sbx_live_state_fini(&next);
		return code;
	}
	*ret_next = next;
	return SBX_LIVE_DONE;
}
