/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resolved pins. PURE.
 *
 * There are two tables. A name has the time when it is resolved anew, and its last answer. A pin is
 * an address, a protocol and a port; it is one pin even if several names lead there:
 *
 *   (none) --an answer has it--> current --not seen for HOLD--> old --unused for LINGER--> (none)
 *                                   ^                              |
 *                                   +------ an answer has it ------+
 *
 * HOLD is the time until the name is resolved anew (its TTL, within TTL_MIN and the repin
 * interval), at least HOLD_MIN, plus HOLD_MORE. That covers TTL 0, answers that rotate through many
 * addresses, a resolver that fails for a moment, and programs that keep an address.
 *
 * Each pin has the state it should have and the state it has in the kernel;
 * sbx_resolved_pins_changes() gives the difference. The kernel's timeouts are longer by GRACE: the
 * broker ends a pin's life (current to old without a gap), and the kernel only if the broker is
 * dead.
 *
 * When the policy changes, every pin must be one that some name leads to: the name that had it
 * last, or another one whose last answer has the address. A pin whose names were all dropped goes:
 * its purpose is not known any more. A name without ports sleeps, with its last answer, until a
 * policy allows it again.
 *
 * Limits: the tables have fixed sizes, allocated once. All pins are walked (n_pins_max, some 10 ns
 * each) when the earliest time comes and when the table or a name is full, but not for each answer.
 */

#include "broker/names/resolved_pins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#ifndef SECOND /* a test may set a shorter one */
#define SECOND UINT64_C(1000)
#endif
#define EXTEND_MIN_S 10 /* a shorter extension is not worth a change in the kernel */

enum state { GONE = 0, CURRENT, OLD, UNKNOWN /* only in pin.kernel: the last change failed */ };

struct pin {
	struct sbx_addr addr; /* family 0: the slot is free, `chain` the next free one */
	uint8_t proto;
	uint16_t port;
	uint32_t chain;	   /* next of the hash bucket */
	uint32_t name;	   /* the last name whose answer had the address; NONE: it was dropped */
	uint64_t until_ms; /* then a current pin gets old, and an old pin goes */
	uint64_t kernel_until_ms;
	uint8_t state, kernel; /* enum state */
	bool dirty;
	bool orphan; /* only within judge_again() */
};

struct name {
	char *text; /* NULL: free */
	uint32_t chain;
	bool resolving;
	uint64_t next_ms, asked_ms, answered_ms;
	uint32_t hold_s, n_current;
	size_t n_addrs, n_ports;
	struct sbx_addr *addrs; /* of the last answer, not judged */
	struct sbx_resolved_pins_port *ports;
};

struct sbx_resolved_pins {
	struct sbx_resolved_pins_config config;
	struct pin *pins;
	struct name *names;
	uint32_t *pin_buckets, *name_buckets; /* as many as there are pins, names */
	uint32_t free_pin;
	uint32_t n_old, n_names;
	uint32_t n_dirty, dirty_from; /* no pin before that index is dirty */
	uint64_t sweep_ms;	      /* time of the next sweep, while there are old pins */
	uint64_t swept_ms;	      /* time of the last sweep */
	uint64_t pins_due_ms;	      /* no pin's time comes before */
	struct sbx_resolved_pins_stats stats;
};

/* --- tables --- */

static uint32_t hash(const void *p, size_t n, uint32_t h)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 16777619u;
	h ^= h >> 15;
	return h * 2246822519u;
}

static uint32_t *pin_bucket(const struct sbx_resolved_pins *p, const struct sbx_addr *addr,
			    uint8_t proto, uint16_t port)
{
	uint32_t h = hash(addr->b, sizeof(addr->b), 2166136261u);

	h = hash(&port, sizeof(port), h ^ proto);
	return &p->pin_buckets[h % p->config.n_pins_max];
}

static uint32_t find_pin(const struct sbx_resolved_pins *p, const struct sbx_addr *addr,
			 uint8_t proto, uint16_t port)
{
	uint32_t i = *pin_bucket(p, addr, proto, port);

	while (i != NONE && !(p->pins[i].port == port && p->pins[i].proto == proto &&
			      sbx_addr_equal(&p->pins[i].addr, addr)))
		i = p->pins[i].chain;
	return i;
}

