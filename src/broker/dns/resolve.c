/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names to addresses, outside.
 *
 * A name is looked for in the hosts file first; then the resolvers are asked for A and AAAA, side
 * by side. A family may fail or not exist while the other has an address. After a truncated answer
 * the question is asked again by TCP; if TCP fails, the truncated answer is the result (`partial`).
 *
 * One entry per name, found by a chained hash; all waiters for a name share one question. At most
 * ENTRIES_MAX entries: past that the oldest without waiters makes room. If all have waiters, the
 * name fails.
 */

#include "broker/dns/resolve.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "broker/dns/resolve_ares.h"
#include "broker/names/hosts.h"

#define ENTRIES_MAX  1024
#define N_BUCKETS    256 /* a power of two */
#define TTL_MIN_S    1	 /* of an entry of this table; the sandbox gets the TTL that came */
#define TTL_MAX_S    60
#define TTL_FAILED_S 2
#define TTL_HOSTS_S  3600 /* the hosts file does not change: it was read once */

/* One family of a name that is being asked for. */
struct question {
	struct sbx_resolve_entry *e;
	uint8_t family;
	bool by_tcp; /* asked again: `answer` came by UDP */
	struct sbx_resolve_answer answer;
};

struct sbx_resolve_entry {
	struct sbx_resolve *r;
	struct sbx_resolve_entry *chain; /* of the bucket */
	struct sbx_resolve_entry *older, *newer;
	struct sbx_resolve_waiter *first; /* of the list */
	struct sbx_resolve_result result;
	uint64_t since_ms, until_ms; /* the result came, and is used until then */
	uint32_t ttl_s;		     /* of the result, when it came */
	struct question *questions;  /* for A and AAAA, while n_running */
	uint8_t n_running;	     /* questions without an answer; 0: the result is complete */
	bool cancelled;		     /* the result is none: it is not kept */
	bool starting;		     /* while the questions are sent: an answer may come at once */
	char name[];
};

struct sbx_resolve {
	struct sbx_context *ctx;
	struct sbx_span hosts; /* borrowed: the text of the hosts file */
	struct sbx_ares *ares;
	struct sbx_resolve_entry *buckets[N_BUCKETS];
	struct sbx_resolve_entry *oldest, *newest;
	size_t n_entries;
	struct sbx_resolve_result literal; /* an address in text */
};

int sbx_resolve_configure(struct sbx_resolve *r, struct sbx_span hosts)
{
	const struct sbx_msg_config *config = &r->ctx->config;

	r->hosts = hosts;
	return sbx_ares_set_servers(r->ares, config->resolvers, config->n_resolvers);
}

/* --- entries --- */

static struct sbx_resolve_entry **bucket_of(struct sbx_resolve *r, const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return &r->buckets[h & (N_BUCKETS - 1)];
}

static struct sbx_resolve_entry *find(struct sbx_resolve *r, const char *name)
{
	struct sbx_resolve_entry *e = *bucket_of(r, name);

	while (e && strcmp(e->name, name) != 0)
		e = e->chain;
	return e;
}

static void unlink_entry(struct sbx_resolve *r, struct sbx_resolve_entry *e)
{
	struct sbx_resolve_entry **at = bucket_of(r, e->name);

	while (*at != e)
		at = &(*at)->chain;
	*at = e->chain;
	*(e->older ? &e->older->newer : &r->oldest) = e->newer;
	*(e->newer ? &e->newer->older : &r->newest) = e->older;
	r->n_entries--;
}

static void free_entry(struct sbx_resolve_entry *e)
{
	free(e->questions);
	free(e);
}

static bool make_room(struct sbx_resolve *r)
{
	struct sbx_resolve_entry *e = r->oldest;

	if (r->n_entries < ENTRIES_MAX)
		return true;
	while (e && (e->n_running || e->first))
		e = e->newer;
	if (!e)
		return false;
	unlink_entry(r, e);
	free_entry(e);
	return true;
}

