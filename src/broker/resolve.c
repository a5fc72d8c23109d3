/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names to addresses, outside.
 *
 * c-ares is given everything by options, so that it opens no file and reads no environment
 * (broker.c clears it): servers from CONFIG, lookups "b" (DNS only; the hosts file is ours), no
 * search domains, no aliases. A and AAAA are asked side by side; a family that fails or does not
 * exist is fine while the other has an address.
 *
 * One entry per name, found by a chained hash; it is asked once however many flows wait for it. At
 * most ENTRIES_MAX entries: past that the oldest that nobody waits for makes room, and when all are
 * waited for the name fails. c-ares' sockets are registered with the loop as it opens them; its
 * earliest timeout is one timer.
 */

#include "broker/resolve.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/broker.h"
#include "broker/core_hosts.h"

#define ENTRIES_MAX	 1024
#define N_BUCKETS	 256 /* a power of two */
#define TTL_MIN_S	 1
#define TTL_MAX_S	 60
#define TTL_FAILED_S	 2
#define QUERY_TIMEOUT_MS 2500
#define QUERY_TRIES	 3
#define SOCKETS_MAX	 32

struct sbx_resolve_entry {
	struct sbx_resolve *r;
	struct sbx_resolve_entry *chain; /* of the bucket */
	struct sbx_resolve_entry *older, *newer;
	struct sbx_resolve_waiter *first; /* who waits */
	struct sbx_resolved result;
	uint64_t until_ms; /* the result's */
	uint32_t ttl_s;	   /* the smallest that came */
	uint8_t n_running; /* queries; 0: the result is complete */
	bool starting;	   /* inside ares_query, which may answer at once */
	char name[];
};

struct ares_socket {
	int fd; /* -1: free */
	struct event ev;
};

struct sbx_resolve {
	struct sbx_broker *b;
	ares_channel channel;
	bool have_channel;
	struct event ev_timeout;
	struct ares_socket sockets[SOCKETS_MAX];
	struct sbx_resolve_entry *buckets[N_BUCKETS];
	struct sbx_resolve_entry *oldest, *newest;
	size_t n_entries;
	struct sbx_resolved literal; /* an address in text */
};

/* --- c-ares and the loop --- */

static void set_timeout(struct sbx_resolve *r)
{
	struct timeval tv, *next = ares_timeout(r->channel, NULL, &tv);

	if (next)
		event_add(&r->ev_timeout, next);
	else
		event_del(&r->ev_timeout);
}

static void on_socket(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_resolve *r = userdata;

	ares_process_fd(r->channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
			what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	set_timeout(r);
}

static void on_timeout(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_resolve *r = userdata;

	(void)fd;
	(void)what;
	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_timeout(r);
}

/* c-ares opened, changed or is about to close a socket. One for which there is no room is not
 * watched: its query times out. */
static void on_socket_state(void *userdata, ares_socket_t fd, int readable, int writable)
{
	struct sbx_resolve *r = userdata;
	struct ares_socket *s = NULL;
	short what = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0) | EV_PERSIST);

	for (size_t i = 0; i < SOCKETS_MAX; i++) {
		if (r->sockets[i].fd == fd) {
			s = &r->sockets[i];
			break;
		}
		if (r->sockets[i].fd < 0 && !s)
			s = &r->sockets[i];
	}
	if (!s)
		return;
	if (s->fd >= 0)
		event_del(&s->ev);
	s->fd = -1;
	if ((readable || writable) &&
	    event_assign(&s->ev, r->b->base, fd, what, on_socket, r) == 0 &&
	    event_add(&s->ev, NULL) == 0)
		s->fd = fd;
}

int sbx_resolve_configure(struct sbx_broker *b)
{
	const struct sbx_msg_config *config = &b->config;
	struct ares_addr_port_node nodes[SBX_RESOLVERS_MAX] = { 0 };

	for (size_t i = 0; i < config->n_resolvers; i++) {
		const struct sbx_resolver *from = &config->resolvers[i];

		nodes[i].next = i + 1 < config->n_resolvers ? &nodes[i + 1] : NULL;
		nodes[i].udp_port = nodes[i].tcp_port = from->port;
		nodes[i].family = from->addr.family == 4 ? AF_INET : AF_INET6;
		memcpy(&nodes[i].addr, from->addr.b, from->addr.family == 4 ? 4 : 16);
	}
	return ares_set_servers_ports(b->resolve->channel, config->n_resolvers ? nodes : NULL) ==
			       ARES_SUCCESS
		       ? 0
		       : -EIO;
}

static int open_channel(struct sbx_resolve *r)
{
	char lookups[] = "b";
	char *no_domains[1] = { NULL };
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = QUERY_TIMEOUT_MS,
		.tries = QUERY_TRIES,
		.ndots = 1,
		.lookups = lookups,
		.domains = no_domains,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = r,
	};
	/* Servers, domains and sort list are given, and empty: with all of these set c-ares 1.18
	 * has nothing left to look for in resolv.conf. */
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
		   ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS | ARES_OPT_SERVERS | ARES_OPT_SORTLIST |
		   ARES_OPT_NOROTATE | ARES_OPT_SOCK_STATE_CB;

	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
		return -EIO;
	if (ares_init_options(&r->channel, &options, mask) != ARES_SUCCESS)
		return -EIO;
	r->have_channel = true;
	return 0;
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
	free(e);
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

