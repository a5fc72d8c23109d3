/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of a run's different refusals, small enough for people to read. Refusals with the same
 * reason and entry, to the same name and port, are the same. A refused DNS query has no port. Of
 * requests with different paths, the first is told.
 * --allow is proposed only if it would help: the name or address is one that an entry can have, no
 * deny entry or floor decided, and the sandbox has a way out.
 */
#include "launcher/record/refusals.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/err.h"
#include "base/text.h"
#include "policy/decide/policy.h"
#include "policy/profile/net_entry.h"

struct item {
	struct sbx_event e;
	bool has_others; /* requests that are not e.request */
};

struct sbx_refusals {
	size_t n;
	uint64_t n_others;
	struct item v[SBX_REFUSALS_MAX]; /* last, because it is mostly never touched */
};

static bool is_same(const struct sbx_event *a, const struct sbx_event *b)
{
	return a->reason == b->reason && a->proto == b->proto && a->port == b->port &&
	       strcmp(a->name, b->name) == 0 &&
	       (a->name[0] || sbx_addr_equal(&a->addr, &b->addr)) && strcmp(a->rule, b->rule) == 0;
}

void sbx_refusals_add(struct sbx_refusals **list, const struct sbx_event *e)
{
	struct sbx_refusals *l = *list ? *list : calloc(1, sizeof(*l));
	size_t i = 0;

	*list = l;
	if (!l)
		return;
	while (i < l->n && !is_same(&l->v[i].e, e))
		i++;
	if (e->reason == SBX_REASON_OVERFLOW || i == SBX_REFUSALS_MAX) {
		l->n_others = sbx_count_add(l->n_others, e->count);
	} else if (i < l->n) {
		l->v[i].e.count = sbx_count_add(l->v[i].e.count, e->count);
		l->v[i].has_others |= strcmp(l->v[i].e.request, e->request) != 0;
	} else {
		l->v[i].e = *e;
		l->v[i].e.ts_ms = l->n++; /* the order, from here on */
	}
}

struct sbx_refusals *sbx_refusals_free(struct sbx_refusals *list)
{
	free(list);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct sbx_event *x = &((const struct item *)a)->e, *y = &((const struct item *)b)->e;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->ts_ms < y->ts_ms ? -1 : x->ts_ms > y->ts_ms;
}

void sbx_refusals_sort(struct sbx_refusals *list)
{
	if (list)
		qsort(list->v, list->n, sizeof(list->v[0]), compare);
}

size_t sbx_refusals_n(const struct sbx_refusals *list)
{
	return list ? list->n : 0;
}

uint64_t sbx_refusals_n_others(const struct sbx_refusals *list)
{
	return list ? list->n_others : 0;
}

/* --- text --- */

static bool has_port(const struct sbx_event *e)
{
	return e->port && e->proto != SBX_PROTO_DNS;
}

static void say_where(const struct sbx_event *e, char *buf, size_t n_buf)
{
	char addr[SBX_ADDR_STR_MAX] = "", port[16] = "";
	const char *what = e->name;
	bool brackets = !e->name[0] && e->addr.family == 6 && has_port(e);

	if (!e->name[0])
		what = e->addr.family ? sbx_addr_format(&e->addr, addr, sizeof(addr)) : "something";
	if (has_port(e))
		sbx_text_fit(port, sizeof(port), ":%u", e->port);
	sbx_text_cut(buf, n_buf, "%s%s%s%s%s", brackets ? "[" : "", what, brackets ? "]" : "", port,
		     e->proto == SBX_PROTO_UDP	? "/udp" :
		     e->proto == SBX_PROTO_ICMP ? " (icmp)" :
						  "");
}

static void say_literal(const struct sbx_event *e, char *buf, size_t n_buf)
{
	enum sbx_addr_class class = sbx_addr_class(&e->addr);

	if (class == SBX_ADDR_PUBLIC)
		sbx_text_cut(buf, n_buf, "%s", sbx_reason_help(e->reason));
	else
		sbx_text_cut(buf, n_buf,
			     "a %s address, reached only where the system policy admits it",
			     sbx_addr_class_str(class));
}

static void say_why(const struct sbx_event *e, const char *profile, char *buf, size_t n_buf)
{
	const char *remedy = sbx_policy_remedy((enum sbx_reason)e->reason);
	const char *rule = e->request[0] && e->rule[0] ? e->rule : NULL;

	switch (e->reason) {
	case SBX_REASON_DEFAULT_DENY:
		sbx_text_cut(buf, n_buf, "not in profile '%s'", profile);
		return;
	case SBX_REASON_LIST_DENY:
		sbx_text_cut(buf, n_buf, "denied by the entry '%s'", e->rule);
		return;
	case SBX_REASON_FLOOR:
		sbx_text_cut(buf, n_buf, "%s, which no profile and no flag lifts",
			     e->rule[0] ? e->rule : "the floor under cloud metadata addresses");
		return;
	case SBX_REASON_PORT:
		sbx_text_cut(buf, n_buf, "not among the ports of the entry '%s'", e->rule);
		return;
	case SBX_REASON_LITERAL_ADDRESS:
		say_literal(e, buf, n_buf);
		return;
	default:
		sbx_text_cut(buf, n_buf, "%s%s%s%s%s%s",
			     sbx_reason_help((enum sbx_reason)e->reason), rule ? ", entry '" : "",
			     rule ? rule : "", rule ? "'" : "", remedy ? ": " : "",
			     remedy ? remedy : "");
	}
}

