/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NFT_NFT_FORM_H
#define SBX_SYS_NFT_NFT_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/reason.h"

/*
 * The intermediate form of a ruleset, private to nft*.c: sets, and chains of rules, a rule a
 * sequence of typed items (matches, then statements). nft_text.c and nft_batch_expr.c each
 * translate every item kind; the enum ends in a count so that a kind without a translation is a
 * compile error in both.
 */

#define SBX_NFT_TABLE "sbx" /* family inet */

enum sbx_nft_item_kind {
	SBX_NFT_IIF_LO = 0, /* negate; by its index, 1 in every namespace: cheaper than by name */
	SBX_NFT_OIF_LO,	    /* negate */
	SBX_NFT_DADDR,	    /* u.cidr, negate; implies the family; prefix 0: the family alone */
	SBX_NFT_L4PROTO,    /* u.port.proto */
	SBX_NFT_DPORT,	    /* u.port, all of it; implies the protocol */
	SBX_NFT_SPORT,	    /* the same */
	/* not a SYN that opens a connection (negate: one); only after a match of tcp */
	SBX_NFT_TCP_OPENED,
	SBX_NFT_DADDR_IN,    /* u.set: networks; implies the family */
	SBX_NFT_PIN_IN,	     /* u.set: destination address . protocol . port; implies the family */
	SBX_NFT_IP6_ROUTED,  /* has a routing header; implies the family */
	SBX_NFT_CGROUP_VMAP, /* u.cgroup: the verdict is the map's */
	SBX_NFT_TPROXY,	     /* u.tproxy; only after matches of a family and a protocol */
	SBX_NFT_LOG,	     /* u.log */
	SBX_NFT_REJECT_TCP_RESET, /* only after a match of tcp */
	SBX_NFT_REJECT_ADMIN,	  /* icmpx admin-prohibited */
	SBX_NFT_ACCEPT,
	SBX_NFT_DROP,
	SBX_NFT_GOTO, /* u.name: a chain */
	SBX_NFT_JUMP, /* the same; the next rule follows what returns from there */
	SBX_NFT_RETURN,
	SBX_N_NFT_ITEM_KINDS,
};

struct sbx_nft_item {
	enum sbx_nft_item_kind kind;
	bool negate;
	union {
		const char *name; /* GOTO, JUMP: as long as the ruleset */
		struct sbx_cidr cidr;
		struct {
			enum sbx_proto proto; /* tcp or udp */
			uint16_t first, last;
		} port;
		struct {
			uint8_t family; /* 4 or 6 */
			uint16_t port;
		} tproxy;
		struct {
			uint16_t group;
			uint32_t snaplen;
			const char *prefix; /* NULL none; a plain word */
		} log;
		struct {
			uint8_t family; /* 4 or 6 */
			const char *name;
		} set;
		struct {
			uint32_t level;
			const char *map;
		} cgroup;
	} u;
};

#define SBX_NFT_ITEMS_MAX 4

struct sbx_nft_rule {
	size_t n_items;
	struct sbx_nft_item items[SBX_NFT_ITEMS_MAX];
};

struct sbx_nft_chain {
	const char *name;
	bool shared;			       /* other rulesets of the table have it too */
	const char *hook_name, *priority_name; /* as nft(8) writes them; NULL: not a base chain */
	uint32_t hook;			       /* NF_INET_* */
	int32_t priority;
	bool policy_drop;
	size_t n_rules, n_rules_max;
	struct sbx_nft_rule *rules;
};

enum sbx_nft_set_kind {
	/* networks, none inside another; a change replaces the set */
	SBX_NFT_SET_NETS = 0,
	/* address . protocol . port, each with a time to live; empty at first */
	SBX_NFT_SET_PINS,
	SBX_NFT_SET_CGROUPS, /* a map: from a cgroup id to a goto chain */
	SBX_N_NFT_SET_KINDS,
};

struct sbx_nft_set {
	const char *name;
	enum sbx_nft_set_kind kind;
	bool shared;
	uint8_t family; /* 4 or 6; 0 for cgroups */
	size_t n_nets;
	struct sbx_cidr *nets; /* owned */
	/* of cgroups: the one element that this ruleset puts there */
	uint64_t cgroup_id;
	char *cgroup_path; /* owned; below /sys/fs/cgroup, only for the text; NULL: unknown */
	const char *chain;
};

#define SBX_NFT_CHAINS_MAX 9
#define SBX_NFT_SETS_MAX   9
#define SBX_NFT_NAME_MAX   40

struct sbx_nft_ruleset {
	bool shares_table; /* the table may exist, with chains of others */
	size_t n_sets;
	struct sbx_nft_set sets[SBX_NFT_SETS_MAX];
	size_t n_chains;
	struct sbx_nft_chain chains[SBX_NFT_CHAINS_MAX];
	size_t n_names; /* names of sets and chains that are not literals */
	char names[SBX_NFT_SETS_MAX + SBX_NFT_CHAINS_MAX + 4][SBX_NFT_NAME_MAX];
};

#endif
