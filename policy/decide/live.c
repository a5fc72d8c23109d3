/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/decide/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/forms/request_form.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/ports.h"

static bool is_there(const struct sbx_net_list *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(list->v[i].text, text) == 0)
			return true;
	}
	return false;
}

static int add_one(struct sbx_net_list *list, const char *pattern, struct sbx_err *err)
{
	struct sbx_net_entry e;
	int r;

	if (list->n >= SBX_LIVE_ENTRIES_MAX) {
		sbx_err_set(err, "more than %d entries: use wildcards, networks or rules",
			    SBX_LIVE_ENTRIES_MAX);
		return SBX_PROFILE_E_INVALID;
	}
	r = sbx_net_entry_parse(pattern, SBX_PATTERN_ANY, list->deny, &e, err);
	if (r != 0)
		return r;
	if (!is_there(list, e.text))
		r = sbx_net_list_append(list, &e);
	sbx_net_entry_fini(&e);
	return r;
}

int sbx_live_add(struct sbx_live *live, enum sbx_action action, const char *field,
		 const char *const *patterns, size_t n, char ret_field[SBX_LIVE_FIELD_MAX],
		 struct sbx_err *err)
{
	struct sbx_net_list *list = action == SBX_ALLOW ? &live->allow : &live->deny;

	list->deny = action != SBX_ALLOW;
	for (size_t i = 0; i < n; i++) {
		int r = add_one(list, patterns[i], err);

		if (r != 0) {
			sbx_text_cut(ret_field, SBX_LIVE_FIELD_MAX, "%s[%zu]", field, i);
			return r;
		}
	}
	return 0;
}

int sbx_live_set(bool air_gapped, const char *const *allow, size_t n_allow,
		 const char *const *deny, size_t n_deny, struct sbx_live *ret_live,
		 char ret_field[SBX_LIVE_FIELD_MAX], struct sbx_err *err)
{
	struct sbx_live live = { .air_gapped = air_gapped };
	int r = sbx_live_add(&live, SBX_ALLOW, "allow_out", allow, n_allow, ret_field, err);

	if (r == 0)
		r = sbx_live_add(&live, SBX_DENY, "deny_out", deny, n_deny, ret_field, err);
	if (r != 0) {
		sbx_live_fini(&live);
		return r;
	}
	*ret_live = live;
	return 0;
}

/* --- rules --- */

static void rule_fini(struct sbx_live_rule *r)
{
	sbx_net_entry_fini(&r->entry);
	free(r->requests);
	free(r->text);
	*r = (struct sbx_live_rule){ 0 };
}
SBX_DEFINE_CLEANUP(struct sbx_live_rule, rule_fini);

static int bad(struct sbx_err *err, const char *word, const char *why)
{
	sbx_err_set(err, "'%s': %s", word, why);
	return SBX_PROFILE_E_INVALID;
}

/* Takes the next word off *@rest, whose words have one space between them. NULL: there is none. */
static char *next_word(char **rest)
{
	char *word = *rest, *space = word ? strchr(word, ' ') : NULL;

	*rest = space ? space + 1 : NULL;
	if (space)
		*space = '\0';
	return word;
}

static int check_methods(char *word, struct sbx_err *err)
{
	size_t n = 0;

	if (strcmp(word, "*") == 0)
		return 0;
	for (char *next; word; word = next) {
		const char *why;

		next = strchr(word, ',');
		if (next)
			*next = '\0';
		why = ++n > SBX_REQUEST_LIST_MAX ? "a rule has at most 64 methods" :
						   sbx_form_method(word);
		if (why)
			return bad(err, word, why);
		if (next)
			*next++ = ',';
	}
	return 0;
}