/* A refusal without a host name, or with an address that cannot be allowed, has no entry. */
static bool can_be_allowed(const struct sbx_event *e, const char *entry)
{
	struct sbx_net_entry parsed = { 0 };
	char name[SBX_HOSTNAME_MAX + 1];
	bool ok;

	if (e->reason != SBX_REASON_DEFAULT_DENY && e->reason != SBX_REASON_PORT &&
	    e->reason != SBX_REASON_LITERAL_ADDRESS)
		return false;
	if (e->proto == SBX_PROTO_ICMP || e->proto == SBX_PROTO_OTHER ||
	    (e->proto != SBX_PROTO_DNS && !e->port))
		return false;
	if (e->name[0] ? sbx_hostname_normalise(e->name, strlen(e->name), name) != 0 :
			 sbx_addr_class(&e->addr) != SBX_ADDR_PUBLIC)
		return false;
	ok = sbx_net_entry_parse(entry, SBX_PATTERN_ANY, false, &parsed, NULL) == 0;
	sbx_net_entry_fini(&parsed);
	return ok;
}

static void say_allow(const struct sbx_event *e, char out[SBX_REFUSAL_ALLOW_MAX])
{
	bool web = e->name[0] && e->proto == SBX_PROTO_TCP &&
		   e->reason == SBX_REASON_DEFAULT_DENY &&
		   (e->port == 443 || e->port == 80); /* the ports of an entry without ports */

	if (web)
		sbx_text_cut(out, SBX_REFUSAL_ALLOW_MAX, "%s", e->name);
	else
		say_where(e, out, SBX_REFUSAL_ALLOW_MAX);
	if (!can_be_allowed(e, out))
		out[0] = '\0';
}

void sbx_refusals_at(const struct sbx_refusals *list, size_t i, const char *profile,
		     struct sbx_refusal *ret_refusal)
{
	const struct sbx_event *e = &list->v[i].e;

	ret_refusal->event = e;
	ret_refusal->failed = sbx_reason_is_failure((enum sbx_reason)e->reason);
	say_where(e, ret_refusal->where, sizeof(ret_refusal->where));
	sbx_text_cut(ret_refusal->request, sizeof(ret_refusal->request), "%s%s", e->request,
		     list->v[i].has_others ? " and others" : "");
	say_why(e, profile, ret_refusal->why, sizeof(ret_refusal->why));
	say_allow(e, ret_refusal->allow);
}

static enum sbx_proto proto_of(const char *word)
{
	int i = 0;

	while (word && i < SBX_N_PROTOS && strcmp(word, sbx_proto_str((enum sbx_proto)i)) != 0)
		i++;
	return word && i < SBX_N_PROTOS ? (enum sbx_proto)i : SBX_PROTO_TCP;
}

void sbx_refusal_row_allow(const struct sbx_store_denies_row *d, char out[SBX_REFUSAL_ALLOW_MAX])
{
	struct sbx_event e = { .action = SBX_DENY, .count = 1 };

	out[0] = '\0';
	e.reason = (uint8_t)sbx_reason_find(d->last_reason);
	if (d->last_ip && sbx_addr_parse(d->last_ip, &e.addr) != 0)
		return;
	if (sbx_text_copy(e.name, sizeof(e.name), d->last_name ? d->last_name : "") != 0)
		return;
	e.port = d->last_port > 0 && d->last_port < 65536 ? (uint16_t)d->last_port : 0;
	/* a question has no port: 53 is the resolver's */
	e.proto = e.port == 0 ? SBX_PROTO_DNS : proto_of(d->last_protocol);
	say_allow(&e, out);
}

/* Only an IPv6 address has characters that a shell treats specially. */
const char *sbx_refusal_line(const struct sbx_refusal *r, char *buf, size_t n_buf)
{
	const char *quote = strchr(r->allow, '[') ? "'" : "";
	char line[SBX_REFUSAL_LINE_MAX];

	sbx_text_cut(line, sizeof(line), "%s %llux %s%s%s (%s)%s%s%s%s",
		     r->failed ? "failed" : "refused", (unsigned long long)r->event->count,
		     r->where, r->request[0] ? " " : "", r->request, r->why,
		     r->allow[0] ? "; allow with --allow " : "", r->allow[0] ? quote : "", r->allow,
		     r->allow[0] ? quote : "");
	return sbx_escape(line, strlen(line), buf, n_buf);
}
