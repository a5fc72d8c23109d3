/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_DECIDE_POLICY_H
#define SBX_POLICY_DECIDE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/reason.h"
#include "base/span.h"
#include "policy/decide/live.h"
#include "policy/decide/rules.h"
#include "policy/profile/profile.h"

/*
 * The compiled policy: an immutable snapshot in one position-independent blob, made by the launcher
 * (sbx_policy_compile) and read by the broker (sbx_policy_load) without parsing any text. A lookup
 * is a walk over the labels of a name (one hash probe per label) or over the prefix lengths in use.
 */

struct sbx_policy; /* borrows the blob it was loaded from */

/* Everything that a policy is made of; all of it is borrowed. */
struct sbx_policy_input {
	/* settled (sbx_profile_settle_secrets()), with the flags merged in */
	const struct sbx_profile *profile;
	const struct sbx_system_policy *system; /* NULL: none */
	const struct sbx_rules *rules;		/* of the workspace and the host; NULL: none */
	const struct sbx_live *live;		/* changes of the running sandbox; NULL: none */
	uint64_t generation;			/* from 1 */
};

/* Compile the network part. *ret_blob is malloc'ed and the caller's. Wildcards over a public
 * suffix, malformed names and so on were refused when the lists were read. 0 or -errno (-EINVAL:
 * the profile was not settled). */
int sbx_policy_compile(const struct sbx_policy_input *in, void **ret_blob, size_t *ret_n);

/* Check every offset and count of @blob (untrusted) and build a view. @blob (8-byte aligned) must
 * outlive the policy. 0, -EBADMSG, -ENOMEM. */
int sbx_policy_load(struct sbx_span blob, struct sbx_policy **ret_policy);
struct sbx_policy *sbx_policy_free(struct sbx_policy *p);

struct sbx_verdict {
	enum sbx_action action; /* DENY is 0 */
	enum sbx_reason reason;
	enum sbx_check check; /* the protocol that the flow must begin with */
	bool private_ok;      /* the entry says private: true */
	uint32_t rule;	      /* for sbx_policy_rule_text(); UINT32_MAX: none */
	/* sbx-tls carries the flow: the number, from 1, of the entry among the terminated ones, in
	 * the order of the profile's allow list. 0: it does not. */
	uint32_t terminate;
	/* SBX_TERMINATE_LIVE: the live rule's `requests` (live.h); of the policy's memory */
	const char *requests;
};

/* struct sbx_verdict.terminate: sbx-tls carries the flow, and judges by a live rule. */
#define SBX_TERMINATE_LIVE UINT32_MAX

/*
 * Decides by, in this order: floors; mode offline; rules, by priority; the live lists; the
 * profile's lists; the default. Air-gapped, only floors, denying rules and the live lists decide,
 * and the rest is refused. In each layer the most specific match wins, on a tie deny.
 *
 * An allow of a rule or a live list has the check, the `private` and the termination of the
 * profile's entry that allows the same flow. Where there is none, but the profile terminates flows
 * to the name, the flow is terminated too.
 *
 * Whatever allows a flow to a name: if the live rule for that name and port says something of
 * requests, sbx-tls judges them by it, and UDP is refused.
 *
 * Names are normalised; port 0 asks about the name on any port (DNS).
 */
struct sbx_verdict sbx_policy_decide_name(const struct sbx_policy *p, const char *name,
					  enum sbx_proto proto, uint16_t port);
/* The same for the server that a flow to an address names. The air gap had its say on the address,
 * and hides no deny of the name: the verdict is that without it. */
struct sbx_verdict sbx_policy_decide_server(const struct sbx_policy *p, const char *name,
					    enum sbx_proto proto, uint16_t port);
/* The ports and protocols that list entries allow @name: at most @n_max are written. Returns their
 * number, or n_max + 1 if there are more. Defaults (mode full, default: allow) are not listed. */
struct sbx_policy_port {
	enum sbx_proto proto; /* tcp or udp */
	uint16_t port;
};
size_t sbx_policy_name_ports(const struct sbx_policy *p, const char *name,
			     struct sbx_policy_port *v, size_t n_max);
