/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_ATTACH_CASES_H
#define SBX_TESTS_ATTACH_CASES_H

/* The rulesets of attach cgroup that golden files, the comparison with nft(8) and the tests are
 * about. */

#include <string.h>

#include "base/cleanup.h"
#include "sys/nft/nft_attach.h"
#include "tests/unit/nft_cases.h"

struct attach_case {
	const char *name;
	struct sbx_attach_input in;
};

/* One address, whole bytes, a prefix within a byte, one inside another, the last of all. */
static const struct sbx_cidr attach_case_floors[] = {
	{ V4(169, 254, 169, 254), 32 },
	{ V4(100, 64, 0, 0), 10 },
	{ V4(100, 100, 100, 200), 32 },
	{ V4(255, 255, 255, 255), 32 },
	{ { 6, { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 } }, 128 },
	{ { 6, { 0xfe, 0x80 } }, 10 },
	{ { 6, { 0xff } }, 8 },
};

static const struct sbx_attach_cidr attach_case_admitted[] = {
	{ { V4(10, 1, 2, 0), 24 }, 5432, 5432, SBX_PROTO_TCP, false },
};

static const struct sbx_attach_cidr attach_case_entries[] = {
	{ { V4(192, 0, 2, 128), 25 }, 0, 65535, SBX_PROTO_OTHER, true },
	{ { V4(192, 0, 2, 0), 24 }, 8000, 8999, SBX_PROTO_TCP, false },
	{ { V4(0, 0, 0, 0), 0 }, 123, 123, SBX_PROTO_UDP, false },
	{ { { 6, { 0x20, 0x01, 0x0d, 0xb8, 0, 1 } }, 48 }, 1, 65535, SBX_PROTO_TCP, false },
};

static const uint16_t attach_case_ports[] = { 5432, 8080 };

#define ATTACH_COMMON .id = "0123456789ab", .level = 2, .nflog_group = 4711

static const struct attach_case attach_cases[] = {
	{ "closed", { ATTACH_COMMON } },
	{ "names",
	  { ATTACH_COMMON, .dns_addr = V4(127, 53, 1, 2), .dns_port = 53,
	    .n_floors = SBX_N_ELEMENTS(attach_case_floors), .floors = attach_case_floors } },
	{ "everything",
	  { ATTACH_COMMON, .dns_addr = V4(127, 53, 1, 2), .dns_port = 53,
	    .n_floors = SBX_N_ELEMENTS(attach_case_floors), .floors = attach_case_floors,
	    .n_loopback_ports = SBX_N_ELEMENTS(attach_case_ports),
	    .loopback_ports = attach_case_ports, .n_admitted = SBX_N_ELEMENTS(attach_case_admitted),
	    .admitted = attach_case_admitted, .n_cidrs = SBX_N_ELEMENTS(attach_case_entries),
	    .cidrs = attach_case_entries } },
	{ "full",
	  { ATTACH_COMMON, .n_floors = SBX_N_ELEMENTS(attach_case_floors),
	    .floors = attach_case_floors, .all_destinations = true } },
};

static inline const struct attach_case *attach_case_find(const char *name)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(attach_cases); i++)
		if (strcmp(attach_cases[i].name, name) == 0)
			return &attach_cases[i];
	return NULL;
}

#endif
