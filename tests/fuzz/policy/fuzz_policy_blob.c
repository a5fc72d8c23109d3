/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compiled policies from an untrusted process: a blob is refused, or every question to it gets an
 * answer. */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/decide/policy.h"
#include "tests/fuzz/fuzz.h"

/* Everything that explains. */
static void answer(const struct sbx_policy *p, const struct sbx_policy_asked *asked,
		   const struct sbx_verdict *v)
{
	struct sbx_policy_change changes[SBX_CHANGES_MAX];
	struct sbx_policy_entry e;
	uint32_t m[8];
	size_t n;

	n = asked->name ? sbx_policy_matches_name(p, asked->name, asked->proto, asked->port, m, 8) :
			  sbx_policy_matches_addr(p, asked->addr, asked->proto, asked->port, m, 8);
	CHECK(n <= 9);
	for (size_t i = 0; i < n && i < 8; i++)
		CHECK(sbx_policy_entry(p, m[i], &e) && e.layer <= SBX_LAYER_ADMIT);
	CHECK(sbx_policy_changes(p, asked, v, changes) <= SBX_CHANGES_MAX);
}

static void ask(const struct sbx_policy *p)
{
	static const char *const names[] = { "a.example", "x.b.example", "www.ipinfo.io",
					     "org",	  "Bad",	 "" };
	static const struct sbx_addr addrs[] = {
		{ .family = 4, .b = { 10, 1, 2, 3 } },
		{ .family = 4, .b = { 169, 254, 169, 254 } },
		{ .family = 6, .b = { 0x20, 0x01, 0x0d, 0xb8 } },
		{ .family = 6, .b = { 0x00, 0x64, 0xff, 0x9b } },
		{ .family = 0 },
	};
	struct sbx_policy_port ports[4];
	struct sbx_policy_cidr c;
	struct sbx_policy_entry e;
	struct sbx_verdict v;
	char buf[512];

	sbx_policy_carries_udp(p);
	for (uint32_t i = 0; sbx_policy_entry(p, i, &e); i++)
		CHECK(strlen(e.origin) < sizeof(e.origin));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		for (int port = 0; port <= 443; port += 443) {
			v = sbx_policy_decide_name(p, names[i], SBX_PROTO_TCP, (uint16_t)port);
			CHECK(v.action <= SBX_ALLOW && v.check < SBX_N_CHECKS);
			sbx_policy_explain(p, &v, names[i], buf, sizeof(buf));
			answer(p,
			       &(struct sbx_policy_asked){ .name = names[i],
							   .port = (uint16_t)port },
			       &v);
		}
		sbx_policy_terminates(p, names[i]);
		CHECK(i > 0 || sbx_policy_name_ports(p, names[i], ports, 4) <= 5);
	}
	for (size_t i = 0; i < sizeof(addrs) / sizeof(*addrs); i++) {
		v = sbx_policy_decide_addr(p, &addrs[i], SBX_PROTO_UDP, 53);
		CHECK(v.action <= SBX_ALLOW && v.check < SBX_N_CHECKS);
		answer(p,
		       &(struct sbx_policy_asked){
			       .addr = &addrs[i], .proto = SBX_PROTO_UDP, .port = 53 },
		       &v);
		v = sbx_policy_decide_resolved(p, &addrs[i], SBX_PROTO_TCP, 443, true);
		CHECK(v.action <= SBX_ALLOW);
		sbx_policy_explain(p, &v, "an address", buf, sizeof(buf));
	}
	/* Metadata is refused whatever a blob says. */
	CHECK(sbx_policy_decide_addr(p, &addrs[1], SBX_PROTO_TCP, 80).action == SBX_DENY);
	for (size_t i = 0; sbx_policy_cidr_at(p, i, &c); i++)
		CHECK(c.port_first >= 1 && c.port_first <= c.port_last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sbx_policy *p = NULL;
	uint8_t *copy;
	int r;

	/* The contract: 8-byte aligned. */
	if (posix_memalign((void **)&copy, 8, size ? size : 8))
		return 0;
	memcpy(copy, data, size);
	r = sbx_policy_load(sbx_span(copy, size), &p);
	CHECK(r == 0 ? p != NULL : r == -EBADMSG);
	if (p)
		ask(p);
	sbx_policy_free(p);
	free(copy);
	return 0;
}
