/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NFT_NFT_BATCH_H
#define SBX_SYS_NFT_NFT_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/nft/nft_form.h"
#include "sys/nft/nft_pin.h"

struct nlmsghdr;
struct nftnl_rule;

/*
 * The netlink batch: NFNL_MSG_BATCH_BEGIN, the table, the sets, the elements of networks, the
 * chains, the rules, the elements of maps, NFNL_MSG_BATCH_END, with sequence numbers counting from
 * first_seq. Only the last message before the end asks for an acknowledgement (errors always come),
 * so success is one message to read.
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
/* Without the shared parts (the table too), which must exist then. */
int sbx_nft_batch_init_own(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs,
			   uint32_t first_seq);
/* Replaces the own rules, chains and networks of @from, which exist, by those of @to. Sets of pins
 * stay. @generation: the kernel refuses the batch (-ERESTART) if its rulesets have another one; 0:
 * whatever they have. */
int sbx_nft_batch_init_change(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *from,
			      const struct sbx_nft_ruleset *to, uint32_t generation,
			      uint32_t first_seq);
void sbx_nft_batch_fini(struct sbx_nft_batch *b);
/* The message with @seq, or NULL. Borrowed from the batch. PURE. */
const struct nlmsghdr *sbx_nft_batch_message(const struct sbx_nft_batch *b, uint32_t seq);

/* Make a batch message by message: begin with room for @n_max bytes of messages (0 or -ENOMEM),
 * put, end. The last message before the end is acknowledged. The caller computes the room: too
 * little is our own bug and aborts. */
int sbx_nft_batch_begin(struct sbx_nft_batch *b, size_t n_max, uint32_t first_seq);
void sbx_nft_batch_end(struct sbx_nft_batch *b);
#define SBX_NFT_MESSAGE_BYTES 512 /* room for any message but a rule or elements */
/* Add a cgroup's element to the map @map; @chain NULL: remove it. */
void sbx_nft_put_cgroup(struct sbx_nft_batch *b, const char *map, uint64_t id, const char *chain);
/* Add or remove pins: type NFT_MSG_NEWSETELEM or NFT_MSG_DELSETELEM, the same for all of @v. */
#define SBX_NFT_PIN_BYTES 64
void sbx_nft_put_pins(struct sbx_nft_batch *b, uint16_t type, const char *set,
		      const struct sbx_attach_pin *const *v, size_t n);
/* Delete by name: NFT_MSG_DELRULE (all of a chain), NFT_MSG_DELCHAIN, NFT_MSG_DELSET,
 * NFT_MSG_DELTABLE (@name NULL). @flags: NLM_F_NONREC to refuse an object in use. */
void sbx_nft_put_delete(struct sbx_nft_batch *b, uint16_t type, const char *name, uint16_t flags);
/* The expressions of a rule, as nft(8) makes them. 0 or -ENOMEM. PURE. */
int sbx_nft_rule_exprs(struct nftnl_rule *r, const struct sbx_nft_rule *rule);

/* The two halves of sbx_nft_ruleset_apply(): send as one transaction; compare the kernel's
 * ruleset with the batch and with the ruleset it was made from. 0 or -errno (-EPROTO: they
 * differ) with @err filled. */
int sbx_nft_batch_send(const struct sbx_nft_batch *b, int fd, struct sbx_err *err);
int sbx_nft_batch_read_back(const struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs, int fd,
			    struct sbx_err *err);

/* The kernel's refusal: the message of the batch, and the place in it. */
struct sbx_nft_refusal {
	int error;        /* a positive errno */
	uint32_t seq;     /* of the message; the batch's first when the whole batch was refused */
	uint32_t offset;  /* of the attribute in the message (NLMSGERR_ATTR_OFFS); 0: not told */
	char reason[128]; /* the kernel's own words (NLMSGERR_ATTR_MSG); "" none */
};

/* Send as one transaction. 0, or -errno with @refusal filled; refusal->error is 0 where the
 * kernel refused no message. */
int sbx_nft_batch_transact(const struct sbx_nft_batch *b, int fd, struct sbx_nft_refusal *refusal);

/* Name cause and remedy of a refusal in @err. PURE. */
void sbx_nft_explain(const struct sbx_nft_batch *b, const struct sbx_nft_refusal *refusal,
		     struct sbx_err *err);

#endif
