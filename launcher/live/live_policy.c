/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The policy of the next generation: the lists of a change are parsed, and profile, system policy,
 * rules and live lists are compiled again. Nothing is changed here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/live/live_internal.h"
#include "policy/profile/net_entry.h"

#define ENTRIES_MAX 1024 /* of a live list */

void sbx_live_state_fini(struct sbx_live_state *s)
{
	sbx_net_list_fini(&s->live.allow);
	sbx_net_list_fini(&s->live.deny);
	sbx_policy_free(s->policy);
	free(s->blob);
	*s = (struct sbx_live_state){ 0 };
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
		.live = { .air_gapped = p->air_gap, .deny = { .deny = true } },
		.profile = p->profile,
		.system = p->system,
		.blob = malloc(p->n_policy_blob),
		.n_blob = p->n_policy_blob,
	};
	if (!s->blob)
		return -ENOMEM;
	memcpy(s->blob, p->policy_blob, p->n_policy_blob);
	r = load(s);
	if (r < 0)
		sbx_live_state_fini(s);
	return r;
}

/* Parses @text and appends it. @field[@i] is its place in the request; an entry that is there
 * already is passed over. */
static enum sbx_live_code add_entry(struct sbx_net_list *list, const char *text, const char *field,
				    size_t i, struct sbx_live_answer *a)
{
	SBX_CLEANUP(sbx_net_entry_fini) struct sbx_net_entry e = { 0 };
	struct sbx_err err = { 0 };
	int r = sbx_net_entry_parse(text, SBX_PATTERN_ANY, list->deny, &e, &err);

	for (size_t k = 0; r == 0 && k < list->n; k++)
		if (strcmp(list->v[k].text, e.text) == 0)
			return SBX_LIVE_DONE;
	if (r == 0 && list->n >= ENTRIES_MAX) {
		sbx_err_set(&err, "a live list has at most %d entries", ENTRIES_MAX);
		r = SBX_PROFILE_E_INVALID;
	}
	if (r == 0)
		r = sbx_net_list_append(list, &e);
	if (r == 0)
		return SBX_LIVE_DONE;
	if (i != SIZE_MAX)
		sbx_text_cut(a->field, sizeof(a->field), "%s[%zu]", field, i);
	sbx_err_set(&a->err, "%s: %s", a->field,
		    r < 0 ? "out of memory; the old policy holds" : err.msg);
	return r < 0 ? SBX_LIVE_FAILED : SBX_LIVE_INVALID;
}

static enum sbx_live_code add_all(struct sbx_net_list *list, const struct sbx_str_list *texts,
				  const char *field, struct sbx_live_answer *a)
{
	for (size_t i = 0; i < texts->n; i++) {
		enum sbx_live_code code = add_entry(list, texts->v[i], field, i, a);

		if (code != SBX_LIVE_DONE)
			return code;
	}
	return SBX_LIVE_DONE;
}

/* The entries of the list that holds. */
static enum sbx_live_code add_old(struct sbx_net_list *list, const struct sbx_net_list *old,
				  struct sbx_live_answer *a)
{
	for (size_t i = 0; i < old->n; i++) {
		enum sbx_live_code code = add_entry(list, old->v[i].text, "", SIZE_MAX, a);

		if (code != SBX_LIVE_DONE)
			return code;
	}
	return SBX_LIVE_DONE;
}

/* One list: the old or its replacement, then what is added. */
static enum sbx_live_code make_list(struct sbx_net_list *list, const struct sbx_net_list *old,
				    const struct sbx_str_list *replacement,
				    const struct sbx_str_list *more, const char *const fields[2],
				    struct sbx_live_answer *a)
{
	enum sbx_live_code code = replacement ? add_all(list, replacement, fields[0], a)
					      : add_old(list, old, a);

	return code == SBX_LIVE_DONE ? add_all(list, more, fields[1], a) : code;
}

static enum sbx_live_code make_lists(struct sbx_live *next, const struct sbx_live *old,
				     const struct sbx_live_change *c, struct sbx_live_answer *a)
{
	static const char *const allow[] = { "allow_out", "add_allow" };
	static const char *const deny[] = { "deny_out", "add_deny" };
	enum sbx_live_code code;

	next->air_gapped = c->has_air_gapped ? c->air_gapped : old->air_gapped;
	next->deny.deny = true;
	code = make_list(&next->allow, &old->allow, c->has_allow ? &c->allow : NULL, &c->add_allow,
			 allow, a);
	return code == SBX_LIVE_DONE ?
		       make_list(&next->deny, &old->deny, c->has_deny ? &c->deny : NULL,
				 &c->add_deny, deny, a) :
		       code;
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
	enum sbx_live_code code = make_lists(&next.live, &old->live, c, a);

	if (code == SBX_LIVE_DONE)
		code = compile(&next, a);
	if (code != SBX_LIVE_DONE) {
		sbx_live_state_fini(&next);
		return code;
	}
	*ret_next = next;
	return SBX_LIVE_DONE;
}
