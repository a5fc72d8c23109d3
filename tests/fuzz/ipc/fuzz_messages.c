/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Messages between our programs: a packet, which the decoder of its type reads. A refused packet
 * leaves zeros. An accepted one encodes to a packet of the same length that decodes to the same
 * struct (text for people may have been cleaned on the way).
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/messages.h"
#include "tests/fuzz/fuzz.h"

static uint8_t packet[SBX_MSG_MAX];

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
			CHECK(is_zero(&m, sizeof(m)));                                             \
			return;                                                                    \
		}                                                                                  \
		n = sbx_msg_encode_##name(&m, packet, sizeof(packet));                             \
		CHECK(n == (ssize_t)in.n);                                                         \
		CHECK(sbx_msg_decode_##name(sbx_span(packet, in.n), &again) == 0);                 \
		CHECK(memcmp(&m, &again, sizeof(m)) == 0);                                         \
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
		CHECK(is_zero(&m, sizeof(m)));
		return;
	}
	CHECK(m.text.p >= in.p && m.text.p + m.text.n == in.p + in.n);
	CHECK(sbx_msg_encode_exec(&m, packet, sizeof(packet)) == (ssize_t)in.n);
	CHECK(memcmp(packet, in.p, in.n) == 0);
}

static void check_within(struct sbx_span s, struct sbx_span in)
{
	CHECK(s.n == 0 || (s.p >= in.p && s.p + s.n <= in.p + in.n));
}

static void fuzz_tls_flow(struct sbx_span in)
{
	struct sbx_msg_tls_flow m;

	if (sbx_msg_decode_tls_flow(in, &m)) {
		CHECK(is_zero(&m, sizeof(m)));
		return;
	}
	check_within(m.first, in);
	check_within(m.rule, in);
	check_within(m.requests, in);
	CHECK(sbx_msg_encode_tls_flow(&m, packet, sizeof(packet)) == (ssize_t)in.n);
	CHECK(memcmp(packet, in.p, in.n) == 0);
}

static void fuzz_simple(struct sbx_span in)
{
	enum sbx_msg_type type = sbx_msg_type(in);
	uint32_t value;

	if (sbx_msg_decode_simple(in, type, &value)) {
		CHECK(value == 0);
		return;
	}
	CHECK(sbx_msg_encode_simple(type, value, packet, sizeof(packet)) == (ssize_t)in.n);
	CHECK(memcmp(packet, in.p, in.n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const decoders[SBX_N_MSG_TYPES])(struct sbx_span) = {
		[SBX_MSG_CONFIG] = fuzz_config,
		[SBX_MSG_EVENT] = fuzz_event,
		[SBX_MSG_STATS] = fuzz_stats,
		[SBX_MSG_PROBES] = fuzz_probes,
		[SBX_MSG_VERDICTS] = fuzz_verdicts,
		[SBX_MSG_EXEC_FAILED] = fuzz_exec_failed,
		[SBX_MSG_STAGE_FAILED] = fuzz_stage_failed,
		[SBX_MSG_UDP_SOCKET] = fuzz_udp_socket,
		[SBX_MSG_TCP_SOCKET] = fuzz_tcp_socket,
		[SBX_MSG_PINS] = fuzz_pins,
		[SBX_MSG_PROGRAMS] = fuzz_programs,
		[SBX_MSG_TLS_FLOW] = fuzz_tls_flow,
		[SBX_MSG_TLS_DONE] = fuzz_tls_done,
		[SBX_MSG_POLICY_DONE] = fuzz_policy_done,
		[SBX_MSG_FLOW_LIST] = fuzz_flow_list,
		[SBX_MSG_RULESET] = fuzz_ruleset,
		[SBX_MSG_RULESET_DONE] = fuzz_ruleset_done,
		[SBX_MSG_EXEC] = fuzz_exec,
		[SBX_MSG_EXEC_SIGNAL] = fuzz_exec_signal,
		[SBX_MSG_EXEC_EXIT] = fuzz_exec_exit,
	};
	struct sbx_span in = sbx_span(data, size);
	enum sbx_msg_type type = sbx_msg_type(in);

	(decoders[type] ? decoders[type] : fuzz_simple)(in);
	return 0;
}