/* Are flows to some name terminated? */
bool sbx_policy_terminates_any(const struct sbx_policy *p);
/* Are flows to @name terminated on some port? */
bool sbx_policy_terminates(const struct sbx_policy *p, const char *name);
/* May a flow of UDP be allowed? */
bool sbx_policy_carries_udp(const struct sbx_policy *p);
/* Decides on a literal address as a flow's destination: by explicit cidr entries, in mode full by
 * the default. The address must also be of a class that may be dialled
 * (sbx_policy_decide_resolved()). */
struct sbx_verdict sbx_policy_decide_addr(const struct sbx_policy *p, const struct sbx_addr *addr,
					  enum sbx_proto proto, uint16_t port);
/* May @addr, a resolved address of an allowed name, be dialled? Judges floors, the cidrs of all
 * layers and the address class; private_ok as the name's verdict had it; the system policy's
 * admitted cidrs lift a class (never metadata). Own addresses of the host are the caller's check.
 * A deny by a rule or a live list keeps that layer's reason. */
struct sbx_verdict sbx_policy_decide_resolved(const struct sbx_policy *p,
					      const struct sbx_addr *addr, enum sbx_proto proto,
					      uint16_t port, bool private_ok);

/* May the broker connect to an upstream proxy at @addr? Yes if the class of @addr is public and it
 * is none of this host's own addresses (@own). Otherwise, also on this host's loopback, only if the
 * system policy admits it. Nothing lifts a floor, or a class that leads nowhere. */
bool sbx_policy_admits_proxy(const struct sbx_policy *p, const struct sbx_addr *addr, uint16_t port,
			     bool own);

/* Mode full: does a flow pass to an address that no entry names? Not under an air gap, and not if
 * the workspace's default is to deny. */
bool sbx_policy_is_open(const struct sbx_policy *p);

/* The default's action for a flow that no entry has; offline and air-gapped it is not asked.
 * *ret_of_workspace: the workspace's, instead of the profile's. */
enum sbx_action sbx_policy_default(const struct sbx_policy *p, bool *ret_of_workspace);

/* The entry as it was written ("*.example.org:443", "floor 169.254.169.254", "rule 12 pypi.org",
 * "live pypi.org"); "" for UINT32_MAX. */
const char *sbx_policy_rule_text(const struct sbx_policy *p, uint32_t rule);
uint64_t sbx_policy_generation(const struct sbx_policy *p);
/* Is the sandbox cut off but for live allow entries? (Not: is it offline by its mode.) */
bool sbx_policy_air_gapped(const struct sbx_policy *p);
/* Does the verdict come from an allow entry of a rule, a live list or the profile? */
bool sbx_verdict_by_entry(const struct sbx_verdict *v);

/* The layers in the order of decision. */
enum sbx_layer {
	SBX_LAYER_FLOOR = 0,
	SBX_LAYER_RULE,
	SBX_LAYER_LIVE,
	SBX_LAYER_PROFILE,
	SBX_LAYER_ADMIT,   /* admit of system.yaml: address classes only */
	SBX_LAYER_DEFAULT, /* no entry */
	SBX_N_LAYERS,
};
const char *sbx_layer_str(enum sbx_layer l); /* "floor", "rule", "live", "profile", ... */

#define SBX_ORIGIN_MAX 256 /* bytes, with the NUL */

/* One entry and its place. Strings borrow from the policy. */
struct sbx_policy_entry {
	enum sbx_layer layer;
	enum sbx_action action; /* allow or deny */
	const char *text;	/* as written, without a word before it: "pypi.org:443" */
	int64_t row;		/* of a rule or of a stored floor; 0: it is none */
	uint32_t priority;	/* of a rule */
	bool is_cidr;
	struct sbx_cidr cidr;
	/* "FILE:LINE", "rule 12", "--allow", "sbxctl net", "shipped"; "" if it is not known */
	char origin[SBX_ORIGIN_MAX];
};
/* The entry @rule, from 0 to the first number that returns false: there are no more. Entries are
 * sorted by layer, and in a layer by name or network. */
