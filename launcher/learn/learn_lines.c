/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each learned thing becomes one of four: an entry for a name and a port; an entry for the requests
 * of a terminated host, which replaces the profile's own entry and so has all that that one admits
 * besides; a comment, for what no entry may allow (a deny entry or a floor refused it) or what only
 * its owner should (a private address); nothing, for what the profile allows already.
 *
 * A name that was refused by DNS has no port: its client never came so far. Its entry has the
 * default ports, and the comment says so. If the name is known with a port, that one is enough.
 */
#include "launcher/learn/learn_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policy/profile/net_entry.h"

/* "name", "name:443", "[2001:db8::1]:53/udp". False: no entry can say it. */
static bool as_entry(const struct sbx_event *e, char *buf, size_t n_buf)
{
	char addr[SBX_ADDR_STR_MAX] = "", name[SBX_HOSTNAME_MAX + 1], port[16] = "";
	bool v6 = !e->name[0] && e->addr.family == 6;
	struct sbx_net_entry parsed = { 0 };
	const char *what = name;
	bool ok;

	if (e->proto == SBX_PROTO_ICMP || e->proto == SBX_PROTO_OTHER ||
	    (e->proto != SBX_PROTO_DNS && !e->port))
		return false;
	if (e->name[0] && (sbx_hostname_normalise(e->name, strlen(e->name), name) != 0 ||
			   strcmp(e->name, name) != 0))
		return false;
	if (!e->name[0] && (!e->addr.family || sbx_addr_class(&e->addr) != SBX_ADDR_PUBLIC))
		return false;
	if (!e->name[0])
		what = sbx_addr_format(&e->addr, addr, sizeof(addr));
	if (sbx_learn_has_port(e))
		sbx_text_fit(port, sizeof(port), ":%u", e->port);
	if (sbx_text_format(buf, n_buf, "%s%s%s%s%s", v6 ? "[" : "", what, v6 ? "]" : "", port,
			    e->proto == SBX_PROTO_UDP ? "/udp" : "") < 0)
		return false;
	ok = sbx_net_entry_parse(buf, SBX_PATTERN_ANY, false, &parsed, NULL) == 0;
	sbx_net_entry_fini(&parsed);
	return ok;
}

static enum sbx_learn_kind judge(const struct sbx_profile *profile, bool allowed,
				 const struct sbx_event *e)
{
	if (e->action == SBX_ALLOW)
		return e->reason == SBX_REASON_DEFAULT_ALLOW ? SBX_LEARN_ENTRY : SBX_LEARN_KNOWN;
	switch (e->reason) {
	case SBX_REASON_DEFAULT_DENY:
	case SBX_REASON_PORT:
	case SBX_REASON_LITERAL_ADDRESS:
		return SBX_LEARN_ENTRY;
	case SBX_REASON_AIR_GAP: /* without a network, the profile's lists were not asked */
		return profile->network.mode == SBX_MODE_OFFLINE ? SBX_LEARN_ENTRY :
								   SBX_LEARN_NOTE;
	case SBX_REASON_RESOLVE_FAILED:
	case SBX_REASON_CONNECT_FAILED: /* outside; no entry of the profile has let it through */
		return allowed && !e->rule[0] ? SBX_LEARN_ENTRY : SBX_LEARN_NOTE;
	case SBX_REASON_ACCESS_METHOD:
	case SBX_REASON_ACCESS_PATH:
		return e->request[0] ? SBX_LEARN_REQUEST : SBX_LEARN_NOTE;
	default:
		return SBX_LEARN_NOTE;
	}
}

static void take(struct sbx_learn_lines *lines, const struct sbx_learn_line *l)
{
	for (size_t i = 0; i < lines->n; i++) {
		struct sbx_learn_line *x = &lines->v[i];

		if (l->kind != SBX_LEARN_ENTRY || x->kind != SBX_LEARN_ENTRY ||
		    strcmp(x->entry, l->entry) != 0)
			continue;
		x->count += l->count;
		if (l->first_ms < x->first_ms)
			x->first_ms = l->first_ms;
		if (l->last_ms > x->last_ms)
			x->last_ms = l->last_ms;
		return;
	}
	lines->v[lines->n++] = *l;
}

/* By kind, then by name, then by port: the text does not depend on the order of events. */
static int compare(const void *a, const void *b)
{
	const struct sbx_learn_line *x = a, *y = b;
	int r = strcmp(x->entry, y->entry);

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (r == 0)
		r = strcmp(x->from->e.name, y->from->e.name);
	if (r == 0)
		r = strcmp(x->from->e.request, y->from->e.request);
	return r;
}

static bool name_has_port(const struct sbx_learn_lines *lines, const struct sbx_learn_line *l)
{
	for (size_t i = 0; i < lines->n; i++)
		if (lines->v[i].kind == SBX_LEARN_ENTRY && !lines->v[i].dns_only &&
		    strcmp(lines->v[i].from->e.name, l->from->e.name) == 0)
			return true;
	return false;
}

int sbx_learn_lines_init(struct sbx_learn_lines *lines, const struct sbx_learn *learn,
			 const struct sbx_profile *profile, bool allowed)
{
	size_t n = 0;

	lines->v = calloc(learn->n + 1, sizeof(*lines->v));
	if (!lines->v)
		return -ENOMEM;
	for (size_t i = 0; i < learn->n; i++) {
		const struct sbx_learned *x = &learn->v[i];
		struct sbx_learn_line l = { .kind = judge(profile, allowed, &x->e),
				  .from = x,
				  .count = x->e.count,
				  .first_ms = x->e.ts_ms,
				  .last_ms = x->last_ms,
				  .dns_only = x->e.proto == SBX_PROTO_DNS };

		if (l.kind == SBX_LEARN_ENTRY && !as_entry(&x->e, l.entry, sizeof(l.entry)))
			l.kind = SBX_LEARN_NOTE;
		if (l.kind == SBX_LEARN_REQUEST &&
		    sbx_text_copy(l.entry, sizeof(l.entry), x->e.rule) < 0)
			l.kind = SBX_LEARN_NOTE;
		take(lines, &l);
	}
	for (size_t i = 0; i < lines->n; i++)
		if (lines->v[i].kind != SBX_LEARN_ENTRY || !lines->v[i].dns_only ||
		    !name_has_port(lines, &lines->v[i]))
			lines->v[n++] = lines->v[i];
	lines->n = n;
	qsort(lines->v, lines->n, sizeof(*lines->v), compare);
	return 0;
}

void sbx_learn_lines_fini(struct sbx_learn_lines *lines)
{
	free(lines->v);
	*lines = (struct sbx_learn_lines){ 0 };
}