static struct sbx_resolve_entry *add_entry(struct sbx_resolve *r, const char *name)
{
	size_t n = strlen(name) + 1;
	struct sbx_resolve_entry *e = make_room(r) ? calloc(1, sizeof(*e) + n) : NULL, **bucket;

	if (!e)
		return NULL;
	e->r = r;
	e->result.first_family = 6;
	memcpy(e->name, name, n);
	bucket = bucket_of(r, name);
	e->chain = *bucket;
	*bucket = e;
	e->older = r->newest;
	*(r->newest ? &r->newest->newer : &r->oldest) = e;
	r->newest = e;
	r->n_entries++;
	return e;
}

/* Makes the result from the answers (the hosts file's is there already) and tells all waiters. */
static void complete(struct sbx_resolve_entry *e)
{
	uint32_t keep_s = e->ttl_s;
	struct sbx_resolve_result result;

	if (e->questions) {
		uint8_t first_family = e->result.first_family;

		sbx_resolve_result_merge(&e->questions[0].answer, &e->questions[1].answer,
					 &e->result);
		e->result.first_family = first_family;
		free(e->questions);
		e->questions = NULL;
		keep_s = e->ttl_s = e->result.ttl_s;
	}
	if (e->result.n == 0)
		keep_s = TTL_FAILED_S;
	else if (keep_s < TTL_MIN_S)
		keep_s = TTL_MIN_S;
	else if (keep_s > TTL_MAX_S)
		keep_s = TTL_MAX_S;
	e->since_ms = sbx_now_ms();
	e->until_ms = e->cancelled ? 0 : e->since_ms + 1000ull * keep_s;
	e->cancelled = false;
	result = e->result;
	/* A waiter may ask for this name again: it gets the result at once, and the list
	 * shrinks. */
	while (e->first) {
		struct sbx_resolve_waiter *w = e->first;

		sbx_resolve_cancel(w);
		w->done(w, &result);
	}
}

static void finish_one(struct sbx_resolve_entry *e)
{
	if (--e->n_running == 0 && !e->starting)
		complete(e);
}

/* --- answers --- */

static void add_addr(struct sbx_resolve_answer *a, uint8_t family, const void *addr, int ttl_s)
{
	uint32_t ttl = ttl_s > 0 ? (uint32_t)ttl_s : 0;

	if (a->n == SBX_RESOLVE_ADDRS_MAX) {
		a->partial = true;
		return;
	}
	if (a->n == 0 || ttl < a->ttl_s)
		a->ttl_s = ttl;
	a->v[a->n] = (struct sbx_addr){ .family = family };
	memcpy(a->v[a->n++].b, addr, family == 4 ? 4 : 16);
}

/* The addresses of a message. Returns c-ares' status. */
static int read_addrs(uint8_t family, const unsigned char *p, int n_p, struct sbx_resolve_answer *a)
{
	struct ares_addrttl v4[SBX_RESOLVE_ADDRS_MAX + 1];
	struct ares_addr6ttl v6[SBX_RESOLVE_ADDRS_MAX + 1];
	int n = SBX_RESOLVE_ADDRS_MAX + 1, r;

	if (family == 4)
		r = ares_parse_a_reply(p, n_p, NULL, v4, &n);
	else
		r = ares_parse_aaaa_reply(p, n_p, NULL, v6, &n);
	for (int i = 0; r == ARES_SUCCESS && i < n; i++) {
		if (family == 4)
			add_addr(a, 4, &v4[i].ipaddr, v4[i].ttl);
		else
			add_addr(a, 6, &v6[i].ip6addr, v6[i].ttl);
	}
	return r;
}

/* Reads the answer from @status and the message. False: the message is truncated. */
static bool read_answer(uint8_t family, int status, const unsigned char *p, int n_p,
			struct sbx_resolve_answer *a)
{
	bool has_message = (status == ARES_SUCCESS || status == ARES_ENODATA) && n_p >= NS_HFIXEDSZ;
	bool truncated = has_message && p[2] & 0x02;