static uint32_t *name_bucket(const struct sbx_resolved_pins *p, const char *text)
{
	return &p->name_buckets[hash(text, strlen(text), 2166136261u) % p->config.n_names_max];
}

static uint32_t find_name(const struct sbx_resolved_pins *p, const char *text)
{
	uint32_t i = *name_bucket(p, text);

	while (i != NONE && strcmp(p->names[i].text, text) != 0)
		i = p->names[i].chain;
	return i;
}

int sbx_resolved_pins_new(const struct sbx_resolved_pins_config *config,
			  struct sbx_resolved_pins **ret_pins)
{
	SBX_CLEANUP(sbx_resolved_pins_freep) struct sbx_resolved_pins *p = calloc(1, sizeof(*p));
	uint32_t n_pins = config->n_pins_max, n_names = config->n_names_max;

	if (!p)
		return -ENOMEM;
	p->config = *config;
	p->pins = calloc(n_pins, sizeof(*p->pins));
	p->names = calloc(n_names, sizeof(*p->names));
	p->pin_buckets = malloc(n_pins * sizeof(uint32_t));
	p->name_buckets = malloc(n_names * sizeof(uint32_t));
	if (!p->pins || !p->names || !p->pin_buckets || !p->name_buckets)
		return -ENOMEM;
	memset(p->pin_buckets, 0xff, n_pins * sizeof(uint32_t));
	memset(p->name_buckets, 0xff, n_names * sizeof(uint32_t));
	for (uint32_t i = 0; i < n_pins; i++)
		p->pins[i].chain = i + 1 < n_pins ? i + 1 : NONE;
	p->pins_due_ms = UINT64_MAX;
	*ret_pins = sbx_steal_ptr(&p);
	return 0;
}

static void fini_name(struct name *n)
{
	free(n->text);
	free(n->addrs);
	free(n->ports);
	*n = (struct name){ 0 };
}

struct sbx_resolved_pins *sbx_resolved_pins_free(struct sbx_resolved_pins *p)
{
	if (!p)
		return NULL;
	for (uint32_t i = 0; p->names && i < p->config.n_names_max; i++)
		fini_name(&p->names[i]);
	free(p->pins);
	free(p->names);
	free(p->pin_buckets);
	free(p->name_buckets);
	free(p);
	return NULL;
}

static void unlink_index(uint32_t *at, uint32_t index, const struct sbx_resolved_pins *p,
			 bool is_pin)
{
	while (*at != index)
		at = is_pin ? &p->pins[*at].chain : &p->names[*at].chain;
	*at = is_pin ? p->pins[index].chain : p->names[index].chain;
}

/* --- the life of a pin --- */

static void mark(struct sbx_resolved_pins *p, uint32_t i)
{
	if (!p->pins[i].dirty)
		p->n_dirty++;
	p->pins[i].dirty = true;
	if (i < p->dirty_from)
		p->dirty_from = i;
}

static void set_state(struct sbx_resolved_pins *p, uint32_t i, enum state state, uint64_t until_ms)
{
	struct pin *pin = &p->pins[i];

	if (pin->state == CURRENT && pin->name != NONE)
		p->names[pin->name].n_current--;
	if (pin->state == OLD)
		p->n_old--;
	pin->state = (uint8_t)state;
	pin->until_ms = until_ms;
	if (state == OLD)
		p->n_old++;
	if (state == CURRENT && pin->name != NONE)
		p->names[pin->name].n_current++;
	if (state != GONE && until_ms < p->pins_due_ms)
		p->pins_due_ms = until_ms;
	mark(p, i);
}

static void make_old(struct sbx_resolved_pins *p, uint32_t i, uint64_t now_ms)
{
	if (p->n_old == 0)
		p->sweep_ms = now_ms + SBX_RESOLVED_PINS_SWEEP_S * SECOND;
	set_state(p, i, OLD, now_ms + SBX_RESOLVED_PINS_LINGER_S * SECOND);
}

