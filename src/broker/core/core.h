/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_CORE_CORE_H
#define SBX_BROKER_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/reason.h"
#include "broker/core/core_resolve_result.h"
#include "broker/names/leases.h"
#include "broker/names/pins.h"
#include "ipc/messages.h"
#include "policy/decide/policy.h"
#include "wire/dns.h"
#include "wire/http_head.h"
#include "wire/tls_client_hello.h"

/*
 * The broker's decisions. PURE: events come in as values, verdicts go out as values; the sockets,
 * the clock and the resolver are the caller's.
 */

struct sbx_core {
	const struct sbx_msg_config *config; /* this and the next three are borrowed */
	const struct sbx_policy *policy;
	struct sbx_pins *pins;
	struct sbx_leases *leases; /* NULL unless config->dns_real */
	size_t n_own;		   /* the host's own addresses, sorted by sbx_core_sort_addrs() */
	const struct sbx_addr *own;
	size_t n_own_nets; /* networks that are the host's own as a whole: few */
	const struct sbx_cidr *own_nets;
	bool own_unknown; /* own addresses could not be read: nothing outside may be dialled */
};

void sbx_core_sort_addrs(struct sbx_addr *v, size_t n);
bool sbx_core_is_own(const struct sbx_core *core, const struct sbx_addr *addr);

/* --- DNS --- */

enum sbx_dns_action {
	SBX_DNS_REFUSE = 0, /* with rcode; the event has verdict's reason and addrs[0] if n_addrs */
	SBX_DNS_ANSWER,	    /* with rcode and the n_addrs (0 or 1) addresses */
	SBX_DNS_FORWARD,    /* ask a resolver */
	SBX_DNS_PIN,	    /* resolve the name, and then sbx_core_decide_pinned() */
};

#define SBX_DNS_PIN_TTL_S      300 /* a pin lasts as long as the sandbox; programs may ask again */
#define SBX_DNS_REAL_TTL_MAX_S 60  /* so that programs ask again before a pin gets old */

struct sbx_dns_decision {
	enum sbx_dns_action action;
	enum sbx_dns_rcode rcode;
	struct sbx_verdict verdict;
	size_t n_addrs;
	struct sbx_addr addrs[1];
};

/* Decides a query that parsed. Pins the name if it is allowed and an address is asked for. */
void sbx_core_decide_dns(const struct sbx_core *core, const struct sbx_dns_query *query,
			 struct sbx_dns_decision *ret_decision);
/* Decides a query for SBX_DNS_PIN when its name is resolved: ANSWER with the rcode, or REFUSE.
 * @pinned: the addresses of the name (any family) that may be told to the sandbox. */
void sbx_core_decide_pinned(const struct sbx_core *core, const struct sbx_dns_query *query,
			    const struct sbx_resolve_result *result, const struct sbx_addr *pinned,
			    size_t n_pinned, struct sbx_dns_decision *ret_decision);
/* Judges a resolver's answer to a forwarded query: DENY if a floor or a deny entry names any
 * name of its CNAME chain. */
struct sbx_verdict sbx_core_judge_cnames(const struct sbx_core *core,
					 const struct sbx_dns_answer *answer);

/* --- flows --- */

enum sbx_flow_kind {
	SBX_FLOW_REFUSED = 0, /* for verdict.reason */
	SBX_FLOW_SELFTEST,    /* answered by the broker itself */
	SBX_FLOW_NAME,	      /* to a pinned name: resolve it and dial */
	SBX_FLOW_ADDRESS,     /* to the very address asked for */
};

struct sbx_flow_target {
	enum sbx_flow_kind kind;
	enum sbx_proto proto; /* tcp or udp */
	struct sbx_addr addr; /* as the sandbox dialled it */
	uint16_t port;
	const char *name; /* borrowed: of the pins, or of a lease until the next answer; or NULL */
	struct sbx_verdict verdict;
	enum sbx_check check; /* how the first bytes are checked before the flow is carried */
	bool must_match;      /* the first bytes must name the server `name` */
	bool must_parse;      /* without a TLS hello or HTTP request the flow is refused */
	/* NAME: as in the verdict, the number of the entry for which sbx-tls carries the flow; 0:
	 * the broker carries it. */
	uint32_t terminate;
};

void sbx_core_decide_flow(const struct sbx_core *core, enum sbx_proto proto,
			  const struct sbx_addr *addr, uint16_t port, uint64_t now_ms,
			  struct sbx_flow_target *ret_target);

/* Judges a flow by its ClientHello. @r: the parser's return code, 0 or its E_REJECT. */
struct sbx_verdict sbx_core_judge_hello(const struct sbx_core *core,
					const struct sbx_flow_target *target, int r,
					const struct sbx_tls_hello *hello);
/* Judges a flow by one of its HTTP requests. @event is valid if @r is 0, else @judge has the
 * reason. On ALLOW with *ret_opaque set, all later bytes are carried unjudged. */
struct sbx_verdict sbx_core_judge_request(const struct sbx_core *core,
					  const struct sbx_flow_target *target, int r,
					  const struct sbx_http_judge *judge,
					  const struct sbx_http_event *event, bool *ret_opaque);

#define SBX_CANDIDATES_MAX 16

struct sbx_candidates {
	size_t n;			       /* in the order to try */
	struct sbx_addr v[SBX_CANDIDATES_MAX]; /* each was judged */
	struct sbx_verdict refused; /* the last refusal; valid if some address was refused */
	struct sbx_addr refused_addr;
};

/* The addresses of @target's name that may be dialled, in the order of RFC 8305 section 4: families
 * alternating, @first_family (4 or 6) first. */
void sbx_core_candidates(const struct sbx_core *core, const struct sbx_flow_target *target,
			 const struct sbx_addr *addrs, size_t n, uint8_t first_family,
			 struct sbx_candidates *ret_candidates);

/* @name resolved to @addr: may the kernel let packets to @addr pass? Judged as a flow there is. */
bool sbx_core_may_pin(const struct sbx_core *core, const char *name, const struct sbx_addr *addr,
		      enum sbx_proto proto, uint16_t port);

/* The reason to record for a packet that the sandbox's filter refused. *ret_name: the name that is
 * pinned to @addr, borrowed; NULL: none. */
struct sbx_verdict sbx_core_judge_logged(const struct sbx_core *core, enum sbx_proto proto,
					 const struct sbx_addr *addr, uint16_t port,
					 const char **ret_name);

/* --- a policy that was changed --- */

/* Facts of a flow that came after its decision. */
struct sbx_core_opened {
	const struct sbx_addr *reached; /* that was dialled; NULL: none yet */
	uint16_t proxy_port;		/* not 0: it is the upstream proxy's */
	/* servers that it named, where they need not be the pinned name: SNI and Hosts */
	size_t n_named;
	char *const *named;
};

/* Judges the open flow to @target (kind NAME or ADDRESS) by the core's policy, which is a new one.
 * ALLOW: the flow goes on, and @target has the new verdict; its checks stay as they were. DENY,
 * with the reason: the flow must be cut, and @target is as before. A flow that the new policy would
 * check more than it was checked is denied too. */
struct sbx_verdict sbx_core_judge_again(const struct sbx_core *core,
					const struct sbx_core_opened *opened,
					struct sbx_flow_target *target);

#endif