	*a = (struct sbx_resolve_answer){ .status = SBX_RESOLVE_FAILED };
	if (status == ARES_ENOTFOUND)
		a->status = SBX_RESOLVE_NXDOMAIN;
	if (status == ARES_ENODATA)
		a->status = SBX_RESOLVE_FOUND;
	if (status == ARES_SUCCESS) {
		int r = read_addrs(family, p, n_p, a);

		/* c-ares reads at most 512 bytes of a datagram, and drops the rest. */
		truncated |= r != ARES_SUCCESS && r != ARES_ENODATA;
		if (r == ARES_SUCCESS || r == ARES_ENODATA)
			a->status = SBX_RESOLVE_FOUND;
	}
	if (truncated && a->n == 0)
		a->status = SBX_RESOLVE_FAILED;
	return !truncated;
}

static void send_question(struct question *q, enum sbx_ares_way way);

static enum sbx_ares_way way_of(const struct question *q)
{
	return q->by_tcp		? SBX_ARES_TCP :
	       q->e->r->ctx->follows ? SBX_ARES_UDP :
					SBX_ARES_AUTO;
}

static void on_answer(void *userdata, int status, int timeouts, unsigned char *p, int n_p)
{
	struct question *q = userdata;
	struct sbx_resolve_answer answer;
	bool whole;

	(void)timeouts;
	if (status == ARES_EDESTRUCTION)
		return;
	if (status == ARES_ECANCELLED && q->e->first) { /* others were unwanted */
		send_question(q, way_of(q));
		return;
	}
	q->e->cancelled |= status == ARES_ECANCELLED;
	whole = read_answer(q->family, status, p, n_p, &answer);
	if (!q->by_tcp) {
		q->answer = answer;
		if (!whole && q->e->r->ctx->follows) {
			q->answer.partial = true; /* part of an answer is better than none */
			q->by_tcp = true;
			send_question(q, SBX_ARES_TCP);
			return;
		}
	} else if (answer.status != SBX_RESOLVE_FAILED) {
		answer.partial |= !whole;
		q->answer = answer;
	}
	finish_one(q->e);
}

static void send_question(struct question *q, enum sbx_ares_way way)
{
	sbx_ares_query(q->e->r->ares, way, q->e->name, q->family == 4 ? ns_t_a : ns_t_aaaa,
		       on_answer, q);
}

static bool look_up_hosts(struct sbx_resolve_entry *e)
{
	struct sbx_resolve_result *result = &e->result;

	result->n = sbx_hosts_lookup(e->r->hosts, e->name, result->v, SBX_RESOLVE_ADDRS_MAX);
	if (result->n == 0)
		return false;
	result->status4 = result->status6 = SBX_RESOLVE_FOUND;
	result->partial = result->n == SBX_RESOLVE_ADDRS_MAX;
	result->ttl_s = e->ttl_s = TTL_HOSTS_S;
	return true;
}

/* Asks anew. On return the result is complete (n_running is 0) if the hosts file has the name, or
 * if c-ares failed at once. */
static void ask(struct sbx_resolve_entry *e)
{
	if (!look_up_hosts(e)) {
		e->result = (struct sbx_resolve_result){ .first_family = e->result.first_family };
		e->questions =
			e->r->ctx->config.n_resolvers ? calloc(2, sizeof(*e->questions)) : NULL;
	}
	if (e->questions) {
		e->starting = true;
		e->n_running = 2;
		for (int i = 1; i >= 0; i--) {
			e->questions[i].e = e;
			e->questions[i].family = i == 0 ? 4 : 6;
			send_question(&e->questions[i], way_of(&e->questions[i]));
		}
		e->starting = false;
	}
	if (e->n_running == 0)
		complete(e);
}

/* --- asking --- */