/* Frees the slot of a pin that is GONE here and in the kernel. */
static void release(struct sbx_resolved_pins *p, uint32_t i)
{
	struct pin *pin = &p->pins[i];

	unlink_index(pin_bucket(p, &pin->addr, pin->proto, pin->port), i, p, true);
	if (pin->dirty)
		p->n_dirty--;
	*pin = (struct pin){ .chain = p->free_pin };
	p->free_pin = i;
}

/* The pin in @state that ends first, of @name or (if that is NONE) of all names. NONE: there is no
 * such pin. */
static uint32_t first_to_end(const struct sbx_resolved_pins *p, enum state state, uint32_t name)
{
	uint32_t best = NONE;

	for (uint32_t i = 0; i < p->config.n_pins_max; i++) {
		const struct pin *pin = &p->pins[i];

		if (pin->addr.family && pin->state == (uint8_t)state &&
		    (name == NONE || pin->name == name) &&
		    (best == NONE || pin->until_ms < p->pins[best].until_ms))
			best = i;
	}
	return best;
}

static uint32_t new_pin(struct sbx_resolved_pins *p, const struct sbx_addr *addr, uint8_t proto,
			uint16_t port)
{
	uint32_t i = p->free_pin, *bucket;

	if (i == NONE) {
		/* Gives up an old pin. Its slot gets free when the removal is on its way to the
		 * kernel, too late for this caller. */
		i = p->n_old ? first_to_end(p, OLD, NONE) : NONE;
		if (i != NONE)
			set_state(p, i, GONE, 0);
		p->stats.limits_hit++;
		return NONE;
	}
	p->free_pin = p->pins[i].chain;
	bucket = pin_bucket(p, addr, proto, port);
	p->pins[i] = (struct pin){
		.addr = *addr, .proto = proto, .port = port, .chain = *bucket, .name = NONE
	};
	*bucket = i;
	return i;
}

/* Is @addr of a class that is never pinned? */
static bool is_never(const struct sbx_addr *addr)
{
	enum sbx_addr_class c = sbx_addr_class(addr);

	return c != SBX_ADDR_PUBLIC && c != SBX_ADDR_PRIVATE;
}

/* Makes @addr, an address of @name, current until @until_ms. False: the table is full. */
static bool see(struct sbx_resolved_pins *p, uint32_t name, const struct sbx_addr *addr,
		const struct sbx_resolved_pins_port *port, uint64_t until_ms, uint64_t now_ms)
{
	uint32_t i = find_pin(p, addr, (uint8_t)port->proto, port->port);
	struct pin *pin;

	if (i == NONE)
		i = new_pin(p, addr, (uint8_t)port->proto, port->port);
	if (i == NONE)
		return false;
	pin = &p->pins[i];
	if (pin->state == CURRENT && until_ms < pin->until_ms + EXTEND_MIN_S * SECOND)
		return true;
	if (pin->state == CURRENT && pin->name != NONE)
		p->names[pin->name].n_current--;
	if (pin->state == CURRENT)
		pin->state = GONE; /* counted anew, for this name */
	pin->name = name;
	if (p->names[name].n_current >= SBX_RESOLVED_PINS_PER_NAME_MAX) {
		uint32_t oldest = first_to_end(p, CURRENT, name);

		p->stats.limits_hit++;
		if (oldest != NONE)
			make_old(p, oldest, now_ms);
	}
	set_state(p, i, CURRENT, until_ms);
	return true;
}

/* --- names --- */

static void drop_name(struct sbx_resolved_pins *p, uint32_t index)
{
	for (uint32_t i = 0; i < p->config.n_pins_max; i++)
		if (p->pins[i].addr.family && p->pins[i].name == index)
			p->pins[i].name = NONE; /* the pin lives until its time comes */
	unlink_index(name_bucket(p, p->names[index].text), index, p, false);
	fini_name(&p->names[index]);
	p->n_names--;
}