bool sbx_policy_entry(const struct sbx_policy *p, uint32_t rule,
		      struct sbx_policy_entry *ret_entry);

/*
 * Everything that matches a name (or an address) with that protocol and port, in the order of
 * decision: of all layers, the first of a layer before the others that it beats. By the walk that
 * decides; the one that decided is verdict.rule. At most @n_max are written. Returns their number,
 * or n_max + 1 if there are more. Port 0: on any port.
 */
size_t sbx_policy_matches_name(const struct sbx_policy *p, const char *name, enum sbx_proto proto,
			       uint16_t port, uint32_t *v, size_t n_max);
size_t sbx_policy_matches_addr(const struct sbx_policy *p, const struct sbx_addr *addr,
			       enum sbx_proto proto, uint16_t port, uint32_t *v, size_t n_max);

/* A flag, an entry or a line for sbxctl that changes a verdict. */
enum sbx_change_kind {
	SBX_CHANGE_FLAG = 0,	/* of sbx-run: "--allow 'pypi.org:22'" */
	SBX_CHANGE_PROFILE,	/* an entry to write: "network.allow: pypi.org:22" */
	SBX_CHANGE_PRIVATE,	/* the same, with `private: true` */
	SBX_CHANGE_REMOVE,	/* an entry to remove: "the entry 'x.org' (dev.yaml:12)" */
	SBX_CHANGE_RULE_ADD,	/* "sbxctl rules add --workspace W --type network ..." */
	SBX_CHANGE_RULE_REMOVE, /* "sbxctl rules rm 12" */
	SBX_CHANGE_NET,		/* "sbxctl net ID --allow 'pypi.org:22'" */
	SBX_CHANGE_NO_AIR_GAP,	/* "sbxctl net ID --no-air-gap" */
	SBX_N_CHANGE_KINDS,
};
#define SBX_CHANGE_TEXT_MAX 1024
#define SBX_CHANGES_MAX	    4
struct sbx_policy_change {
	enum sbx_change_kind kind;
	enum sbx_action action; /* of the entry that is added */
	uint32_t priority;	/* RULE_ADD */
	int64_t row;		/* RULE_REMOVE */
	char pattern[SBX_CHANGE_TEXT_MAX]; /* of the entry that is added, not quoted */
	char text[SBX_CHANGE_TEXT_MAX];	   /* to show; for a shell where it is a command */
};
/* A flow to @name, to the literal address @addr, or, with both, to a resolved address of a name. */
struct sbx_policy_asked {
	const char *name;
	const struct sbx_addr *addr;
	enum sbx_proto proto; /* tcp or udp */
	uint16_t port;	      /* not 0 */
	const char *workspace, *id; /* for the text; NULL: "W", "ID" */
};
/* Each change alone turns the verdict @v of this policy on @asked into its opposite. The closest
 * first. Returns their number; 0: nothing that is changed
 * for one sandbox or workspace does (a floor, mode offline). */
size_t sbx_policy_changes(const struct sbx_policy *p, const struct sbx_policy_asked *asked,
			  const struct sbx_verdict *v,
			  struct sbx_policy_change ret_changes[SBX_CHANGES_MAX]);

/* One sentence for people: the verdict, the entry that decided, and how to allow it. Returns
 * @buf. */
const char *sbx_policy_explain(const struct sbx_policy *p, const struct sbx_verdict *v,
			       const char *what, char *buf, size_t n_buf);

/* The remedy for a reason whose text has none. Static text; NULL: there is none. */
const char *sbx_policy_remedy(enum sbx_reason reason);

/* The explicit cidr allow entries, for the firewall: one port range each, i from 0 until false. */
struct sbx_policy_cidr {
	struct sbx_cidr cidr;
	uint16_t port_first, port_last; /* 1..65535 */
	enum sbx_proto proto;		/* tcp or udp */
};
bool sbx_policy_cidr_at(const struct sbx_policy *p, size_t i, struct sbx_policy_cidr *ret_cidr);

/* SHA-256 over the blob's meaning is the policy hash; hex, 64 digits and a NUL. */
void sbx_policy_hash(const struct sbx_policy *p, char ret_hex[65]);

#endif