/* "METHODS [PATH...]" in @rest. */
static int parse_requests(char *rest, struct sbx_live_rule *r, struct sbx_err *err)
{
	size_t n = 0;
	int e;

	if (r->action != SBX_ALLOW || r->entry.is_cidr || r->entry.proto == SBX_PROTO_UDP)
		return bad(err, r->entry.text,
			   "methods and paths are for an allowed name, by TCP");
	if (strlen(rest) > SBX_LIVE_REQUESTS_MAX)
		return bad(err, r->entry.text, "its methods and paths have more than 2048 bytes");
	/* Every request is what a rule without the words allows. */
	r->requests = strcmp(rest, "*") == 0 ? NULL : strdup(rest);
	if (!r->requests && strcmp(rest, "*") != 0)
		return -ENOMEM;
	e = check_methods(next_word(&rest), err);
	while (e == 0 && rest) {
		const char *path = next_word(&rest);
		const char *why = ++n > SBX_REQUEST_LIST_MAX ? "a rule has at most 64 paths" :
							       sbx_form_path_pattern(path);

		if (why)
			e = bad(err, path, why);
	}
	return e;
}

static int set_text(struct sbx_live_rule *r)
{
	size_t n = strlen(r->entry.text) + (r->requests ? strlen(r->requests) : 0) + 16;

	r->text = malloc(n);
	if (!r->text)
		return -ENOMEM;
	sbx_text_fit(r->text, n, "%s %s%s%s", sbx_action_str(r->action), r->entry.text,
		     r->requests ? " " : "", r->requests ? r->requests : "");
	return 0;
}

static int parse_rule(const char *text, struct sbx_live_rule *r, struct sbx_err *err)
{
	SBX_AUTO_FREE char *copy = strdup(text);
	char *rest = copy;
	const char *action, *entry;
	int e;

	if (!copy)
		return -ENOMEM;
	action = next_word(&rest);
	entry = next_word(&rest);
	if (strcmp(action, "allow") != 0 && strcmp(action, "deny") != 0)
		return bad(err, action, "a rule begins with allow or deny");
	if (!entry)
		return bad(err, action, "a name or a network must follow");
	r->action = action[0] == 'a' ? SBX_ALLOW : SBX_DENY;
	e = sbx_net_entry_parse(entry, SBX_PATTERN_ANY, r->action != SBX_ALLOW, &r->entry, err);
	if (e == 0 && rest)
		e = parse_requests(rest, r, err);
	return e == 0 ? set_text(r) : e;
}

