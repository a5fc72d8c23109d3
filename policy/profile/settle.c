/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Settling: which entries are terminated.
 *
 * An entry that says nothing about requests inherits from the most specific entry over it that says
 * something: a copy of that entry with its own names, for the ports that both have. So neither
 * --allow HOST nor a secret lifts the `access` of a wildcard.
 *
 * A copy for a secret's host is more specific than the entry that it is made of. So it would also
 * win over deny entries between the two. For that reason the levels above the host are walked from
 * the most specific to the least, as a decision walks them, with the set of ports that are decided
 * already: a copy gets what is left.
 *
 * Rules of one pattern that overlap: the last of those that say something about requests wins, then
 * the last (policy_compile.c).
 */

#include "policy/profile/settle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/ports.h"

/* Does the entry say how its requests are treated, be it that they are not read? */
static bool says_requests(const struct sbx_net_entry *e)
{
	return sbx_net_entry_asks_terminate(e) || e->any_said || e->passthrough ||
	       (e->check_set && e->check == SBX_CHECK_NONE);
}

bool sbx_net_entry_asks_terminate(const struct sbx_net_entry *e)
{
	return e->access != SBX_ACCESS_ANY || e->headers.n > 0 || e->inspect || e->websocket ||
	       e->max_request_bytes > 0 || e->cert;
}

size_t sbx_profile_terminated(const struct sbx_profile *p, const struct sbx_net_entry **v,
			      size_t n_max)
{
	size_t n = 0;

	for (size_t i = 0; i < p->network.allow.n; i++) {
		if (!p->network.allow.v[i].terminate)
			continue;
		if (n < n_max)
			v[n] = &p->network.allow.v[i];
		n++;
	}
	return n;
}

static bool is_tcp(const struct sbx_net_entry *e, bool deny)
{
	return e->proto == SBX_PROTO_TCP || (deny && !e->proto_set);
}

/* --- inheriting --- */

struct inheriting {
	struct sbx_net_list *allow;
	size_t *saying; /* indices of the entries that say something; a profile may have thousands
			 * that do not */
	size_t n_saying, n_written; /* entries before the copies */
	size_t n_inherited;
	struct sbx_ports taken; /* of the entry that inherits: decided already */
	struct sbx_err *err;
};

static void inheriting_fini(struct inheriting *h)
{
	free(h->saying);
}

/* Put the copy in the place of the entry @at where it has all of its ports; else append it. */
static int put_copy(struct inheriting *h, size_t at, struct sbx_net_entry *copy)
{
	struct sbx_net_entry *e = &h->allow->v[at];

	h->n_inherited++;
	if (strcmp(copy->text, e->text) != 0)
		return sbx_net_list_append(h->allow, copy);
	sbx_net_entry_fini(e);
	*e = *copy;
	*copy = (struct sbx_net_entry){ 0 };
	h->saying[h->n_saying++] = at;
	return 0;
}

/* Make a copy of @from for the names of the entry @at: for its ports that @from has and that are
 * not taken. They are taken afterwards. */
static int inherit_from(struct inheriting *h, size_t at, const struct sbx_net_entry *from)
{
	const struct sbx_net_entry *e = &h->allow->v[at];
	SBX_CLEANUP(sbx_net_entry_fini) struct sbx_net_entry copy = { 0 };
	struct sbx_ports others = { { 0 } }; /* of which there is nothing to copy */
	size_t n_left;
	int r;

	sbx_ports_add(&others, from, false);
	for (size_t i = 0; i < sizeof(others.bits); i++)
		others.bits[i] = (uint8_t)(~others.bits[i] | h->taken.bits[i]);
	if (!sbx_ports_left(e, &others, &copy, &n_left)) {
		sbx_err_set(h->err,
			    "network.allow: entry '%s' shares more than 16 ranges of ports with "
			    "'%s', whose access and so on hold for it too: give it 'access'",
			    e->text, from->text);
		return SBX_PROFILE_E_INVALID;
	}
	sbx_ports_add(&h->taken, from, false);
	if (n_left == 0 || !sbx_net_entry_asks_terminate(from))
		return 0;
	r = sbx_net_entry_copy_for(from, e, &copy);
	if (r < 0)
		return r;
	copy.terminate = true;
	copy.private_ok = e->private_ok;
	copy.check_set = e->check_set;
	copy.check = e->check;
	copy.line = e->line;
	copy.column = e->column;
	free(copy.file);
	copy.file = e->file ? strdup(e->file) : NULL;
	if (e->file && !copy.file)
		return -ENOMEM;
	return put_copy(h, at, &copy);
}

