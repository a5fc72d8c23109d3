/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A connection is explained by asking the policy what the broker asks it (src/broker/core/core.c):
 * a name, then its address if that is given; or a literal address, then its class. A request of a
 * terminated host is judged by sbx_http_judge_access(), as sbx-tls does.
 *
 * Only a connection shows its first bytes (a server name that differs), the secrets in a request,
 * and addresses of this host: these are not judged here.
 */
#include "launcher/explain/explain_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hostname.h"
#include "base/text.h"
#include "http/request.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/settle.h"

struct flow {
	const struct sbx_policy *policy;
	const struct sbx_profile *profile;
	const struct sbx_explain_asked *asked;
	char name[SBX_HOSTNAME_MAX + 1]; /* "": a literal address */
	struct sbx_addr addr;		 /* family 0: not known */
	struct sbx_verdict verdict;
	bool by_address; /* the address decided, and not the name */
};

static int invalid(struct sbx_err *err, const char *what, const char *text)
{
	sbx_err_set(err, "'%s' is no %s", text, what);
	return SBX_EXPLAIN_E_INVALID;
}

/* "[2001:db8::1]" is the address inside. */
static int parse_addr(const char *text, struct sbx_addr *ret_addr)
{
	char inner[SBX_ADDR_STR_MAX];
	size_t n = strlen(text);

	if (n > 2 && text[0] == '[' && text[n - 1] == ']')
		return sbx_text_copy_n(inner, sizeof(inner), text + 1, n - 2) < 0 ?
			       -EINVAL :
			       sbx_addr_parse(inner, ret_addr);
	return sbx_addr_parse(text, ret_addr);
}

static int parse(struct flow *f, struct sbx_err *err)
{
	const struct sbx_explain_asked *a = f->asked;

	if (a->port == 0)
		return invalid(err, "port", "0");
	if (parse_addr(a->host, &f->addr) == 0) {
		if (a->address)
			return invalid(err, "name: --address is for a name", a->host);
		f->addr = sbx_addr_unmap(&f->addr);
		return 0;
	}
	f->addr = (struct sbx_addr){ 0 };
	if (sbx_hostname_normalise(a->host, strlen(a->host), f->name) != 0)
		return invalid(err, "name or address", a->host);
	if (a->address && parse_addr(a->address, &f->addr) < 0)
		return invalid(err, "address", a->address);
	if (a->address)
		f->addr = sbx_addr_unmap(&f->addr);
	return 0;
}

/* --- the verdict --- */

static void decide(struct flow *f)
{
	const struct sbx_explain_asked *a = f->asked;
	struct sbx_verdict *v = &f->verdict;

	if (f->name[0]) {
		*v = sbx_policy_decide_name(f->policy, f->name, a->proto, a->port);
	} else {
		*v = sbx_policy_decide_addr(f->policy, &f->addr, a->proto, a->port);
		f->by_address = true;
		if (v->action == SBX_DENY &&
		    (v->reason == SBX_REASON_DEFAULT_DENY || v->reason == SBX_REASON_UNKNOWN))
			v->reason = SBX_REASON_LITERAL_ADDRESS;
	}
	if (v->action == SBX_ALLOW && f->addr.family) {
		struct sbx_verdict resolved = sbx_policy_decide_resolved(
			f->policy, &f->addr, a->proto, a->port, v->private_ok);

		if (resolved.action != SBX_ALLOW) {
			*v = resolved;
			f->by_address = true;
		}
	}
}

/* --- what matched --- */

static void fill_match(const struct flow *f, uint32_t rule, const struct sbx_policy_entry *entry,
		       struct sbx_explained_match *m)
{
	m->decided = rule == f->verdict.rule;
	sbx_text_cut(m->layer, sizeof(m->layer), "%s", sbx_layer_str(entry->layer));
	sbx_text_cut(m->action, sizeof(m->action), "%s", sbx_action_str(entry->action));
	sbx_text_cut(m->text, sizeof(m->text), "%s", entry->text);
	sbx_text_cut(m->origin, sizeof(m->origin), "%s", entry->origin);
}

static void add_match(const struct flow *f, uint32_t rule, struct sbx_explained *e)
{
	struct sbx_policy_entry entry;

	if (sbx_policy_entry(f->policy, rule, &entry))
		fill_match(f, rule, &entry, sbx_explained_match_add(e));
}

static bool has_decided(const struct sbx_explained *e)
{
	for (size_t i = 0; i < e->n_matches; i++)
		if (e->matches[i].decided)
			return true;
	return false;
}