/* Everything that was asked is answered. */
static void complete(struct sbx_resolve_entry *e)
{
	uint32_t ttl_s = e->ttl_s;
	struct sbx_resolved result = e->result;

	if (e->result.n == 0)
		ttl_s = TTL_FAILED_S;
	else if (ttl_s < TTL_MIN_S)
		ttl_s = TTL_MIN_S;
	else if (ttl_s > TTL_MAX_S)
		ttl_s = TTL_MAX_S;
	e->until_ms = sbx_now_ms() + 1000ull * ttl_s;
	/* A waiter may ask again, for this name too: the entry stays, the list shrinks. */
	while (e->first) {
		struct sbx_resolve_waiter *w = e->first;

		sbx_resolve_cancel(w);
		w->done(w, &result);
	}
}

static void add_addr(struct sbx_resolve_entry *e, const struct sbx_addr *addr, int ttl_s)
{
	if (e->result.n >= SBX_RESOLVE_ADDRS_MAX)
		return;
	e->result.v[e->result.n++] = *addr;
	if (ttl_s >= 0 && (uint32_t)ttl_s < e->ttl_s)
		e->ttl_s = (uint32_t)ttl_s;
}

static void finish_one(struct sbx_resolve_entry *e)
{
	if (--e->n_running == 0 && !e->starting)
		complete(e);
}

static void on_a(void *userdata, int status, int timeouts, unsigned char *answer, int n_answer)
{
	struct sbx_resolve_entry *e = userdata;
	struct ares_addrttl found[SBX_RESOLVE_ADDRS_MAX / 2];
	int n = (int)SBX_N_ELEMENTS(found);

	(void)timeouts;
	if (status == ARES_EDESTRUCTION)
		return;
	if (status != ARES_SUCCESS ||
	    ares_parse_a_reply(answer, n_answer, NULL, found, &n) != ARES_SUCCESS)
		n = 0;
	for (int i = 0; i < n; i++) {
		struct sbx_addr addr = { .family = 4 };

		memcpy(addr.b, &found[i].ipaddr, 4);
		add_addr(e, &addr, found[i].ttl);
	}
	finish_one(e);
}

static void on_aaaa(void *userdata, int status, int timeouts, unsigned char *answer, int n_answer)
{
	struct sbx_resolve_entry *e = userdata;
	struct ares_addr6ttl found[SBX_RESOLVE_ADDRS_MAX / 2];
	int n = (int)SBX_N_ELEMENTS(found);

	(void)timeouts;
	if (status == ARES_EDESTRUCTION)
		return;
	if (status != ARES_SUCCESS ||
	    ares_parse_aaaa_reply(answer, n_answer, NULL, found, &n) != ARES_SUCCESS)
		n = 0;
	for (int i = 0; i < n; i++) {
		struct sbx_addr addr = { .family = 6 };

		memcpy(addr.b, &found[i].ip6addr, 16);
		add_addr(e, &addr, found[i].ttl);
	}
	finish_one(e);
}

/* Fill the entry anew. The result is complete on return when the hosts file has the name, or when
 * c-ares failed at once. */
static void ask(struct sbx_resolve_entry *e)
{
	struct sbx_resolve *r = e->r;

	e->result.n = sbx_hosts_lookup(sbx_span(r->b->hosts, r->b->n_hosts), e->name, e->result.v,
				       SBX_RESOLVE_ADDRS_MAX);
	e->ttl_s = TTL_MAX_S;
	if (e->result.n == 0 && r->b->config.n_resolvers) {
		e->starting = true;
		e->n_running = 2;
		ares_query(r->channel, e->name, ns_c_in, ns_t_aaaa, on_aaaa, e);
		ares_query(r->channel, e->name, ns_c_in, ns_t_a, on_a, e);
		e->starting = false;
		set_timeout(r);
	}
	if (e->n_running == 0)
		complete(e);
}

/* --- for the flows --- */

const struct sbx_resolved *sbx_resolve_name(struct sbx_resolve *r, const char *name,
					    struct sbx_resolve_waiter *w, sbx_resolve_fn done)
{
	static const struct sbx_resolved failed = { .n = 0 };
	struct sbx_resolve_entry *e;

	sbx_resolve_cancel(w);
	if (sbx_addr_parse(name, &r->literal.v[0]) == 0) {
		r->literal.n = 1;
		r->literal.first_family = r->literal.v[0].family;
		return &r->literal;
	}
	e = find(r, name);
	if (!e) {
		e = add_entry(r, name);
		if (!e)
			return &failed;
	}
	if (e->n_running == 0 && sbx_now_ms() >= e->until_ms)
		ask(e);
	if (e->n_running == 0)
		return &e->result;
	w->entry = e;
	w->done = done;
	w->prev = NULL;
	w->next = e->first;
	if (e->first)
		e->first->prev = w;
	e->first = w;
	return NULL;
}

void sbx_resolve_send(struct sbx_resolve *r, const uint8_t *query, size_t n_query,
		      void (*done)(void *userdata, int status, int timeouts, unsigned char *answer,
				   int n_answer),
		      void *userdata)
{
	if (r->b->config.n_resolvers == 0) {
		done(userdata, ARES_ESERVFAIL, 0, NULL, 0);
		return;
	}
	ares_send(r->channel, query, (int)n_query, done, userdata);
	set_timeout(r);
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

int sbx_resolve_new(struct sbx_broker *b)
{
	struct sbx_resolve *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	b->resolve = r;
	r->b = b;
	for (size_t i = 0; i < SOCKETS_MAX; i++)
		r->sockets[i].fd = -1;
	if (evtimer_assign(&r->ev_timeout, b->base, on_timeout, r) < 0)
		return -ENOMEM;
	return open_channel(r);
}

void sbx_resolve_free(struct sbx_resolve *r)
{
	if (!r)
		return;
	if (r->have_channel)
		ares_destroy(r->channel);
	ares_library_cleanup();
	event_del(&r->ev_timeout);
	while (r->oldest) {
		struct sbx_resolve_entry *e = r->oldest;

		unlink_entry(r, e);
		free(e);
	}
	free(r);
}
