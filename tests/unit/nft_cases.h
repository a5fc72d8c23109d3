/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_NFT_CASES_H
#define SBX_TESTS_NFT_CASES_H

/* The rulesets that golden files, the comparison with nft(8) and the behaviour tests are about. */

#include <string.h>

#include "base/cleanup.h"
#include "sys/net/net.h"
#include "sys/nft/nft.h"

#define NFT_CASE_GROUP 91

struct nft_case {
	const char *name;
	struct sbx_nft_input in;
};

#define V4(a, b, c, d)                                                                             \
	{                                                                                          \
		4,                                                                                 \
		{                                                                                  \
			a, b, c, d                                                                 \
		}                                                                                  \
	}
#define CARRY_TCP .tcp_port4 = SBX_NET_CARRY_PORT, .tcp_port6 = SBX_NET_CARRY_PORT
#define CARRY_UDP .udp = 1, .udp_port4 = SBX_NET_CARRY_PORT, .udp_port6 = SBX_NET_CARRY_PORT
#define CIDRS(v)  .n_cidrs = SBX_N_ELEMENTS(v), .cidrs = v

/* One address, whole bytes, a prefix within a byte, a range of ports, every port, UDP,
 * everything. */
static const struct sbx_nft_cidr nft_case_cidrs[] = {
	{ { V4(192, 0, 2, 7), 32 }, 5432, 5432, SBX_PROTO_TCP },
	{ { V4(10, 1, 2, 0), 24 }, 80, 90, SBX_PROTO_TCP },
	{ { V4(172, 16, 0, 0), 12 }, 1, 65535, SBX_PROTO_TCP },
	{ { V4(203, 0, 113, 0), 25 }, 123, 123, SBX_PROTO_UDP },
	{ { V4(0, 0, 0, 0), 0 }, 9418, 9418, SBX_PROTO_TCP },
	{ { { 6, { 0x20, 0x01, 0x0d, 0xb8, [15] = 9 } }, 128 }, 443, 443, SBX_PROTO_TCP },
	{ { { 6, { 0x20, 0x01, 0x0d, 0xb8, 0, 1 } }, 48 }, 8000, 8999, SBX_PROTO_TCP },
	{ { { 6, { 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0x80 } }, 49 }, 0, 65535, SBX_PROTO_UDP },
	{ { { 6, { 0 } }, 0 }, 9418, 9418, SBX_PROTO_TCP },
};

static const struct nft_case nft_cases[] = {
	{ "offline", { .nflog_group = NFT_CASE_GROUP } },
	{ "offline-dns", { .dns = 1, .nflog_group = NFT_CASE_GROUP } },
	{ "fetch", { CARRY_TCP, .dns = 1, .nflog_group = NFT_CASE_GROUP } },
	{ "fetch-udp", { CARRY_TCP, CARRY_UDP, .dns = 1, .nflog_group = NFT_CASE_GROUP } },
	{ "fetch-no-ipv6",
	  { .tcp_port4 = SBX_NET_CARRY_PORT, .dns = 1, .nflog_group = NFT_CASE_GROUP } },
	{ "fetch-cidrs",
	  { CARRY_TCP, CARRY_UDP, .dns = 1, CIDRS(nft_case_cidrs),
	    .nflog_group = NFT_CASE_GROUP } },
	{ "full",
	  { CARRY_TCP, CARRY_UDP, .all_destinations = 1, .dns = 1, CIDRS(nft_case_cidrs),
	    .nflog_group = NFT_CASE_GROUP } },
};

static inline const struct nft_case *nft_case_find(const char *name)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(nft_cases); i++)
		if (strcmp(nft_cases[i].name, name) == 0)
			return &nft_cases[i];
	return NULL;
}

#endif
