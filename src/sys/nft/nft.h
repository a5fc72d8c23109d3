/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NFT_NFT_H
#define SBX_SYS_NFT_NFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/reason.h"

/*
 * Rulesets: one intermediate form (a list of typed rules) becomes the netlink batch (libnftnl) and
 * nft(8) text. A test loads both in a namespace and compares the kernel's listings.
 */

#define SBX_NFT_CIDRS_MAX 256 /* a batch must fit the socket buffer that an ordinary user gets */

struct sbx_nft_cidr {
	struct sbx_cidr cidr;
	uint16_t port_first, port_last;
	enum sbx_proto proto;
};

/* The input for the ruleset of one sandbox with attach netns. */
struct sbx_nft_input {
	/* the broker's tproxy listeners; 0: that kind is not carried */
	uint16_t tcp_port4, tcp_port6, udp_port4, udp_port6;
	int all_destinations;   /* mode full: every address goes to the broker */
	int udp;                /* the policy has udp entries (or mode full): carry UDP too */
	size_t n_cidrs;         /* explicit cidr allow entries */
	const struct sbx_nft_cidr *cidrs;
	uint16_t nflog_group;
	int dns;                /* port 53 reaches the stub */
	/* nothing is carried now (air gap), and the chain that carries is there for later */
	int shut;
};

struct sbx_nft_ruleset; /* the intermediate form */

/* Build the ruleset of @in (borrowed, trusted but checked). PURE. 0, -ENOMEM, -E2BIG (more than
 * SBX_NFT_CIDRS_MAX cidrs), -EINVAL (an invalid cidr: family, prefix, host bits, ports,
 * protocol). */
int sbx_nft_ruleset_new(const struct sbx_nft_input *in, struct sbx_nft_ruleset **ret_rs);
struct sbx_nft_ruleset *sbx_nft_ruleset_free(struct sbx_nft_ruleset *rs);
/* nft(8) text that loads with `nft -f`. malloc'ed. NULL: out of memory. PURE. */
char *sbx_nft_ruleset_text(const struct sbx_nft_ruleset *rs);
/* Send the ruleset as one atomic batch over @nl_fd (NETLINK_NETFILTER), then read it back: the
 * table's chains and rules must be the ones sent. 0 or -errno with @err naming the cause and the
 * remedy (no nf_tables, no tproxy, no permission). */
int sbx_nft_ruleset_apply(const struct sbx_nft_ruleset *rs, int nl_fd, struct sbx_err *err);
/* The same for a namespace that has a ruleset with the same chains: their rules are replaced, all
 * at once for every packet. As sbx_nft_ruleset_apply(); *ret_taken: the kernel took the new rules,
 * also if they could not be read back. */
int sbx_nft_ruleset_replace(const struct sbx_nft_ruleset *rs, int nl_fd, bool *ret_taken,
			    struct sbx_err *err);

#endif
