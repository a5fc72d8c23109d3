/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NFT_FORM_H
#define SBX_SYS_NFT_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/reason.h"
#include "sys/nft.h"

struct nlmsghdr;
struct nftnl_rule;

/*
 * The intermediate form of a ruleset, private to nft*.c: chains of rules, a rule a sequence of
 * typed items (matches, then statements). nft_text.c and nft_batch.c each translate every item
 * kind; the enum ends in a count so that a kind without a translation is a compile error in both.
 */

#define SBX_NFT_TABLE "sbx" /* family inet */

enum sbx_nft_item_kind {
	SBX_NFT_IIFNAME = 0, /* u.name, negate */
	SBX_NFT_DADDR,	     /* u.cidr, negate; implies the family; prefix 0: the family alone */
	SBX_NFT_L4PROTO,     /* u.port.proto */
	SBX_NFT_DPORT,	     /* u.port, all of it; implies the protocol */
	SBX_NFT_TPROXY,	     /* u.tproxy; only after matches of a family and a protocol */
	SBX_NFT_LOG,	     /* u.log */
	SBX_NFT_REJECT_TCP_RESET, /* only after a match of tcp */
	SBX_NFT_REJECT_ADMIN,	  /* icmpx admin-prohibited */
	SBX_NFT_ACCEPT,
	SBX_N_NFT_ITEM_KINDS,
};

struct sbx_nft_item {
	enum sbx_nft_item_kind kind;
	bool negate;
	union {
		const char *name; /* static text, shorter than IFNAMSIZ */
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
		} log;
	} u;
};

#define SBX_NFT_ITEMS_MAX 4

struct sbx_nft_rule {
	size_t n_items;
	struct sbx_nft_item items[SBX_NFT_ITEMS_MAX];
};

struct sbx_nft_chain {
	const char *name;
	const char *hook_name, *priority_name; /* as nft(8) writes them */
	uint32_t hook;			       /* NF_INET_* */
	int32_t priority;
	bool policy_drop;
	size_t n_rules, n_rules_max;
	struct sbx_nft_rule *rules;
};

#define SBX_NFT_CHAINS_MAX 2

struct sbx_nft_ruleset {
	size_t n_chains;
	struct sbx_nft_chain chains[SBX_NFT_CHAINS_MAX];
};

/*
 * The netlink batch: NFNL_MSG_BATCH_BEGIN, the table, the chains, the rules, NFNL_MSG_BATCH_END,
 * with sequence numbers counting from first_seq. Only the last message before the end asks for an
 * acknowledgement (errors always come), so success is one message to read.
 */
struct sbx_nft_batch {
	void *p; /* malloc'ed */
	size_t n;
	uint32_t first_seq, ack_seq, next_seq;
};

/* 0 or -ENOMEM. PURE. */
int sbx_nft_batch_init(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs,
		       uint32_t first_seq);
void sbx_nft_batch_fini(struct sbx_nft_batch *b);
/* The message with @seq, or NULL. Borrowed from the batch. PURE. */
const struct nlmsghdr *sbx_nft_batch_message(const struct sbx_nft_batch *b, uint32_t seq);

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

/* Name cause and remedy of a refusal in @err. PURE. */
void sbx_nft_explain(const struct sbx_nft_batch *b, const struct sbx_nft_refusal *refusal,
		     struct sbx_err *err);

#endif