/* The entries for the names of @level that say something, the last first: it wins. */
static int inherit_level(struct inheriting *h, size_t at, const struct sbx_net_entry *level)
{
	size_t n_saying = h->n_saying, n_copies = h->allow->n - h->n_written;
	int r = 0;

	for (size_t i = n_copies + n_saying; r == 0 && i-- > 0;) {
		/* The list may move when a copy is appended. */
		struct sbx_net_entry from =
			h->allow->v[i < n_saying ? h->saying[i] : h->n_written + i - n_saying];

		if (!sbx_net_entry_same_names(&from, level))
			continue;
		if (sbx_net_entry_same_names(&from, &h->allow->v[at]))
			sbx_ports_add(&h->taken, &from, false); /* policy_compile.c prefers it */
		else
			r = inherit_from(h, at, &from);
	}
	return r;
}

static int inherit_all_levels(struct inheriting *h, size_t at)
{
	SBX_AUTO_FREE char *host = strdup(h->allow->v[at].host);
	struct sbx_net_entry own = { .wildcard = h->allow->v[at].wildcard, .host = host };
	int r;

	if (!host)
		return -ENOMEM;
	h->taken = (struct sbx_ports){ { 0 } };
	r = inherit_level(h, at, &own);
	for (char *dot = strchr(host, '.'); r == 0 && dot; dot = strchr(dot + 1, '.')) {
		struct sbx_net_entry level = { .wildcard = true, .host = dot + 1 };

		r = inherit_level(h, at, &level);
	}
	return r;
}

/* Let the entries that say nothing about requests inherit. */
static int inherit(struct sbx_profile *p, struct sbx_err *err)
{
	SBX_CLEANUP(inheriting_fini)
	struct inheriting h = { .allow = &p->network.allow,
				.n_written = p->network.allow.n,
				.err = err };
	int r = 0;

	h.saying = calloc(h.n_written + 1, sizeof(*h.saying));
	if (!h.saying)
		return -ENOMEM;
	for (size_t i = 0; i < h.n_written; i++) {
		const struct sbx_net_entry *e = &h.allow->v[i];

		if (!e->is_cidr && is_tcp(e, false) && says_requests(e))
			h.saying[h.n_saying++] = i;
	}
	/* More copies than that are refused in check_entries(). */
	for (size_t i = h.n_written; r == 0 && i-- > 0 && h.n_inherited <= SBX_TERMINATED_MAX;) {
		const struct sbx_net_entry *e = &h.allow->v[i];

		if (!e->is_cidr && is_tcp(e, false) && !says_requests(e))
			r = inherit_all_levels(&h, i);
	}
	return r;
}

/* --- secrets --- */

struct settling {
	struct sbx_profile *p;
	const struct sbx_secret *secret;
	const struct sbx_net_entry *host; /* one of the secret's */
	const char *host_text;
	struct sbx_ports taken; /* decided by more specific entries */
	bool found;	    /* an entry allows the host */
	bool tls;	    /* on a port whose connections begin with TLS */
	struct sbx_err *err;
};

static int refuse_entry(const struct settling *s, const struct sbx_net_entry *e, const char *why)
{
	sbx_err_set(s->err, "secret '%s': network.allow: entry '%s' %s", s->secret->name, e->text,
		    why);
	return SBX_PROFILE_E_INVALID;
}

/* A secret goes to hosts of @e: may it be terminated? */
static int check_for_secret(const struct settling *s, const struct sbx_net_entry *e)
{
	if (e->passthrough)
		return refuse_entry(s, e,
				    "says passthrough, so the secret cannot be put in there: "
				    "remove passthrough, or the secret's host");
	if (e->check_set && e->check == SBX_CHECK_NONE)
		return refuse_entry(s, e,
				    "says check: none, but a secret is put into HTTP only: remove "
				    "the check, or the secret's host");
	return 0;
}

/* Note that @e allows hosts of the secret, on its ports that are not in @taken. */
static void note_found(struct settling *s, const struct sbx_net_entry *e,
		       const struct sbx_ports *taken)
{
	struct sbx_port_range ranges[SBX_PORTS_MAX];
	size_t n = sbx_net_entry_ranges(e, false, ranges);

	for (size_t i = 0; i < n; i++) {
		for (unsigned port = ranges[i].first; port <= ranges[i].last; port++) {
			if (sbx_ports_has(taken, port))
				continue;
			s->found = true;
			s->tls |= e->check_set ? e->check == SBX_CHECK_TLS : port != 80;
		}
	}
}

