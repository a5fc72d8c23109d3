/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_CORE_CORE_RESOLVED_PINS_H
#define SBX_BROKER_CORE_CORE_RESOLVED_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "base/hostname.h"
#include "base/reason.h"

/*
 * Real pins (attach cgroup): which addresses the kernel lets the sandbox use, and until when. Events come
 * in (a name resolved, or did not; what is in use; the time), changes of the kernel's sets go out. PURE.
 *
 * An address that a name has is *current*: new flows may go there. Seen no more for long enough it is
 * *old*: what is open goes on, nothing new begins; and gone when nothing is open. Traffic changes
 * nothing: only an answer makes an address current, only the time makes it old.
 */

#define SBX_REALPINS_PORTS_MAX 64 /* ports and protocols of one name */
#define SBX_REALPINS_ADDRS_MAX 64 /* addresses of one answer; more are left out */

#define SBX_REALPINS_TTL_MIN_S	  30   /* a name is not resolved anew more often, for its TTL's sake */
#define SBX_REALPINS_HOLD_MIN_S	  300  /* programs keep an answer for longer than it says */
#define SBX_REALPINS_HOLD_MORE_S  60   /* to resolve anew in, before what was seen gets old */
#define SBX_REALPINS_STALE_S	  3600 /* without an answer, what the last one said holds for so long */
#define SBX_REALPINS_LINGER_S	  120  /* an old one stays after it was last seen in use */
#define SBX_REALPINS_SWEEP_S	  30   /* between two looks at what is in use */
#define SBX_REALPINS_GRACE_S	  300  /* the kernel's own time to live is longer: for a sluggish owner */
#define SBX_REALPINS_RETRY_S	  15   /* after a failure to resolve */
#define SBX_REALPINS_PER_NAME_MAX 512  /* current pins of one name; past it its oldest get old */

struct sbx_realpins;

/* Is @addr one that @name may lead to, for that port? The caller's policy: floors, deny entries, classes
 * with what admits them, the host's own addresses. Asked for every address and port. */
typedef bool (*sbx_realpins_judge)(void *userdata, const char *name, const struct sbx_addr *addr,
				   enum sbx_proto proto, uint16_t port);

struct sbx_realpins_config {
	uint32_t repin_interval_s; /* 30 to 86400 */
	uint32_t n_names_max;	   /* at least 1; past it the one asked for longest ago is not followed */
	uint32_t n_pins_max;	   /* at least 1, addresses times ports; past it old ones go, then nothing is added */
	sbx_realpins_judge judge;
	void *userdata;
};

int sbx_realpins_new(const struct sbx_realpins_config *config, struct sbx_realpins **ret_pins);
struct sbx_realpins *sbx_realpins_free(struct sbx_realpins *pins);
SBX_DEFINE_CLEANUP(struct sbx_realpins, sbx_realpins_free);

struct sbx_realpins_port {
	enum sbx_proto proto; /* tcp or udp */
	uint16_t port;
};

struct sbx_realpins_answer {
	const char *name; /* normalised */
	bool asked;	  /* by the sandbox; else resolved anew for us */
	bool partial;	  /* truncated, or cut: what is missing may be there all the same */
	uint32_t ttl_s;
	size_t n_addrs; /* 0: the name has none */
	const struct sbx_addr *addrs;
	size_t n_ports; /* what the policy allows the name */
	const struct sbx_realpins_port *ports;
};

/* A name was resolved. @ret_addrs (SBX_REALPINS_ADDRS_MAX) gets those that may be told to the sandbox, once
 * the changes are in the kernel: judged, and there was room. 0, or -ENOMEM (nothing changed). */
int sbx_realpins_resolved(struct sbx_realpins *pins, const struct sbx_realpins_answer *answer,
			  uint64_t now_ms, struct sbx_addr *ret_addrs, size_t *ret_n);
/* It was not: no answer, or a useless one (a name that does not exist is an answer without addresses). */
void sbx_realpins_failed(struct sbx_realpins *pins, const char *name, uint64_t now_ms);

/* The next name to resolve anew, borrowed until the next call; NULL: none now. Each is given once, until
 * it was resolved or failed. */
const char *sbx_realpins_due(struct sbx_realpins *pins, uint64_t now_ms);

/* Is it time to look which flows are open? Then, for each remote end of an open socket, in_use(); and
 * then swept(): @complete false where they could not be looked at, and everything counts as in use. */
bool sbx_realpins_wants_sweep(const struct sbx_realpins *pins, uint64_t now_ms);
void sbx_realpins_in_use(struct sbx_realpins *pins, const struct sbx_addr *addr, enum sbx_proto proto,
			 uint16_t port, uint64_t now_ms);
void sbx_realpins_swept(struct sbx_realpins *pins, bool complete, uint64_t now_ms);

/* What the time alone changes: call when next_ms() has come, and before taking changes. */
void sbx_realpins_tick(struct sbx_realpins *pins, uint64_t now_ms);
/* When something of the above is due; UINT64_MAX: never, without an event. */
uint64_t sbx_realpins_next_ms(const struct sbx_realpins *pins);

struct sbx_realpins_change {
	struct sbx_addr addr;
	enum sbx_proto proto;
	uint16_t port;
	bool old;	     /* of the old ones; else the current ones */
	uint64_t timeout_ms; /* put, for so long from now; 0: take */
};

/* Changes for the kernel, at most @n_max (at least 2), to be carried out as one transaction: what moves from
 * current to old is in one batch with both halves. Again until 0 are returned. */
size_t sbx_realpins_changes(struct sbx_realpins *pins, uint64_t now_ms,
			    struct sbx_realpins_change *v, size_t n_max);
/* Some were not carried out: what the kernel has is unknown, and all is put anew. */
void sbx_realpins_forget_kernel(struct sbx_realpins *pins);

struct sbx_realpins_stats {
	uint32_t n_names, n_current, n_old;
	uint64_t refused; /* addresses that were judged bad */
	uint64_t limits_hit;
};
struct sbx_realpins_stats sbx_realpins_stats(const struct sbx_realpins *pins);

#endif