static const struct sbx_resolve_result *resolve(struct sbx_resolve *r, const char *name, bool anew,
						struct sbx_resolve_waiter *w, sbx_resolve_fn done)
{
	static const struct sbx_resolve_result failed = { .n = 0 };
	struct sbx_resolve_entry *e;
	uint64_t age_s;

	sbx_resolve_cancel(w);
	if (sbx_addr_parse(name, &r->literal.v[0]) == 0) {
		r->literal.n = 1;
		r->literal.first_family = r->literal.v[0].family;
		r->literal.status4 = r->literal.status6 = SBX_RESOLVE_FOUND;
		r->literal.ttl_s = TTL_HOSTS_S;
		return &r->literal;
	}
	e = find(r, name);
	if (!e) {
		e = add_entry(r, name);
		if (!e)
			return &failed;
	}
	if (e->n_running == 0 && (anew || sbx_now_ms() >= e->until_ms))
		ask(e);
	if (e->n_running == 0) {
		age_s = (sbx_now_ms() - e->since_ms) / 1000;
		e->result.ttl_s = e->ttl_s > age_s ? e->ttl_s - (uint32_t)age_s : 0;
		return &e->result;
	}
	w->entry = e;
	w->done = done;
	w->prev = NULL;
	w->next = e->first;
	if (e->first)
		e->first->prev = w;
	e->first = w;
	return NULL;
}

const struct sbx_resolve_result *sbx_resolve_name(struct sbx_resolve *r, const char *name,
						  struct sbx_resolve_waiter *w, sbx_resolve_fn done)
{
	return resolve(r, name, false, w, done);
}

const struct sbx_resolve_result *sbx_resolve_anew(struct sbx_resolve *r, const char *name,
						  struct sbx_resolve_waiter *w, sbx_resolve_fn done)
{
	return resolve(r, name, true, w, done);
}

void sbx_resolve_send(struct sbx_resolve *r, const uint8_t *query, size_t n_query,
		      void (*done)(void *userdata, int status, int timeouts, unsigned char *answer,
				   int n_answer),
		      void *userdata)
{
	if (r->ctx->config.n_resolvers == 0)
		done(userdata, ARES_ESERVFAIL, 0, NULL, 0);
	else
		sbx_ares_send(r->ares, SBX_ARES_AUTO, query, n_query, done, userdata);
}

void sbx_resolve_drop_unwanted(struct sbx_resolve *r, size_t n_forwards)
{
	bool unwanted = n_forwards > 0;

	for (const struct sbx_resolve_entry *e = r->oldest; e && !unwanted; e = e->newer)
		unwanted = e->n_running && !e->first;
	if (unwanted)
		sbx_ares_cancel(r->ares);
}

void sbx_resolve_cancel(struct sbx_resolve_waiter *w)
{
	if (!w->entry)
		return;
	*(w->prev ? &w->prev->next : &w->entry->first) = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->entry = NULL;
	w->prev = w->next = NULL;
}

void sbx_resolve_reached(struct sbx_resolve *r, const char *name, const struct sbx_addr *addr)
{
	struct sbx_resolve_entry *e = find(r, name);

	if (!e || e->n_running)
		return;
	e->result.first_family = addr->family;
	for (size_t i = 1; i < e->result.n; i++)
		if (sbx_addr_equal(&e->result.v[i], addr)) {
			e->result.v[i] = e->result.v[0];
			e->result.v[0] = *addr;
			return;
		}
}

int sbx_resolve_new(struct sbx_context *ctx, struct sbx_resolve **ret_resolve)
{
	struct sbx_resolve *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	*ret_resolve = r;
	r->ctx = ctx;
	return sbx_ares_new(ctx->base, ctx->follows ? SBX_ARES_N_WAYS : 1, &r->ares);
}

void sbx_resolve_free(struct sbx_resolve *r)
{
	if (!r)
		return;
	sbx_ares_free(r->ares);
	while (r->oldest) {
		struct sbx_resolve_entry *e = r->oldest;

		unlink_entry(r, e);
		free_entry(e);
	}
	free(r);
}