/* Terminate the entries at or below the host's pattern. */
static int mark_entries(struct settling *s)
{
	const struct sbx_ports none = { { 0 } };
	struct sbx_net_list *allow = &s->p->network.allow;

	for (size_t i = 0; i < allow->n; i++) {
		struct sbx_net_entry *e = &allow->v[i];
		int r;

		if (!is_tcp(e, false) || !sbx_net_entry_covers(s->host, e))
			continue;
		r = check_for_secret(s, e);
		if (r != 0)
			return r;
		e->terminate = true;
		note_found(s, e, sbx_net_entry_same_names(s->host, e) ? &s->taken : &none);
	}
	for (size_t i = 0; i < allow->n; i++) {
		if (is_tcp(&allow->v[i], false) && sbx_net_entry_same_names(s->host, &allow->v[i]))
			sbx_ports_add(&s->taken, &allow->v[i], false);
	}
	return 0;
}

/* Append a copy of @e with the secret's host and the ports that are left of it. */
static int add_copy(struct settling *s, const struct sbx_net_entry *e)
{
	SBX_CLEANUP(sbx_net_entry_fini) struct sbx_net_entry copy = { 0 };
	size_t n_left;
	int r;

	if (!sbx_ports_left(e, &s->taken, &copy, &n_left))
		return refuse_entry(s, e,
				    "leaves the secret's host more than 16 ranges of ports: name "
				    "the host in network.allow with its ports");
	if (n_left == 0)
		return 0;
	note_found(s, e, &s->taken);
	if (e->terminate)
		return 0; /* the host is terminated with it */
	r = check_for_secret(s, e);
	if (r != 0)
		return r;
	r = sbx_net_entry_copy_for(e, s->host, &copy);
	if (r < 0)
		return r;
	copy.terminate = true;
	return sbx_net_list_append(&s->p->network.allow, &copy);
}

/* The allow entries for the names of @level: of two for a port the one that a decision prefers. */
static int copy_level(struct settling *s, const struct sbx_net_entry *level, size_t n_allow,
		      bool saying)
{
	int r = 0;

	for (size_t i = n_allow; r == 0 && i-- > 0;) {
		/* The list may move when a copy is appended. */
		struct sbx_net_entry e = s->p->network.allow.v[i];

		if (!is_tcp(&e, false) || !sbx_net_entry_same_names(&e, level) ||
		    says_requests(&e) != saying)
			continue;
		r = add_copy(s, &e);
		sbx_ports_add(&s->taken, &e, false);
	}
	return r;
}

/* The ports of the deny entries for just these names are taken. */
static void take_denied(struct settling *s, const struct sbx_net_entry *names)
{
	const struct sbx_net_list *deny = &s->p->network.deny;

	for (size_t i = 0; i < deny->n; i++) {
		if (is_tcp(&deny->v[i], true) && sbx_net_entry_same_names(&deny->v[i], names))
			sbx_ports_add(&s->taken, &deny->v[i], true);
	}
}

/* The level of the names below a parent: denies before allows, as a decision goes. */
static int settle_level(struct settling *s, const struct sbx_net_entry *level, size_t n_allow)
{
	int r;

	take_denied(s, level);
	r = copy_level(s, level, n_allow, true);
	return r == 0 ? copy_level(s, level, n_allow, false) : r;
}

/* No entry allows the host, or none over TLS. */
static int refuse_host(const struct settling *s)
{
	const struct sbx_net_list *deny = &s->p->network.deny;
	const char *name = s->secret->name;

	if (s->found) {
		sbx_err_set(s->err,
			    "secret '%s': host '%s' is allowed on ports of plain HTTP only, and a "
			    "secret is sent over TLS only: allow port 443",
			    name, s->host_text);
		return SBX_PROFILE_E_INVALID;
	}
	for (size_t i = 0; i < deny->n; i++) {
		if (!is_tcp(&deny->v[i], true) || !sbx_net_entry_covers(&deny->v[i], s->host))
			continue;
		sbx_err_set(s->err,
			    "secret '%s': host '%s' is refused by the entry '%s' of network.deny "
			    "(--deny): leave out one of the two",
			    name, s->host_text, deny->v[i].text);
		return SBX_PROFILE_E_INVALID;
	}
	sbx_err_set(s->err,
		    "secret '%s': host '%s' is not allowed by the profile; add it to "
		    "network.allow, or --allow %s",
		    name, s->host_text, s->host_text);
	return SBX_PROFILE_E_INVALID;
}

