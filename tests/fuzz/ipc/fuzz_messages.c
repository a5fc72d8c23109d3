/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Messages between our programs. The first byte chooses the decoder, the rest is the packet. A
 * refused packet leaves zeros. An accepted one encodes to a packet of the same length that decodes
 * to the same struct (text for people may have been cleaned on the way).
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/messages.h"
#include "tests/fuzz/fuzz.h"

static uint8_t packet[SBX_MSG_MAX];

static void check(int fine)
{
	if (!fine)
		abort();
}

static int is_zero(const void *p, size_t n)
{
	const uint8_t *b = p;

	while (n && *b == 0)
		b++, n--;
	return n == 0;
}

#define DEFINE_FUZZ(name, type)                                                                    \
	static void fuzz_##name(struct sbx_span in)                                                \
	{                                                                                          \
		static type m, again;                                                              \
		ssize_t n;                                                                         \
                                                                                                   \
		memset(&m, 0, sizeof(m)); /* what is past a list's count is not written */         \
		memset(&again, 0, sizeof(again));                                                  \
		if (sbx_msg_decode_##name(in, &m)) {                                               \
			check(is_zero(&m, sizeof(m)));                                             \
			return;                                                                    \
		}                                                                                  \
		n = sbx_msg_encode_##name(&m, packet, sizeof(packet));                             \
		check(n == (ssize_t)in.n);                                                         \
		check(sbx_msg_decode_##name(sbx_span(packet, in.n), &again) == 0);                 \
		check(memcmp(&m, &again, sizeof(m)) == 0);                                         \
	}

DEFINE_FUZZ(config, struct sbx_msg_config)
DEFINE_FUZZ(event, struct sbx_event)
DEFINE_FUZZ(stats, struct sbx_msg_stats)
DEFINE_FUZZ(probes, struct sbx_msg_probes)
DEFINE_FUZZ(verdicts, struct sbx_msg_verdicts)
DEFINE_FUZZ(exec_failed, struct sbx_msg_exec_failed)
DEFINE_FUZZ(stage_failed, struct sbx_msg_stage_failed)
DEFINE_FUZZ(udp_socket, struct sbx_msg_udp_socket)
DEFINE_FUZZ(tcp_socket, struct sbx_msg_tcp_socket)
DEFINE_FUZZ(pins, struct sbx_msg_pins)
DEFINE_FUZZ(programs, struct sbx_msg_programs)
DEFINE_FUZZ(tls_done, struct sbx_msg_tls_done)
DEFINE_FUZZ(policy_done, struct sbx_msg_policy_done)
DEFINE_FUZZ(flow_list, struct sbx_msg_flow_list)
DEFINE_FUZZ(ruleset, struct sbx_msg_ruleset)
DEFINE_FUZZ(ruleset_done, struct sbx_msg_ruleset_done)
DEFINE_FUZZ(exec_signal, struct sbx_msg_exec_signal)
DEFINE_FUZZ(exec_exit, struct sbx_msg_exec_exit)

static void fuzz_exec(struct sbx_span in)
{
	struct sbx_msg_exec m;

	if (sbx_msg_decode_exec(in, &m)) {
		check(is_zero(&m, sizeof(m)));
		return;
	}
	check(m.text.p >= in.p && m.text.p + m.text.n == in.p + in.n);
	check(sbx_msg_encode_exec(&m, packet, sizeof(packet)) == (ssize_t)in.n);
	check(memcmp(packet, in.p, in.n) == 0);
}

static void fuzz_tls_flow(struct sbx_span in)
{
	struct sbx_msg_tls_flow m;

	if (sbx_msg_decode_tls_flow(in, &m)) {
		check(is_zero(&m, sizeof(m)));
		return;
	}
	check(m.first.p >= in.p && m.first.p + m.first.n == in.p + in.n);
	check(sbx_msg_encode_tls_flow(&m, packet, sizeof(packet)) == (ssize_t)in.n);
	check(memcmp(packet, in.p, in.n) == 0);
}

static void fuzz_simple(struct sbx_span in)
{
	enum sbx_msg_type type = sbx_msg_type(in);
	uint32_t value;

	if (sbx_msg_decode_simple(in, type, &value)) {
		check(value == 0);
		return;
	}
	check(sbx_msg_encode_simple(type, value, packet, sizeof(packet)) == (ssize_t)in.n);
	check(memcmp(packet, in.p, in.n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const decoders[])(struct sbx_span) = {
		fuzz_config,	  fuzz_event,	     fuzz_stats,      fuzz_probes, fuzz_verdicts,
		fuzz_exec_failed, fuzz_stage_failed, fuzz_udp_socket, fuzz_simple,
		fuzz_pins,	  fuzz_programs,     fuzz_tcp_socket, fuzz_tls_done,
		fuzz_tls_flow,	  fuzz_policy_done,  fuzz_flow_list,  fuzz_ruleset,
		fuzz_ruleset_done, fuzz_exec,	     fuzz_exec_signal, fuzz_exec_exit,
	};

	if (size == 0)
		return 0;
	decoders[data[0] % (sizeof(decoders) / sizeof(decoders[0]))](sbx_span(data + 1, size - 1));
	return 0;
}
