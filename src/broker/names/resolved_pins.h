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
 * when. Events come in (a name was resolved or could not be; addresses in use; the time). Changes
 * of the kernel's sets go out. PURE.
 *
 * An address that a name has is *current*: new flows may go there. When answers have not shown it
 * for long enough it is *old*: open flows go on, no new flow begins. It is gone when no flow is
 * open. Traffic makes no address current: only an answer does, and only the time makes it old.
 */

#define SBX_RESOLVED_PINS_PORTS_MAX 64 /* ports and protocols of one name */
#define SBX_RESOLVED_PINS_ADDRS_MAX 64 /* addresses of one answer; more are left out */

#define SBX_RESOLVED_PINS_TTL_MIN_S    30   /* a shorter TTL counts as this */
#define SBX_RESOLVED_PINS_HOLD_MIN_S   300  /* programs keep an answer longer than its TTL */
#define SBX_RESOLVED_PINS_HOLD_MORE_S  60   /* time to resolve anew, before a pin gets old */
#define SBX_RESOLVED_PINS_STALE_S      3600 /* while a name fails, its last answer counts so long */
#define SBX_RESOLVED_PINS_LINGER_S     120  /* an old pin stays after it was last seen in use */
#define SBX_RESOLVED_PINS_SWEEP_S      30   /* between two looks at the addresses in use */
#define SBX_RESOLVED_PINS_GRACE_S      300  /* added to the kernel's timeout: we may be late */
#define SBX_RESOLVED_PINS_RETRY_S      15   /* after a failure to resolve */
#define SBX_RESOLVED_PINS_PER_NAME_MAX 512  /* current pins; more make the first to end old */

struct sbx_resolved_pins;

/* May @name lead to @addr at that port? The caller judges by floors, deny entries, address classes
 * and the host's own addresses. Called for every address and port. */
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
	bool asked;	  /* by the sandbox; false: the name was due, and was resolved anew */
	bool partial;	  /* truncated, or cut: the name may have more addresses */
	uint32_t ttl_s;
	size_t n_addrs; /* 0: the name has none */
	const struct sbx_addr *addrs;
	size_t n_ports; /* ports that policy allows for the name */
	const struct sbx_resolved_pins_port *ports;
};

/* A name was resolved. @ret_addrs (SBX_RESOLVED_PINS_ADDRS_MAX) gets the addresses that were
 * judged good and found room: they may be told to the sandbox once the changes are in the
 * kernel. 0, or -ENOMEM: the answer is lost. Then call sbx_resolved_pins_failed(). */
int sbx_resolved_pins_resolved(struct sbx_resolved_pins *pins,
			       const struct sbx_resolved_pins_answer *answer, uint64_t now_ms,
			       struct sbx_addr *ret_addrs, size_t *ret_n);
/* A name was not resolved: no answer, or a useless one. (That a name does not exist is an answer
 * without addresses.) */
void sbx_resolved_pins_failed(struct sbx_resolved_pins *pins, const char *name, uint64_t now_ms);

/*
 * The policy was changed. judge_again() takes away each pin, current or old, that no name leads to
 * under the new one; the caller then puts the changes into the kernel. A name that has no port any
 * more is not resolved anew. @ports is asked for the ports of each name: it writes at most
 * SBX_RESOLVED_PINS_PORTS_MAX and returns their number. Returns the number of pins taken away.
 *
 * pin_again(), after that, makes the last answers of names current again where they are still
 * valid: a name may have got ports, or be allowed once more. Programs that know its addresses need
 * not ask.
 */
typedef size_t (*sbx_resolved_pins_ports)(void *userdata, const char *name,
					  struct sbx_resolved_pins_port *ret_ports);
size_t sbx_resolved_pins_judge_again(struct sbx_resolved_pins *pins, sbx_resolved_pins_ports ports,
				     uint64_t now_ms);
void sbx_resolved_pins_pin_again(struct sbx_resolved_pins *pins, uint64_t now_ms);
/* Is @addr a current pin, at a port of @name? */
bool sbx_resolved_pins_is_current(const struct sbx_resolved_pins *pins, const char *name,
				  const struct sbx_addr *addr);

/* The next name to resolve anew, borrowed until the next call; NULL: none is due. A name is given
 * again only after it was resolved or failed. */
const char *sbx_resolved_pins_due(struct sbx_resolved_pins *pins, uint64_t now_ms);

/* Is it time to look which flows are open? Then call in_use() for each remote end of an open
 * socket, and swept() at the end. @complete false: the sockets could not be read, and every old pin
 * counts as in use. */
bool sbx_resolved_pins_wants_sweep(const struct sbx_resolved_pins *pins, uint64_t now_ms);
void sbx_resolved_pins_in_use(struct sbx_resolved_pins *pins, const struct sbx_addr *addr,
			      enum sbx_proto proto, uint16_t port, uint64_t now_ms);
void sbx_resolved_pins_swept(struct sbx_resolved_pins *pins, bool complete, uint64_t now_ms);

/* Makes the changes that are due by time. Call it when next_ms() has come, and before taking
 * changes. */
void sbx_resolved_pins_tick(struct sbx_resolved_pins *pins, uint64_t now_ms);
/* The time when a name, a sweep or a tick is due; UINT64_MAX: none is, until another event
 * comes. */
uint64_t sbx_resolved_pins_next_ms(const struct sbx_resolved_pins *pins);

struct sbx_resolved_pins_change {
	struct sbx_addr addr;
	enum sbx_proto proto;
	uint16_t port;
	bool old;	     /* a change of the set of old pins; false: of current pins */
	uint64_t timeout_ms; /* add the pin for so long from now; 0: remove it */
};

/* Takes changes for the kernel, at most @n_max (at least 2), to be carried out as one
 * transaction: a move from current to old has both halves in one batch. Call it until it returns
 * 0. */
size_t sbx_resolved_pins_changes(struct sbx_resolved_pins *pins, uint64_t now_ms,
				 struct sbx_resolved_pins_change *v, size_t n_max);
/* Some changes were not carried out: the content of the kernel's sets is unknown. The next changes
 * put every pin anew. */
void sbx_resolved_pins_forget_kernel(struct sbx_resolved_pins *pins);

struct sbx_resolved_pins_stats {
	uint32_t n_names, n_current, n_old;
	uint64_t refused; /* addresses that were judged bad */
	uint64_t limits_hit;
};
struct sbx_resolved_pins_stats sbx_resolved_pins_stats(const struct sbx_resolved_pins *pins);

#endif
