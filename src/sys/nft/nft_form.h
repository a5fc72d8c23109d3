/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NFT_NFT_FORM_H
#define SBX_SYS_NFT_NFT_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/reason.h"
#include "base/span.h"
#include "sys/nft/nft.h"

struct nlmsghdr;
struct nftnl_rule;

/*
 * The intermediate form of a ruleset, private to nft*.c: sets, and chains of rules, a rule a sequence
 * of typed items (matches, then statements). nft_text.c and nft_expr.c each translate every item
 * kind; the enum ends in a count so that a kind without a translation is a compile error in both.
 */

#define SBX_NFT_TABLE "sbx" /* family inet */

enum sbx_nft_item_kind {
	SBX_NFT_IIF_LO = 0, /* negate; by its index, 1 in every namespace: cheaper than by name */
	SBX_NFT_OIF_LO,	    /* negate */
	SBX_NFT_DADDR,	     /* u.cidr, negate; implies the family; prefix 0: the family alone */
	SBX_NFT_L4PROTO,     /* u.port.proto */
	SBX_NFT_DPORT,	     /* u.port, all of it; implies the protocol */
	SBX_NFT_SPORT,	     /* the same */
	SBX_NFT_TCP_OPENED,  /* not a SYN that opens a connection (negate: one); only after a match of tcp */
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
	SBX_N_NFT_ITEM_KINDS,
};