static int append_rule(struct sbx_live_rules *rules, struct sbx_live_rule *r, struct sbx_err *err)
{
	size_t n = strlen(r->text);
	struct sbx_live_rule *v;

	for (size_t i = 0; i < rules->n; i++) {
		if (strcmp(rules->v[i].text, r->text) == 0)
			return 0;
		n += strlen(rules->v[i].text);
	}
	if (n > SBX_LIVE_RULES_BYTES) {
		sbx_err_set(err, "all rules together have more than %d bytes: use wildcards",
			    SBX_LIVE_RULES_BYTES);
		return SBX_PROFILE_E_INVALID;
	}
	v = realloc(rules->v, (rules->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	rules->v = v;
	v[rules->n++] = *r;
	*r = (struct sbx_live_rule){ 0 };
	return 0;
}

int sbx_live_add_rules(struct sbx_live *live, const char *field, const char *const *texts, size_t n,
		       char ret_field[SBX_LIVE_FIELD_MAX], struct sbx_err *err)
{
	for (size_t i = 0; i < n; i++) {
		SBX_CLEANUP(rule_fini) struct sbx_live_rule rule = { 0 };
		int r;

		if (live->rules.n >= SBX_LIVE_ENTRIES_MAX) {
			sbx_err_set(err, "more than %d rules", SBX_LIVE_ENTRIES_MAX);
			r = SBX_PROFILE_E_INVALID;
		} else {
			r = parse_rule(texts[i], &rule, err);
		}
		if (r == 0)
			r = append_rule(&live->rules, &rule, err);
		if (r != 0) {
			sbx_text_cut(ret_field, SBX_LIVE_FIELD_MAX, "%s[%zu]", field, i);
			return r;
		}
	}
	return 0;
}

static int copy_list(struct sbx_live *live, enum sbx_action action, const struct sbx_net_list *from)
{
	char field[SBX_LIVE_FIELD_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->n; i++)
		r = sbx_live_add(live, action, "", (const char *const *)&from->v[i].text, 1, field,
				 NULL);
	return r;
}

int sbx_live_copy(const struct sbx_live *from, struct sbx_live *ret_live)
{
	struct sbx_live live = { .air_gapped = from->air_gapped, .deny.deny = true };
	char field[SBX_LIVE_FIELD_MAX];
	int r = copy_list(&live, SBX_ALLOW, &from->allow);

	if (r == 0)
		r = copy_list(&live, SBX_DENY, &from->deny);
	for (size_t i = 0; r == 0 && i < from->rules.n; i++)
		r = sbx_live_add_rules(&live, "", (const char *const *)&from->rules.v[i].text, 1,
				       field, NULL);
	if (r != 0) {
		sbx_live_fini(&live);
		return -ENOMEM; /* each text was parsed before */
	}
	*ret_live = live;
	return 0;
}

bool sbx_live_allows(const struct sbx_live *live)
{
	for (size_t i = 0; i < live->rules.n; i++)
		if (live->rules.v[i].action == SBX_ALLOW)
			return true;
	return live->allow.n > 0;
}

bool sbx_live_has_requests(const struct sbx_live *live)
{
	for (size_t i = 0; i < live->rules.n; i++)
		if (live->rules.v[i].requests)
			return true;
	return false;
}

/* --- requests beside the profile's --- */

static bool covers(const struct sbx_live *first, const struct sbx_net_entry *e)
{
	for (size_t i = 0; i < first->rules.n; i++)
		if (first->rules.v[i].requests && sbx_net_entry_covers(&first->rules.v[i].entry, e))
			return true;
	return false;
}

static const char *problem_of(const struct sbx_live *live, size_t at, const struct sbx_live *first,
			      const struct sbx_profile *profile)
{
	const struct sbx_net_entry *e = &live->rules.v[at].entry;

	if (profile->network.mode != SBX_MODE_FETCH)
		return "requests are read in mode fetch alone, and the profile has another mode";
	if (profile->network.attach != SBX_NET_ATTACH_NETNS)
		return "requests are read with attach netns alone";
	for (size_t i = 0; i < profile->network.allow.n; i++) {
		const struct sbx_net_entry *p = &profile->network.allow.v[i];

		if (p->terminate && (sbx_net_entry_covers(p, e) || sbx_net_entry_covers(e, p)))
			return "the profile judges the requests to such a host already (access, "
			       "secrets and so on), and a rule lifts none of that";
	}
	if (first && !covers(first, e))
		return "requests are read to names alone that the sandbox was started with: start "
		       "it with a rule for this name that has methods or paths";
	for (size_t i = 0; i < at; i++) {
		const struct sbx_live_rule *other = &live->rules.v[i];

		if (other->requests && sbx_net_entry_same_names(&other->entry, e) &&
		    sbx_ports_shared(&other->entry, e))
			return "another rule is for the same name and port: write one with the "
			       "methods and paths of both";
	}
	return NULL;
}

int sbx_live_check_requests(const struct sbx_live *live, const struct sbx_live *first,
			    const struct sbx_profile *profile, const char *field,
			    char ret_field[SBX_LIVE_FIELD_MAX], struct sbx_err *err)
{
	for (size_t i = 0; i < live->rules.n; i++) {
		const struct sbx_live_rule *r = &live->rules.v[i];
		const char *why = r->requests ? problem_of(live, i, first, profile) : NULL;

		if (!why)
			continue;
		sbx_text_cut(ret_field, SBX_LIVE_FIELD_MAX, "%s[%zu].%s", field, i,
			     r->requests[0] == '*' ? "paths" : "methods");
		sbx_err_set(err, "'%s': %s", r->entry.text, why);
		return SBX_PROFILE_E_INVALID;
	}
	return 0;
}

void sbx_live_fini(struct sbx_live *live)
{
	sbx_net_list_fini(&live->allow);
	sbx_net_list_fini(&live->deny);
	for (size_t i = 0; i < live->rules.n; i++)
		rule_fini(&live->rules.v[i]);
	free(live->rules.v);
	live->rules = (struct sbx_live_rules){ 0 };
	live->air_gapped = false;
}