static uint32_t new_name(struct sbx_resolved_pins *p, const char *text)
{
	uint32_t i = 0, *bucket;
	char *copy = strdup(text);

	if (!copy)
		return NONE;
	if (p->n_names == p->config.n_names_max) {
		for (uint32_t k = 1; k < p->config.n_names_max; k++)
			if (p->names[k].asked_ms < p->names[i].asked_ms)
				i = k;
		p->stats.limits_hit++;
		drop_name(p, i);
	} else {
		while (p->names[i].text)
			i++;
	}
	bucket = name_bucket(p, text);
	p->names[i] = (struct name){ .text = copy, .chain = *bucket };
	*bucket = i;
	p->n_names++;
	return i;
}

/* Keeps the answer until the next one comes. */
static int keep(struct name *n, const struct sbx_resolved_pins_answer *a, size_t n_addrs)
{
	struct sbx_addr *addrs = calloc(n_addrs + 1, sizeof(*addrs));
	struct sbx_resolved_pins_port *ports = calloc(a->n_ports + 1, sizeof(*ports));

	if (!addrs || !ports) {
		free(addrs);
		free(ports);
		return -ENOMEM;
	}
	if (n_addrs)
		memcpy(addrs, a->addrs, n_addrs * sizeof(*addrs));
	if (a->n_ports)
		memcpy(ports, a->ports, a->n_ports * sizeof(*ports));
	free(n->addrs);
	free(n->ports);
	n->addrs = addrs;
	n->ports = ports;
	n->n_addrs = n_addrs;
	n->n_ports = a->n_ports;
	return 0;
}