static int settle_host(struct settling *s)
{
	char default_text[] = "default: allow";
	const struct sbx_net_entry by_default = { .text = default_text,
						  .proto = SBX_PROTO_TCP,
						  .by_default = true };
	size_t n_allow = s->p->network.allow.n;
	int r;

	take_denied(s, s->host);
	r = mark_entries(s);
	for (char *dot = strchr(s->host->host, '.'); r == 0 && dot; dot = strchr(dot + 1, '.')) {
		struct sbx_net_entry level = { .wildcard = true, .host = dot + 1 };

		r = settle_level(s, &level, n_allow);
	}
	if (r == 0 && s->p->network.default_action == SBX_ALLOW)
		r = add_copy(s, &by_default);
	return r != 0 || (s->found && s->tls) ? r : refuse_host(s);
}

static int settle_all_hosts(struct sbx_profile *p, struct sbx_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_secrets; i++) {
		const struct sbx_secret *secret = &p->secrets[i];

		for (size_t k = 0; r == 0 && k < secret->hosts.n; k++) {
			struct settling s = { .p = p,
					      .secret = secret,
					      .host = &secret->hosts.v[k],
					      .host_text = secret->hosts.v[k].text,
					      .err = err };

			r = settle_host(&s);
		}
	}
	return r;
}

/* --- contradictions --- */

/* May @other stand beside the terminated entry @e? */
static int check_pair(const struct sbx_net_entry *e, const struct sbx_net_entry *other,
		      struct sbx_err *err)
{
	if (other->is_cidr || !sbx_ports_shared(e, other))
		return 0;
	if (other->proto == SBX_PROTO_UDP &&
	    (sbx_net_entry_covers(e, other) || sbx_net_entry_covers(other, e))) {
		sbx_err_set(err,
			    "network.allow: entry '%s' would let HTTP/3 pass by the entry '%s', "
			    "which is terminated: remove one of them, or give them other ports",
			    other->text, e->text);
		return SBX_PROFILE_E_INVALID;
	}
	if (other->passthrough && sbx_net_entry_same_names(e, other)) {
		sbx_err_set(err,
			    "network.allow: entry '%s' is there with passthrough and without, and "
			    "one of them is terminated: remove one",
			    other->text);
		return SBX_PROFILE_E_INVALID;
	}
	return 0;
}

static int check_entries(const struct sbx_profile *p, struct sbx_err *err)
{
	const struct sbx_net_entry *v[SBX_TERMINATED_MAX];
	size_t n = sbx_profile_terminated(p, v, SBX_TERMINATED_MAX);
	int r = 0;

	if (n > SBX_TERMINATED_MAX) {
		sbx_err_set(err,
			    "network.allow: %zu entries are terminated (access, headers, inspect, "
			    "secrets and so on), and %d can be: use wildcards, or fewer",
			    n, SBX_TERMINATED_MAX);
		return SBX_PROFILE_E_INVALID;
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		for (size_t k = 0; r == 0 && k < p->network.allow.n; k++)
			r = check_pair(v[i], &p->network.allow.v[k], err);
	}
	return r;
}

/* Mode full and attach cgroup have no place where flows are terminated. @what needs one. */
static int check_network(const struct sbx_profile *p, const char *kind, const char *what,
			 struct sbx_err *err)
{
	if (p->network.mode == SBX_MODE_FULL)
		sbx_err_set(err,
			    "%s '%s': mode full carries connections unread: use mode fetch with "
			    "network.default: allow",
			    kind, what);
	else if (p->network.attach == SBX_NET_ATTACH_CGROUP)
		sbx_err_set(err,
			    "%s '%s': it needs the broker, which attach cgroup does not have in "
			    "the way: use attach netns",
			    kind, what);
	else
		return 0;
	return SBX_PROFILE_E_INVALID;
}

int sbx_profile_settle_secrets(struct sbx_profile *p, struct sbx_err *err)
{
	const struct sbx_net_entry *first = NULL;
	int r = 0;

	for (size_t i = 0; i < p->network.allow.n; i++) {
		struct sbx_net_entry *e = &p->network.allow.v[i];

		e->terminate = e->terminate || sbx_net_entry_asks_terminate(e);
		if (e->terminate && !first)
			first = e;
	}
	if (p->network.mode == SBX_MODE_OFFLINE)
		return 0;
	if (p->n_secrets > 0)
		r = check_network(p, "secret", p->secrets[0].name, err);
	else if (first)
		r = check_network(p, "network.allow: entry", first->text, err);
	if (r == 0 && first)
		r = inherit(p, err);
	if (r == 0)
		r = settle_all_hosts(p, err);
	return r == 0 ? check_entries(p, err) : r;
}