static void add_matches(const struct flow *f, struct sbx_explained *e)
{
	const struct sbx_explain_asked *a = f->asked;
	uint32_t v[SBX_EXPLAINED_MATCHES_MAX];
	size_t n, n_max = SBX_N_ELEMENTS(v);

	if (f->name[0]) {
		n = sbx_policy_matches_name(f->policy, f->name, a->proto, a->port, v, n_max);
		for (size_t i = 0; i < n && i < n_max; i++)
			add_match(f, v[i], e);
		e->n_more += n > n_max;
	}
	if (f->addr.family) {
		n = sbx_policy_matches_addr(f->policy, &f->addr, a->proto, a->port, v, n_max);
		for (size_t i = 0; i < n && i < n_max; i++)
			add_match(f, v[i], e);
		e->n_more += n > n_max;
	}
	/* A verdict about ports names an entry that does not match the port. */
	if (f->verdict.rule != UINT32_MAX && !has_decided(e))
		add_match(f, f->verdict.rule, e);
}

/* --- the draft of a rule --- */

/* The entry of the draft; UINT32_MAX: the policy has none. */
static uint32_t find_draft(const struct sbx_policy *p, size_t *ret_n_entries)
{
	uint32_t found = UINT32_MAX, i = 0;
	struct sbx_policy_entry entry;

	for (; sbx_policy_entry(p, i, &entry); i++)
		if (entry.row == SBX_RULE_DRAFT)
			found = i;
	*ret_n_entries = i;
	return found;
}

static bool is_among(uint32_t rule, const uint32_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == rule)
			return true;
	return false;
}

/* Is the entry among all that match, and not only among those that are shown? */
static int matches(const struct flow *f, uint32_t rule, size_t n_max, bool *ret_matches)
{
	const struct sbx_explain_asked *a = f->asked;
	size_t n;
	SBX_AUTO_FREE uint32_t *v = calloc(n_max, sizeof(*v));

	if (!v)
		return -ENOMEM;
	if (f->name[0]) {
		n = sbx_policy_matches_name(f->policy, f->name, a->proto, a->port, v, n_max);
		*ret_matches = is_among(rule, v, n);
	}
	if (f->addr.family && !*ret_matches) {
		n = sbx_policy_matches_addr(f->policy, &f->addr, a->proto, a->port, v, n_max);
		*ret_matches = is_among(rule, v, n);
	}
	return 0;
}

static int tell_draft(const struct flow *f, struct sbx_explained *e)
{
	size_t n_entries;
	uint32_t draft = find_draft(f->policy, &n_entries);
	struct sbx_policy_entry entry;
	int r;

	if (draft == UINT32_MAX)
		return 0;
	e->draft.asked = true;
	r = matches(f, draft, n_entries, &e->draft.matches);
	if (r < 0)
		return r;
	/* A verdict about ports names an entry that does not match the port. */
	e->draft.decides = e->draft.matches && f->verdict.rule == draft;
	e->draft.has_above = e->draft.matches && !e->draft.decides &&
			     sbx_policy_entry(f->policy, f->verdict.rule, &entry);
	if (e->draft.has_above)
		fill_match(f, f->verdict.rule, &entry, &e->draft.above);
	sbx_explained_draft_why(e);
	return 0;
}

static void add_changes(const struct flow *f, struct sbx_explained *e)
{
	const struct sbx_policy_asked asked = {
		.name = f->name[0] ? f->name : NULL,
		.addr = f->by_address ? &f->addr : NULL,
		.proto = f->asked->proto,
		.port = f->asked->port,
		.workspace = f->asked->workspace,
		.id = f->asked->id,
	};
	struct sbx_policy_change changes[SBX_CHANGES_MAX];
	size_t n = sbx_policy_changes(f->policy, &asked, &f->verdict, changes);

	for (size_t i = 0; i < n; i++)
		sbx_explained_change_add(e, "%s", changes[i].text);
}

/* --- the request --- */

static int lists(const struct sbx_net_entry *from, struct sbx_span **ret_spans,
		 struct sbx_http_entry *ret)
{
	struct sbx_span *spans = calloc(from->methods.n + from->paths.n + 1, sizeof(*spans));

	if (!spans)
		return -ENOMEM;
	for (size_t i = 0; i < from->methods.n; i++)
		spans[i] = sbx_span_str(from->methods.v[i]);
	for (size_t i = 0; i < from->paths.n; i++)
		spans[from->methods.n + i] = sbx_span_str(from->paths.v[i]);
	ret->methods = (struct sbx_http_list){ from->methods.n, spans };
	ret->paths = (struct sbx_http_list){ from->paths.n, spans + from->methods.n };
	*ret_spans = spans;
	return 0;
}

static void judge_by(const struct flow *f, const struct sbx_http_entry *entry,
		     struct sbx_explained *e)
{
	const char *method = f->asked->method ? f->asked->method : "GET";
	const char *path = f->asked->path ? f->asked->path : "/";
	const struct sbx_http_request request = {
		.method = sbx_span_str(method),
		.target = sbx_span_str(path),
	};
	struct sbx_http_verdict v;