struct sbx_nft_item {
	enum sbx_nft_item_kind kind;
	bool negate;
	union {
		const char *name; /* GOTO: as long as the ruleset */
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
	SBX_NFT_SET_NETS = 0, /* networks, none inside another; never changed */
	SBX_NFT_SET_PINS,     /* address . protocol . port, each with a time to live; empty at first */
	SBX_NFT_SET_CGROUPS,  /* a map: cgroup id -> goto chain */
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
	char *cgroup_path; /* owned; below /sys/fs/cgroup, for the text alone; NULL: not known */
	const char *chain;
};

#define SBX_NFT_CHAINS_MAX 6
#define SBX_NFT_SETS_MAX   8
#define SBX_NFT_NAME_MAX   40

struct sbx_nft_ruleset {
	bool shares_table; /* the table may be there, with others' chains */
	size_t n_sets;
	struct sbx_nft_set sets[SBX_NFT_SETS_MAX];
	size_t n_chains;
	struct sbx_nft_chain chains[SBX_NFT_CHAINS_MAX];
	size_t n_names; /* what sets and chains are called, where that is no literal */
	char names[SBX_NFT_SETS_MAX + SBX_NFT_CHAINS_MAX + 4][SBX_NFT_NAME_MAX];
};

/*
 * The netlink batch: NFNL_MSG_BATCH_BEGIN, the table, the sets, the elements of networks, the chains,
 * the rules, the elements of maps, NFNL_MSG_BATCH_END, with sequence numbers counting from first_seq.
 * Only the last message before the end asks for an acknowledgement (errors always come), so success is
 * one message to read.
 */
struct sbx_nft_batch {
	void *p; /* malloc'ed */
	size_t n, n_max;
	uint32_t first_seq, ack_seq, next_seq;
	uint32_t rules_seq; /* the first rule */
};

/* 0 or -ENOMEM. PURE. */
int sbx_nft_batch_init(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs,
		       uint32_t first_seq);
/* Without what is shared with others, which must be there then: the table too. */
int sbx_nft_batch_init_own(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs,
			   uint32_t first_seq);
void sbx_nft_batch_fini(struct sbx_nft_batch *b);
/* The message with @seq, or NULL. Borrowed from the batch. PURE. */
const struct nlmsghdr *sbx_nft_batch_message(const struct sbx_nft_batch *b, uint32_t seq);

/* A batch message by message: begin with room for @n_max bytes of messages (0 or -ENOMEM), put, end.
 * The last before the end is acknowledged.
 * What must fit is computed by the caller: too little is our own bug and aborts. */
int sbx_nft_batch_begin(struct sbx_nft_batch *b, size_t n_max, uint32_t first_seq);
void sbx_nft_batch_end(struct sbx_nft_batch *b);
#define SBX_NFT_MESSAGE_BYTES 512 /* room for any message but a rule or elements */
/* Put or take a cgroup's element of the map @map; @chain NULL: take. */
void sbx_nft_put_cgroup(struct sbx_nft_batch *b, const char *map, uint64_t id, const char *chain);
/* Pins: type NFT_MSG_NEWSETELEM or NFT_MSG_DELSETELEM, the same for all of @v. */
struct sbx_attach_pin;
#define SBX_NFT_PIN_BYTES 64
void sbx_nft_put_pins(struct sbx_nft_batch *b, uint16_t type, const char *set,
		      const struct sbx_attach_pin *const *v, size_t n);
/* A message about a name: NFT_MSG_DELRULE (all of a chain), NFT_MSG_DELCHAIN, NFT_MSG_DELSET,
 * NFT_MSG_DELTABLE (@name NULL). @flags: NLM_F_NONREC to refuse what is in use. */
void sbx_nft_put_delete(struct sbx_nft_batch *b, uint16_t type, const char *name, uint16_t flags);
/* Messages that come: the attributes of one of @type (false: it is another); the first of a type among attributes; its
 * value as a NUL-terminated string (NULL: it is none). */
bool sbx_nft_message_attrs(const struct nlmsghdr *nlh, uint16_t type, struct sbx_span *ret_attrs);
bool sbx_nft_attr_find(struct sbx_span attrs, uint16_t type, struct sbx_span *ret_value);
const char *sbx_nft_attr_str(struct sbx_span attrs, uint16_t type);
/* Does @map lead the cgroup to @chain? 0, -ENOENT, -EPROTO (elsewhere), -errno. */
int sbx_attach_has(const char *map, uint64_t cgroup_id, const char *chain, int nl_fd);
/* The level's map among the ruleset's sets; NULL: it is not one of attach cgroup. */
const struct sbx_nft_set *sbx_attach_map(const struct sbx_nft_ruleset *rs);
/* Is the table there, and not dormant (nft(8): then it judges nothing)? 0, -EPROTO, -errno. */
int sbx_attach_is_awake(int nl_fd);
/* Is there such a map? 0, -ENOENT, -errno. Has it an element? 1, 0, -errno. */
int sbx_attach_level_exists(const char *map, int nl_fd);
int sbx_attach_level_is_used(const char *map, int nl_fd);
/* The levels that have a map: their number, at most n_max; or -errno. */
int sbx_attach_levels(int nl_fd, uint32_t *v, size_t n_max);
/* Remove a level's map and base chain; the table. -EBUSY: somebody uses it. */
int sbx_attach_remove_level(const char *map, int nl_fd);
int sbx_attach_remove_table(int nl_fd);
/* Remove what is shared and used by nobody. 0 or -errno. */
int sbx_attach_remove_unused(int nl_fd);

/* The expressions of a rule, as nft(8) makes them. 0 or -ENOMEM. PURE. */
int sbx_nft_rule_exprs(struct nftnl_rule *r, const struct sbx_nft_rule *rule);

/* The two halves of sbx_nft_ruleset_apply: send as one transaction; hold what the kernel has
 * against the batch and the ruleset it was made from. 0 or -errno (-EPROTO: they differ) with
 * @err filled. */
int sbx_nft_batch_send(const struct sbx_nft_batch *b, int fd, struct sbx_err *err);
int sbx_nft_batch_read_back(const struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs, int fd,
			    struct sbx_err *err);

/* What the kernel refused: which message of a batch, and where in it. */
struct sbx_nft_refusal {
	int error;        /* a positive errno */
	uint32_t seq;     /* of the message; the first of the batch when all of it was refused */
	uint32_t offset;  /* of the attribute in the message (NLMSGERR_ATTR_OFFS); 0: not told */
	char reason[128]; /* the kernel's own words (NLMSGERR_ATTR_MSG); "" none */
};

/* Send as one transaction. 0, or -errno with what was refused: refusal->error is 0 where it was not
 * the kernel's judgement of a message. */
int sbx_nft_batch_transact(const struct sbx_nft_batch *b, int fd, struct sbx_nft_refusal *refusal);

/* Name cause and remedy of a refusal in @err. PURE. */
void sbx_nft_explain(const struct sbx_nft_batch *b, const struct sbx_nft_refusal *refusal,
		     struct sbx_err *err);

#endif
