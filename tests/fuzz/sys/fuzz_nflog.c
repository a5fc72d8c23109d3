/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NFLOG datagrams: whatever the bytes, every packet reported is consistent. */
#include "sys/net/net.h"
#include "tests/fuzz/fuzz.h"

static void judge(void *userdata, const struct sbx_nflog_packet *p)
{
	uint32_t *next_seq = userdata, before = *next_seq;

	CHECK(p->dst.family == 0 || p->dst.family == 4 || p->dst.family == 6);
	CHECK(p->dst.family == 0 || p->src.family == p->dst.family);
	CHECK((p->proto == SBX_PROTO_TCP) == (p->l4proto == 6));
	CHECK(p->proto != SBX_PROTO_ICMP || (p->sport == 0 && p->dport == 0));
	CHECK(p->dport == 0 || p->dst.family != 0);
	CHECK(sbx_nflog_lost(next_seq, p) == (p->has_seq ? p->seq - before : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t next_seq = 0;

	sbx_nflog_parse(sbx_span(data, size), judge, &next_seq);
	return 0;
}
