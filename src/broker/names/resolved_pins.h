/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_NAMES_RESOLVED_PINS_H
#define SBX_BROKER_NAMES_RESOLVED_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "base/hostname.h"
#include "base/reason.h"

/*
 * Resolved pins (attach cgroup): the addresses that the kernel lets the sandbox use, and until
 * when. Events come in (a name resolved, or failed to; addresses in use; the time), changes of the
 * kernel's sets go out. PURE.
 *
 * An address that a name has is *current*: new flows may go there. When answers have not shown it
 * for long enough it is *old*: open flows go on, no new flow begins. It is gone when no flow is
 * open. Traffic changes nothing: only an answer makes an address current, only the time makes it
 * old.
 */

#define SBX_RESOLVED_PINS_PORTS_MAX 64 /* ports and protocols of one name */
#define SBX_RESOLVED_PINS_ADDRS_MAX 64 /* addresses of one answer; more are left out */

#define SBX_RESOLVED_PINS_TTL_MIN_S    30   /* a shorter TTL counts as this */
#define SBX_RESOLVED_PINS_HOLD_MIN_S   300  /* programs keep an answer longer than its TTL */
#define SBX_RESOLVED_PINS_HOLD_MORE_S  60   /* time to resolve anew, before a pin gets old */
#define SBX_RESOLVED_PINS_STALE_S      3600 /* without a new answer, the last one holds so long */
#define SBX_RESOLVED_PINS_LINGER_S     120  /* an old one stays after it was last seen in use */
#define SBX_RESOLVED_PINS_SWEEP_S      30   /* between two looks at the addresses in use */
#define SBX_RESOLVED_PINS_GRACE_S      300  /* the kernel's timeout is longer: we may be late */
#define SBX_RESOLVED_PINS_RETRY_S      15   /* after a failure to resolve */
#define SBX_RESOLVED_PINS_PER_NAME_MAX 512  /* current pins; past it the name's oldest gets old */

struct sbx_resolved_pins;

/* May @name lead to @addr at that port? The caller's policy: floors, deny entries, address
 * classes, the host's own addresses. Called for every address and port. */
typedef bool (*sbx_resolved_pins_judge)(void *userdata, const char *name,
					const struct sbx_addr *addr, enum sbx_proto proto,
					uint16_t port);

struct sbx_resolved_pins_config {
	uint32_t repin_interval_s; /* 30 to 86400 */
	/* Both at least 1. Past n_names_max the name asked for longest ago is dropped. Pins are
	 * addresses times ports; past n_pins_max old ones go, then none is added. */
	uint32_t n_names_max, n_pins_max;
	sbx_resolved_pins_judge judge;
	void *userdata;
};

int sbx_resolved_pins_new(const struct sbx_resolved_pins_config *config,
			  struct sbx_resolved_pins **ret_pins);
struct sbx_resolved_pins *sbx_resolved_pins_free(struct sbx_resolved_pins *pins);
SBX_DEFINE_CLEANUP(struct sbx_resolved_pins, sbx_resolved_pins_free);

struct sbx_resolved_pins_port {
	enum sbx_proto proto; /* tcp or udp */
	uint16_t port;
};

struct sbx_resolved_pins_answer {
	const char *name; /* normalised */
	bool asked;	  /* by the sandbox; else resolved anew for us */
	bool partial;	  /* truncated, or cut: the name may have more addresses */
	uint32_t ttl_s;
	size_t n_addrs; /* 0: the name has none */
	const struct sbx_addr *addrs;
	size_t n_ports; /* that the policy allows the name */
	const struct sbx_resolved_pins_port *ports;
};

/* A name was resolved. @ret_addrs (SBX_RESOLVED_PINS_ADDRS_MAX) gets the addresses that were
 * judged good and found room: they may be told to the sandbox once the changes are in the
 * kernel. 0, or -ENOMEM (nothing changed). */
int sbx_resolved_pins_resolved(struct sbx_resolved_pins *pins,
			       const struct sbx_resolved_pins_answer *answer, uint64_t now_ms,
			       struct sbx_addr *ret_addrs, size_t *ret_n);
/* A name was not resolved: no answer, or a useless one. (That a name does not exist is an answer
 * without addresses.) */
void sbx_resolved_pins_failed(struct sbx_resolved_pins *pins, const char *name, uint64_t now_ms);

/* The next name to resolve anew, borrowed until the next call; NULL: none now. Gives no name
 * again before it was resolved or failed. */
const char *sbx_resolved_pins_due(struct sbx_resolved_pins *pins, uint64_t now_ms);

/* Is it time to look which flows are open? Then call in_use() for each remote end of an open
 * socket, and swept() at the end. @complete false: the sockets could not be read, and every pin
 * counts as in use. */
bool sbx_resolved_pins_wants_sweep(const struct sbx_resolved_pins *pins, uint64_t now_ms);
void sbx_resolved_pins_in_use(struct sbx_resolved_pins *pins, const struct sbx_addr *addr,
			      enum sbx_proto proto, uint16_t port, uint64_t now_ms);
void sbx_resolved_pins_swept(struct sbx_resolved_pins *pins, bool complete, uint64_t now_ms);

/* Makes the changes that are due by time. Call it when next_ms() has come, and before taking
 * changes. */
void sbx_resolved_pins_tick(struct sbx_resolved_pins *pins, uint64_t now_ms);
/* The time when something of the above is due; UINT64_MAX: only after an event. */
uint64_t sbx_resolved_pins_next_ms(const struct sbx_resolved_pins *pins);

struct sbx_resolved_pins_change {
	struct sbx_addr addr;
	enum sbx_proto proto;
	uint16_t port;
	bool old;	     /* in the set of old ones; else of the current ones */
	uint64_t timeout_ms; /* add it for so long from now; 0: remove it */
};

/* Takes changes for the kernel, at most @n_max (at least 2), to be carried out as one
 * transaction: a move from current to old has both halves in one batch. Call it until it returns
 * 0. */
size_t sbx_resolved_pins_changes(struct sbx_resolved_pins *pins, uint64_t now_ms,
				 struct sbx_resolved_pins_change *v, size_t n_max);
/* Some changes were not carried out: the content of the kernel's sets is unknown, and all is put
 * anew. */
void sbx_resolved_pins_forget_kernel(struct sbx_resolved_pins *pins);

struct sbx_resolved_pins_stats {
	uint32_t n_names, n_current, n_old;
	uint64_t refused; /* addresses that were judged bad */
	uint64_t limits_hit;
};
struct sbx_resolved_pins_stats sbx_resolved_pins_stats(const struct sbx_resolved_pins *pins);

#endif