static uint32_t clamp(uint32_t v, uint32_t low, uint32_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* Makes the addresses of a name's last answer current until @until_ms. @ret_addrs gets those that
 * have a pin. */
static void see_all(struct sbx_resolved_pins *p, uint32_t index, uint64_t now_ms, uint64_t until_ms,
		    struct sbx_addr *ret_addrs, size_t *ret_n)
{
	const struct name *n = &p->names[index];

	*ret_n = 0;
	for (size_t i = 0; i < n->n_addrs; i++) {
		struct sbx_addr addr = sbx_addr_unmap(&n->addrs[i]);
		size_t n_pinned = 0, n_bad = 0;

		for (size_t k = 0; k < n->n_ports; k++) {
			const struct sbx_resolved_pins_port *port = &n->ports[k];

			if (is_never(&addr) || !p->config.judge(p->config.userdata, n->text, &addr,
								port->proto, port->port))
				n_bad++;
			else
				n_pinned += see(p, index, &addr, port, until_ms, now_ms);
		}
		p->stats.refused += n_bad > 0;
		if (n_pinned)
			ret_addrs[(*ret_n)++] = addr;
	}
}

int sbx_resolved_pins_resolved(struct sbx_resolved_pins *p,
			       const struct sbx_resolved_pins_answer *a, uint64_t now_ms,
			       struct sbx_addr *ret_addrs, size_t *ret_n)
{
	size_t n_addrs =
		a->n_addrs < SBX_RESOLVED_PINS_ADDRS_MAX ? a->n_addrs : SBX_RESOLVED_PINS_ADDRS_MAX;
	bool partial = a->partial || n_addrs < a->n_addrs;
	uint32_t index = find_name(p, a->name), interval_s;
	struct sbx_addr ignored[SBX_RESOLVED_PINS_ADDRS_MAX];
	struct name *n;
	size_t n_ignored;

	*ret_n = 0;
	if (index != NONE)
		p->names[index].resolving = false;
	if (a->n_ports == 0 || a->n_ports > SBX_RESOLVED_PINS_PORTS_MAX || a->name[0] == '\0')
		return 0;
	if (index == NONE) {
		if (!a->asked)
			return 0; /* not followed any more */
		index = new_name(p, a->name);
	}
	if (index == NONE)
		return -ENOMEM;
	n = &p->names[index];
	/* Addresses that a partial answer leaves out count as seen. */
	if (partial && n->n_addrs)
		see_all(p, index, now_ms, now_ms + n->hold_s * SECOND, ignored, &n_ignored);
	if (keep(n, a, n_addrs) < 0)
		return -ENOMEM;
	interval_s = clamp(partial ? 0 : a->ttl_s, SBX_RESOLVED_PINS_TTL_MIN_S,
			   p->config.repin_interval_s);
	n->hold_s = (interval_s > SBX_RESOLVED_PINS_HOLD_MIN_S ? interval_s
							       : SBX_RESOLVED_PINS_HOLD_MIN_S) +
		    SBX_RESOLVED_PINS_HOLD_MORE_S;
	n->next_ms = now_ms + interval_s * SECOND;
	n->answered_ms = now_ms;
	if (a->asked)
		n->asked_ms = now_ms;
	see_all(p, index, now_ms, now_ms + n->hold_s * SECOND, ret_addrs, ret_n);
	return 0;
}

void sbx_resolved_pins_failed(struct sbx_resolved_pins *p, const char *name, uint64_t now_ms)
{
	uint32_t index = find_name(p, name);
	struct sbx_addr ignored[SBX_RESOLVED_PINS_ADDRS_MAX];
	struct name *n;
	size_t n_ignored;

	if (index == NONE)
		return;
	n = &p->names[index];
	n->resolving = false;
	if (n->n_ports == 0)
		return;
	n->next_ms = now_ms + SBX_RESOLVED_PINS_RETRY_S * SECOND;
	if (now_ms - n->answered_ms < SBX_RESOLVED_PINS_STALE_S * SECOND)
		see_all(p, index, now_ms, now_ms + n->hold_s * SECOND, ignored, &n_ignored);
}

const char *sbx_resolved_pins_due(struct sbx_resolved_pins *p, uint64_t now_ms)
{
	for (uint32_t i = 0; p->n_names && i < p->config.n_names_max; i++) {
		struct name *n = &p->names[i];

		if (n->text && !n->resolving && n->next_ms <= now_ms) {
			n->resolving = true;
			return n->text;
		}
	}
	return NULL;
}

/* --- addresses in use --- */

bool sbx_resolved_pins_wants_sweep(const struct sbx_resolved_pins *p, uint64_t now_ms)
{
	return p->n_old && p->sweep_ms <= now_ms;
}

void sbx_resolved_pins_in_use(struct sbx_resolved_pins *p, const struct sbx_addr *addr,
			      enum sbx_proto proto, uint16_t port, uint64_t now_ms)
{
	struct sbx_addr a = sbx_addr_unmap(addr);
	uint32_t i = find_pin(p, &a, (uint8_t)proto, port);

	if (i == NONE || p->pins[i].state != OLD)
		return;
	p->pins[i].until_ms = now_ms + SBX_RESOLVED_PINS_LINGER_S * SECOND;
	/* Extends the kernel's own timeout before half of the grace is used up. */
	if (p->pins[i].kernel_until_ms <
	    p->pins[i].until_ms + SBX_RESOLVED_PINS_GRACE_S * SECOND / 2)
		mark(p, i);
}

void sbx_resolved_pins_swept(struct sbx_resolved_pins *p, bool complete, uint64_t now_ms)
{
	for (uint32_t i = 0; !complete && i < p->config.n_pins_max; i++)
		if (p->pins[i].addr.family && p->pins[i].state == OLD)
			sbx_resolved_pins_in_use(p, &p->pins[i].addr, p->pins[i].proto,
						 p->pins[i].port, now_ms);
	p->swept_ms = now_ms;
	p->sweep_ms = now_ms + SBX_RESOLVED_PINS_SWEEP_S * SECOND;
}

/* --- another policy --- */

static bool has_port(const struct name *n, const struct pin *pin)
{
	for (size_t i = 0; i < n->n_ports; i++)
		if (n->ports[i].port == pin->port && (uint8_t)n->ports[i].proto == pin->proto)
			return true;
	return false;
}

static bool leads_to(const struct sbx_resolved_pins *p, const struct name *n, const struct pin *pin)
{
	return has_port(n, pin) && p->config.judge(p->config.userdata, n->text, &pin->addr,
						   (enum sbx_proto)pin->proto, pin->port);
}

/* Gives pins without a name that leads to them to @index, where that one's last answer has them. */
static void adopt(struct sbx_resolved_pins *p, uint32_t index)
{
	struct name *n = &p->names[index];

	for (size_t i = 0; i < n->n_addrs * n->n_ports; i++) {
		struct sbx_addr addr = sbx_addr_unmap(&n->addrs[i / n->n_ports]);
		const struct sbx_resolved_pins_port *port = &n->ports[i % n->n_ports];
		uint32_t k = find_pin(p, &addr, (uint8_t)port->proto, port->port);
		struct pin *pin = k == NONE ? NULL : &p->pins[k];

		if (!pin || !pin->orphan || !leads_to(p, n, pin))
			continue;
		pin->orphan = false;
		if (pin->state == CURRENT && pin->name != NONE)
			p->names[pin->name].n_current--;
		if (pin->state == CURRENT)
			n->n_current++;
		pin->name = index;
	}
}

/* Asks for the ports of a name. Without ports, or memory for them, it is not resolved anew. */
static void set_ports(struct sbx_resolved_pins *p, struct name *n, sbx_resolved_pins_ports ports,
		      uint64_t now_ms)
{
	struct sbx_resolved_pins_port v[SBX_RESOLVED_PINS_PORTS_MAX];
	size_t n_ports = ports(p->config.userdata, n->text, v);
	struct sbx_resolved_pins_port *copy = n_ports ? calloc(n_ports, sizeof(*copy)) : NULL;
	bool slept = n->n_ports == 0;

	free(n->ports);
	n->ports = copy;
	n->n_ports = copy ? n_ports : 0;
	if (copy)
		memcpy(copy, v, n_ports * sizeof(*copy));
	if (!copy)
		n->next_ms = UINT64_MAX;
	else if (slept)
		n->next_ms = now_ms;
}

size_t sbx_resolved_pins_judge_again(struct sbx_resolved_pins *p, sbx_resolved_pins_ports ports,
				     uint64_t now_ms)
{
	size_t n_removed = 0, n_orphans = 0;

	for (uint32_t i = 0; p->n_names && i < p->config.n_names_max; i++)
		if (p->names[i].text)
			set_ports(p, &p->names[i], ports, now_ms);
	for (uint32_t i = 0; i < p->config.n_pins_max; i++) {
		struct pin *pin = &p->pins[i];

		pin->orphan = pin->addr.family && pin->state != GONE &&
			      (pin->name == NONE || !leads_to(p, &p->names[pin->name], pin));
		n_orphans += pin->orphan;
	}
	for (uint32_t i = 0; n_orphans && i < p->config.n_names_max; i++)
		if (p->names[i].text)
			adopt(p, i);
	for (uint32_t i = 0; n_orphans && i < p->config.n_pins_max; i++) {
		if (!p->pins[i].orphan)
			continue;
		set_state(p, i, GONE, 0);
		n_removed++;
	}
	return n_removed;
}

void sbx_resolved_pins_pin_again(struct sbx_resolved_pins *p, uint64_t now_ms)
{
	struct sbx_addr ignored[SBX_RESOLVED_PINS_ADDRS_MAX];
	size_t n_ignored;

	for (uint32_t i = 0; p->n_names && i < p->config.n_names_max; i++) {
		const struct name *n = &p->names[i];
		uint64_t until_ms = n->answered_ms + n->hold_s * SECOND;

		if (n->text && n->n_ports && now_ms < until_ms)
			see_all(p, i, now_ms, until_ms, ignored, &n_ignored);
	}
}

bool sbx_resolved_pins_is_current(const struct sbx_resolved_pins *p, const char *name,
				  const struct sbx_addr *addr)
{
	uint32_t index = find_name(p, name);

	for (size_t i = 0; index != NONE && i < p->names[index].n_ports; i++) {
		const struct sbx_resolved_pins_port *port = &p->names[index].ports[i];
		uint32_t pin = find_pin(p, addr, (uint8_t)port->proto, port->port);

		if (pin != NONE && p->pins[pin].state == CURRENT)
			return true;
	}
	return false;
}

/* --- the time --- */

/* May an old pin go? Not if the last sweep is too long ago (this process was stopped): a flow to
 * the address may be open. */
static bool may_go(const struct sbx_resolved_pins *p, uint64_t now_ms)
{
	return now_ms - p->swept_ms <= 2 * SBX_RESOLVED_PINS_SWEEP_S * SECOND;
}

void sbx_resolved_pins_tick(struct sbx_resolved_pins *p, uint64_t now_ms)
{
	if (now_ms < p->pins_due_ms)
		return;
	p->pins_due_ms = UINT64_MAX;
	for (uint32_t i = 0; i < p->config.n_pins_max; i++) {
		struct pin *pin = &p->pins[i];

		if (!pin->addr.family || pin->state == GONE)
			continue;
		if (pin->until_ms <= now_ms) {
			if (pin->state == CURRENT)
				make_old(p, i, now_ms);
			else if (may_go(p, now_ms))
				set_state(p, i, GONE, 0);
			else
				pin->until_ms = now_ms + SBX_RESOLVED_PINS_SWEEP_S * SECOND;
		}
		if (pin->state != GONE && pin->until_ms < p->pins_due_ms)
			p->pins_due_ms = pin->until_ms;
	}
}

uint64_t sbx_resolved_pins_next_ms(const struct sbx_resolved_pins *p)
{
	uint64_t next = p->pins_due_ms;

	if (p->n_old && p->sweep_ms < next)
		next = p->sweep_ms;
	for (uint32_t i = 0; p->n_names && i < p->config.n_names_max; i++)
		if (p->names[i].text && !p->names[i].resolving && p->names[i].next_ms < next)
			next = p->names[i].next_ms;
	return next;
}

/* --- the kernel --- */

static struct sbx_resolved_pins_change change_of(const struct pin *pin, enum state set,
						 uint64_t timeout_ms)
{
	return (struct sbx_resolved_pins_change){ .addr = pin->addr,
						  .proto = (enum sbx_proto)pin->proto,
						  .port = pin->port,
						  .old = set == OLD,
						  .timeout_ms = timeout_ms };
}

size_t sbx_resolved_pins_changes(struct sbx_resolved_pins *p, uint64_t now_ms,
				 struct sbx_resolved_pins_change *v, size_t n_max)
{
	size_t n = 0;
	uint32_t i = p->dirty_from;

	for (; p->n_dirty && i < p->config.n_pins_max && n + 2 <= n_max; i++) {
		struct pin *pin = &p->pins[i];
		uint64_t until_ms = pin->until_ms + SBX_RESOLVED_PINS_GRACE_S * SECOND;

		if (!pin->dirty)
			continue;
		pin->dirty = false;
		p->n_dirty--;
		if (pin->state != CURRENT && (pin->kernel == CURRENT || pin->kernel == UNKNOWN))
			v[n++] = change_of(pin, CURRENT, 0);
		if (pin->state != OLD && (pin->kernel == OLD || pin->kernel == UNKNOWN))
			v[n++] = change_of(pin, OLD, 0);
		if (pin->state != GONE) {
			v[n++] = change_of(pin, pin->state,
					   until_ms > now_ms ? until_ms - now_ms : 1);
			pin->kernel_until_ms = until_ms;
		}
		pin->kernel = pin->state;
		if (pin->state == GONE)
			release(p, i);
	}
	p->dirty_from = p->n_dirty ? i : p->config.n_pins_max;
	return n;
}

void sbx_resolved_pins_forget_kernel(struct sbx_resolved_pins *p)
{
	for (uint32_t i = 0; i < p->config.n_pins_max; i++) {
		if (!p->pins[i].addr.family)
			continue;
		p->pins[i].kernel = UNKNOWN;
		mark(p, i);
	}
}

struct sbx_resolved_pins_stats sbx_resolved_pins_stats(const struct sbx_resolved_pins *p)
{
	struct sbx_resolved_pins_stats s = p->stats;

	s.n_names = p->n_names;
	s.n_old = p->n_old;
	for (uint32_t i = 0; i < p->config.n_pins_max; i++)
		s.n_current += p->pins[i].state == CURRENT;
	return s;
}