	e->allowed = sbx_http_judge_access(entry, f->name, &request, &v);
	if (e->allowed) {
		sbx_text_cut(e->why, sizeof(e->why), "%s %s is allowed by the entry '%.*s'", method,
			     path, (int)entry->text.n, (const char *)entry->text.p);
		return;
	}
	sbx_text_cut(e->reason, sizeof(e->reason), "%s", sbx_reason_str(v.reason));
	sbx_text_cut(e->why, sizeof(e->why), "%s", v.text);
	e->n_changes = 0;
}

/* By an entry of the profile. */
static int judge_request(const struct flow *f, const struct sbx_net_entry *from,
			 struct sbx_explained *e)
{
	char target[SBX_HOSTNAME_MAX + 3];
	struct sbx_http_entry entry = {
		.text = sbx_span_str(from->text),
		.host = sbx_span_str(sbx_net_entry_target(from, target, sizeof(target))),
		.access = (uint8_t)from->access,
		.websocket = from->websocket,
		.max_request_bytes = from->max_request_bytes,
	};
	SBX_AUTO_FREE struct sbx_span *spans = NULL;
	int r = lists(from, &spans, &entry);

	if (r < 0)
		return r;
	judge_by(f, &entry, e);
	if (!e->allowed)
		sbx_explained_change_add(
			e, "network.allow: {host: %s, access: {methods: [%s], paths: [%s]}}",
			target, f->asked->method ? f->asked->method : "GET",
			f->asked->path ? f->asked->path : "/");
	return 0;
}

/* By a live rule. */
static int judge_live(const struct flow *f, struct sbx_explained *e)
{
	struct sbx_http_entry entry;
	int r = sbx_http_entry_live(
		sbx_span_str(sbx_policy_rule_text(f->policy, f->verdict.rule)),
		sbx_span_str(f->name), sbx_span_str(f->verdict.requests), &entry);

	if (r < 0)
		return r;
	judge_by(f, &entry, e);
	sbx_http_entry_fini(&entry);
	return 0;
}

/* The entries are numbered in the order of the profile's list. */
static const struct sbx_net_entry *terminated_entry(const struct sbx_profile *p, uint32_t number)
{
	for (size_t i = 0; i < p->network.allow.n; i++)
		if (p->network.allow.v[i].terminate && --number == 0)
			return &p->network.allow.v[i];
	return NULL;
}

static int explain_request(const struct flow *f, struct sbx_explained *e)
{
	const struct sbx_net_entry *entry;

	if (!f->asked->method && !f->asked->path)
		return 0;
	if (!f->verdict.terminate) {
		size_t n = strlen(e->why);

		sbx_text_cut(e->why + n, sizeof(e->why) - n,
			     "; its requests are not read, so that the method and the path do not "
			     "matter");
		return 0;
	}
	if (f->verdict.terminate == SBX_TERMINATE_LIVE)
		return judge_live(f, e);
	entry = terminated_entry(f->profile, f->verdict.terminate);
	if (!entry) { /* our bug: nothing unclear is allowed */
		e->allowed = false;
		return -EINVAL;
	}
	return judge_request(f, entry, e);
}

/* --- all --- */

int sbx_explain_flow(const struct sbx_policy *policy, const struct sbx_profile *profile,
		     const struct sbx_explain_asked *asked, struct sbx_explained *ret_e,
		     struct sbx_err *err)
{
	struct flow f = { .policy = policy, .profile = profile, .asked = asked };
	char what[SBX_HOSTNAME_MAX + 32], addr[SBX_ADDR_STR_MAX];
	int r = parse(&f, err);

	*ret_e = (struct sbx_explained){ 0 };
	if (r != 0)
		return r;
	decide(&f);
	if (f.by_address)
		sbx_addr_format(&f.addr, addr, sizeof(addr));
	sbx_text_cut(what, sizeof(what),
		     f.by_address && f.addr.family == 6 ? "[%s]:%u%s" : "%s:%u%s",
		     f.by_address ? addr : f.name, asked->port,
		     asked->proto == SBX_PROTO_UDP ? "/udp" : "");
	sbx_text_cut(ret_e->subject, sizeof(ret_e->subject), "%s %s port %u",
		     sbx_proto_str(asked->proto), asked->host, asked->port);
	ret_e->allowed = f.verdict.action == SBX_ALLOW;
	ret_e->generation = sbx_policy_generation(policy);
	sbx_text_cut(ret_e->reason, sizeof(ret_e->reason), "%s", sbx_reason_str(f.verdict.reason));
	sbx_policy_explain(policy, &f.verdict, what, ret_e->why, sizeof(ret_e->why));
	add_matches(&f, ret_e);
	add_changes(&f, ret_e);
	r = tell_draft(&f, ret_e);
	return r == 0 && ret_e->allowed ? explain_request(&f, ret_e) : r;
}
