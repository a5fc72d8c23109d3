/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Helper of test_nft_equal.py: `nft_case names`, `nft_case text NAME` (print the ruleset as text),
 * `nft_case load NAME` (load it into this network namespace as a netlink batch), `nft_case time
 * NAME` (load it, print the microseconds that took).
 */
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/unit/nft_cases.h"

SBX_DEFINE_CLEANUP(struct sbx_nft_ruleset, sbx_nft_ruleset_free);

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int load(const struct sbx_nft_ruleset *rs, bool timed)
{
	SBX_AUTO_CLOSE int fd = sbx_net_netlink_open(NETLINK_NETFILTER);
	struct sbx_err err = { 0 };
	double start = now_us();
	int r = fd < 0 ? fd : sbx_nft_ruleset_apply(rs, fd, &err);

	if (r < 0)
		fprintf(stderr, "nft_case: %s (%s)\n", err.msg, strerror(-r));
	else if (timed)
		printf("%.0f\n", now_us() - start);
	return r < 0;
}

int main(int argc, char **argv)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	SBX_AUTO_FREE char *text = NULL;
	const struct nft_case *c;

	if (argc == 2 && strcmp(argv[1], "names") == 0) {
		for (size_t i = 0; i < SBX_N_ELEMENTS(nft_cases); i++)
			puts(nft_cases[i].name);
		return 0;
	}
	c = argc == 3 ? nft_case_find(argv[2]) : NULL;
	if (!c || sbx_nft_ruleset_new(&c->in, &rs) < 0)
		return 2;
	if (strcmp(argv[1], "load") == 0 || strcmp(argv[1], "time") == 0)
		return load(rs, argv[1][0] == 't');
	text = sbx_nft_ruleset_text(rs);
	if (!text || strcmp(argv[1], "text") != 0)
		return 2;
	fputs(text, stdout);
	return 0;
}
