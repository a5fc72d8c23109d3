/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ipc/messages.h"

/*
 * One sample of every message with a struct, all fields different, and what the generic tests need
 * to know of its type.
 */
#define KINDS(X)                                                                                   \
	X(config, struct sbx_msg_config, SBX_MSG_CONFIG)                                           \
	X(event, struct sbx_event, SBX_MSG_EVENT)                                                  \
	X(stats, struct sbx_msg_stats, SBX_MSG_STATS)                                              \
	X(probes, struct sbx_msg_probes, SBX_MSG_PROBES)                                           \
	X(programs, struct sbx_msg_programs, SBX_MSG_PROGRAMS)                                     \
	X(verdicts, struct sbx_msg_verdicts, SBX_MSG_VERDICTS)                                     \
	X(exec_failed, struct sbx_msg_exec_failed, SBX_MSG_EXEC_FAILED)                            \
	X(stage_failed, struct sbx_msg_stage_failed, SBX_MSG_STAGE_FAILED)                         \
	X(udp_socket, struct sbx_msg_udp_socket, SBX_MSG_UDP_SOCKET)                               \
	X(tcp_socket, struct sbx_msg_tcp_socket, SBX_MSG_TCP_SOCKET)                               \
	X(pins, struct sbx_msg_pins, SBX_MSG_PINS)                                                 \
	X(tls_done, struct sbx_msg_tls_done, SBX_MSG_TLS_DONE)                                     \
	X(policy_done, struct sbx_msg_policy_done, SBX_MSG_POLICY_DONE)                            \
	X(flow_list, struct sbx_msg_flow_list, SBX_MSG_FLOW_LIST)                                  \
	X(ruleset, struct sbx_msg_ruleset, SBX_MSG_RULESET)                                        \
	X(ruleset_done, struct sbx_msg_ruleset_done, SBX_MSG_RULESET_DONE)                         \
	X(exec_signal, struct sbx_msg_exec_signal, SBX_MSG_EXEC_SIGNAL)                            \
	X(exec_exit, struct sbx_msg_exec_exit, SBX_MSG_EXEC_EXIT)

union any {
#define X(name, type, id) type name;
	KINDS(X)
#undef X
};

static struct sbx_addr addr(const char *s)
{
	struct sbx_addr a;

	assert_int_equal(sbx_addr_parse(s, &a), 0);
	return a;
}

static void sample_config(struct sbx_msg_config *m)
{
	strcpy(m->id, "0123456789ab");
	m->mode = SBX_MODE_FETCH;
	m->resolvers_listed = 1;
	m->fd_mask = 1 << SBX_BFD_POLICY | 1 << SBX_BFD_FACTORY;
	m->limits = sbx_limits_default;
	m->n_resolvers = SBX_RESOLVERS_MAX;
	for (int i = 0; i < SBX_RESOLVERS_MAX; i++) {
		m->resolvers[i].addr = i % 2 ? addr("192.0.2.53") : addr("2001:db8::53");
		m->resolvers[i].port = (uint16_t)(53 + i);
	}
	strcpy(m->proxy_host, "proxy.example");
	m->proxy_port = 3128;
	strcpy(m->selftest_name, "selftest.example");
	m->resolved_pins = 1;
	m->repin_interval_s = 300;
	m->stub_addr = addr("127.53.1.2");
}

static void sample_publishing(struct sbx_msg_config *m)
{
	sample_config(m);
	m->resolved_pins = 0;
	m->stub_addr = (struct sbx_addr){ 0 };
	m->n_publish = 2;
	m->publish[0] = 8888;
	m->publish[1] = 80;
	m->fd_mask |= 3u << SBX_BFD_PUBLISH;
}

static void sample_event(struct sbx_event *m)
{
	m->ts_ms = UINT64_C(1700000000123);
	m->action = SBX_ALLOW;
	m->proto = SBX_PROTO_UDP;
	m->reason = SBX_REASON_LIST_ALLOW;
	m->addr = addr("2001:db8::1");
	m->port = 443;
	memset(m->name, 'n', SBX_HOSTNAME_MAX);
	memset(m->rule, 'r', SBX_RULE_MAX);
	memset(m->request, 'q', SBX_REQUEST_MAX);
	m->count = UINT64_MAX;
}

static void sample_stats(struct sbx_msg_stats *m)
{
	*m = (struct sbx_msg_stats){ 1, 2, 3, 4, UINT64_MAX, 6, 7, 8, 9, 10, 11, 12 };
}

static void sample_probes(struct sbx_msg_probes *m)
{
	m->timeout_ms = 5000;
	m->n_probes = 3;
	for (uint32_t i = 0; i < m->n_probes; i++) {
		struct sbx_probe *p = &m->probes[i];

		p->kind = (uint8_t)(SBX_N_PROBE_KINDS - 1 - i);
		p->proto = SBX_PROTO_UDP;
		p->port = (uint16_t)(80 + i);
		if (i)
			p->addr = addr("198.51.100.1");
		snprintf(p->name, sizeof(p->name), "/path/%u\n", i);
		strcpy(p->expect, "sbx 0123456789ab\n");
	}
}

static void sample_programs(struct sbx_msg_programs *m)
{
	static const char text[] = "/usr/bin/sh\0/usr/bin/cat\0/lib64/ld-linux-x86-64.so.2";

	m->n_programs = 3;
	for (uint32_t i = 0; i < m->n_programs; i++) {
		m->v[i].dev = 0xfe01;
		m->v[i].ino = UINT64_MAX - i;
	}
	m->v[1].path = 12;
	m->v[2].path = 25;
	memcpy(m->text, text, sizeof(text));
}

static void sample_verdicts(struct sbx_msg_verdicts *m)
{
	m->n_verdicts = 3;
	m->v[0].ok = 1;
	m->v[0].elapsed_us = 1234;
	strcpy(m->v[0].detail, "refused: EACCES");
	strcpy(m->v[1].detail, "it was connected");
	m->v[2].elapsed_us = UINT32_MAX;
}

static void sample_exec_failed(struct sbx_msg_exec_failed *m)
{
	m->error = ENOENT;
	m->not_found = 1;
	strcpy(m->why, "cannot change to /work: No such file or directory");
}

static void sample_exec_signal(struct sbx_msg_exec_signal *m)
{
	m->number = 7;
	m->sig = 64;
}

static void sample_exec_exit(struct sbx_msg_exec_exit *m)
{
	m->number = 7;
	m->status = 0xff00;
	m->error = EAGAIN;
}

static void sample_stage_failed(struct sbx_msg_stage_failed *m)
{
	m->error = EPERM;
	strcpy(m->step, "uid_map");
	strcpy(m->detail, "not permitted: see user_namespaces(7)");
}

static void sample_udp_socket(struct sbx_msg_udp_socket *m)
{
	m->local = addr("192.0.2.1");
	m->local_port = 443;
	m->peer = addr("100.64.0.1");
	m->peer_port = 40000;
	m->cookie = 0xfeedface;
}

static void sample_tcp_socket(struct sbx_msg_tcp_socket *m)
{
	m->family = 6;
	m->port = 8888;
	m->cookie = 0xfeedface;
}

static void sample_pins(struct sbx_msg_pins *m)
{
	m->serial = 7;
	m->n_pins = 3;
	for (uint32_t i = 0; i < m->n_pins; i++) {
		m->v[i].addr = i ? addr("2001:db8::7") : addr("203.0.113.7");
		m->v[i].port = (uint16_t)(80 + i);
		m->v[i].proto = i == 2 ? SBX_PROTO_UDP : SBX_PROTO_TCP;
		m->v[i].old = i == 1;
		m->v[i].timeout_ms = i * 1000;
	}
}

static void sample_tls_done(struct sbx_msg_tls_done *m)
{
	m->flow = 9;
	m->bytes_out = UINT64_C(1) << 40;
	m->bytes_in = 3;
}

static void sample_policy_done(struct sbx_msg_policy_done *m)
{
	m->ok = 1;
	m->generation = UINT64_C(1) << 33;
	m->n_cut = 7;
}

static void sample_flow_list(struct sbx_msg_flow_list *m)
{
	m->last = 1;
	m->n_flows = 2;
	for (uint32_t i = 0; i < m->n_flows; i++) {
		struct sbx_msg_flow *f = &m->v[i];

		strcpy(f->name, i ? "example.org" : "");
		f->addr = addr(i ? "2001:db8::1" : "192.0.2.1");
		f->port = (uint16_t)(443 + i);
		f->proto = (uint8_t)(i ? SBX_PROTO_UDP : SBX_PROTO_TCP);
		f->bytes_out = 5 + i;
		f->bytes_in = UINT64_C(1) << (40 + i);
		f->age_ms = 9 + i;
		strcpy(f->rule, i ? "*.example.org" : "192.0.2.0/24");
	}
}

static void sample_ruleset(struct sbx_msg_ruleset *m)
{
	*m = (struct sbx_msg_ruleset){
		.tcp_port4 = 1,
		.tcp_port6 = 2,
		.udp_port4 = 3,
		.udp_port6 = 4,
		.all_destinations = 1,
		.dns = 1,
		.shut = 1,
		.nflog_group = 5,
		.n_nets = 2,
		.v = { { addr("192.0.2.0"), 24, 1, 2, SBX_PROTO_TCP },
		       { addr("2001:db8::"), 32, 3, 3, SBX_PROTO_UDP } },
	};
}

static void sample_ruleset_done(struct sbx_msg_ruleset_done *m)
{
	m->error = 12;
	m->taken = 1;
	strcpy(m->detail, "no room");
}

static const struct kind {
	const char *name;
	enum sbx_msg_type type;
	size_t size;
	void (*sample)(void *m);
	ssize_t (*encode)(const void *m, void *p, size_t n);
	int (*decode)(struct sbx_span packet, void *ret_m);
} kinds[] = {
#define X(name, type, id)                                                                          \
	{ #name,                                                                                   \
	  id,                                                                                      \
	  sizeof(type),                                                                            \
	  (void (*)(void *))sample_##name,                                                         \
	  (ssize_t(*)(const void *, void *, size_t))sbx_msg_encode_##name,                         \
	  (int (*)(struct sbx_span, void *))sbx_msg_decode_##name },
	KINDS(X)
#undef X
};

static uint8_t packet[SBX_MSG_MAX + 1];
static union any in, out;

static size_t encoded(const struct kind *k)
{
	ssize_t n;

	memset(&in, 0, sizeof(in));
	k->sample(&in);
	n = k->encode(&in, packet, sizeof(packet));
	assert_true(n > 4);
	return (size_t)n;
}

static int decode_copy(const struct kind *k, size_t n)
{
	/* On the heap and of exactly this size, so that a sanitizer sees a read past the end. */
	SBX_AUTO_FREE uint8_t *copy = malloc(n ? n : 1);

	memcpy(copy, packet, n);
	memset(&out, 0xa5, sizeof(out));
	return k->decode(sbx_span(copy, n), &out);
}

static int is_zero(const void *p, size_t n)
{
	const uint8_t *b = p;

	while (n && *b == 0)
		b++, n--;
	return n == 0;
}

/* The bytes of the struct that a decoder writes: of a list, the elements that are there. */
static size_t used(const struct kind *k)
{
	if (k->type == SBX_MSG_PROBES)
		return offsetof(struct sbx_msg_probes, probes[in.probes.n_probes]);
	if (k->type == SBX_MSG_PROGRAMS)
		return offsetof(struct sbx_msg_programs, v[in.programs.n_programs]);
	if (k->type == SBX_MSG_VERDICTS)
		return offsetof(struct sbx_msg_verdicts, v[in.verdicts.n_verdicts]);
	if (k->type == SBX_MSG_PINS)
		return offsetof(struct sbx_msg_pins, v[in.pins.n_pins]);
	if (k->type == SBX_MSG_FLOW_LIST)
		return offsetof(struct sbx_msg_flow_list, v[in.flow_list.n_flows]);
	if (k->type == SBX_MSG_RULESET)
		return offsetof(struct sbx_msg_ruleset, v[in.ruleset.n_nets]);
	return k->size;
}

static void test_round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++) {
		const struct kind *k = &kinds[i];
		size_t n = encoded(k);

		assert_int_equal(sbx_msg_type(sbx_span(packet, n)), k->type);
		assert_int_equal(decode_copy(k, n), 0);
		assert_memory_equal(&in, &out, used(k));
	}
}

/* All fields at their longest fit together; one byte more is refused. */
static void test_many_programs(void **state)
{
	struct sbx_msg_programs *m = &in.programs;
	uint32_t at = 0;
	ssize_t n;

	(void)state;
	memset(&in, 0, sizeof(in));
	m->n_programs = SBX_PROGRAMS_MAX;
	memset(m->text, 'x', sizeof(m->text));
	for (uint32_t i = 0; i < SBX_PROGRAMS_MAX; i++) {
		m->v[i].path = at;
		m->text[at] = '/';
		at += i + 1 < SBX_PROGRAMS_MAX ? 39 : SBX_PROGRAMS_TEXT_MAX - at;
		m->text[at - 1] = '\0';
	}
	n = sbx_msg_encode_programs(m, packet, sizeof(packet));
	assert_true(n > 0);
	assert_int_equal(sbx_msg_decode_programs(sbx_span(packet, (size_t)n), &out.programs), 0);
	assert_memory_equal(&in.programs, &out.programs, sizeof(in.programs));
	m->text[at - 1] = 'x';
	assert_int_equal(sbx_msg_encode_programs(m, packet, sizeof(packet)), -EINVAL);
}

static void test_every_prefix_and_tail(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++) {
		const struct kind *k = &kinds[i];
		size_t n = encoded(k);

		for (size_t cut = 0; cut < n; cut++) {
			assert_int_equal(decode_copy(k, cut), -EBADMSG);
			assert_true(is_zero(&out, k->size));
		}
		packet[n] = 0;
		assert_int_equal(decode_copy(k, n + 1), -EBADMSG);
		assert_true(is_zero(&out, k->size));
	}
}

static void test_no_room(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++) {
		const struct kind *k = &kinds[i];
		size_t n = encoded(k);

		for (size_t cap = 0; cap < n; cap++) {
			uint8_t small[4096];

			memset(small, 0xa5, sizeof(small));
			assert_int_equal(k->encode(&in, small, cap), -EMSGSIZE);
			assert_int_equal(small[cap], 0xa5);
		}
	}
}

static void test_header(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++) {
		const struct kind *k = &kinds[i];
		size_t n = encoded(k);

		for (size_t at = 0; at < 4; at++) {
			uint8_t saved = packet[at];

			for (int v = 0; v < 256; v++) {
				packet[at] = (uint8_t)v;
				assert_int_equal(decode_copy(k, n), v == saved ? 0 : -EBADMSG);
			}
			packet[at] = saved;
		}
	}
	assert_int_equal(sbx_msg_type(sbx_span("\1\0\0\0", 4)), SBX_MSG_NONE);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x11\0\0", 4)), SBX_MSG_UDP_SOCKET_FAILED);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x12\0\0", 4)), SBX_MSG_STAGE_CONFIG);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x13\0\0", 4)), SBX_MSG_STAGE_UPPER);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x16\0\0", 4)), SBX_MSG_PINS_FAILED);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x17\0\0", 4)), SBX_MSG_PROGRAMS);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x1a\0\0", 4)), SBX_MSG_TCP_SOCKET_FAILED);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x1b\0\0", 4)), SBX_MSG_SIGNAL_ALL);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x1d\0\0", 4)), SBX_MSG_MOUNTS_CHECKED);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x20\0\0", 4)), SBX_MSG_TLS_FLOW);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x23\0\0", 4)), SBX_MSG_SECRET);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x24\0\0", 4)), SBX_MSG_STAGE_FILLS);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x25\0\0", 4)), SBX_MSG_POLICY);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x29\0\0", 4)), SBX_MSG_TLS_CUT);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x2b\0\0", 4)), SBX_MSG_RULESET_DONE);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x2e\0\0", 4)), SBX_MSG_EXEC_EXIT);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x2f\0\0", 4)), SBX_MSG_EXEC_LISTENER);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x31\0\0", 4)), SBX_MSG_WALL_TIME);
	assert_int_equal(sbx_msg_type(sbx_span("\1\x32\0\0", 4)), SBX_MSG_NONE);
	assert_int_equal(sbx_msg_type(sbx_span("\1\1\0", 3)), SBX_MSG_NONE);
	assert_int_equal(sbx_msg_type(sbx_span(NULL, 0)), SBX_MSG_NONE);
	memcpy(packet, "\1\1\0\0", 4);
	assert_int_equal(sbx_msg_type(sbx_span(packet, SBX_MSG_MAX)), SBX_MSG_CONFIG);
	assert_int_equal(sbx_msg_type(sbx_span(packet, SBX_MSG_MAX + 1)), SBX_MSG_NONE);
}

/* Any one byte changed: refused, or decoded to something that encodes to those same bytes, but for
 * text that was cleaned, which is then stable. */
static void test_every_byte_changed(void **state)
{
	static uint8_t again[SBX_MSG_MAX];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++) {
		const struct kind *k = &kinds[i];
		size_t n = encoded(k);

		for (size_t at = 0; at < n; at++) {
			uint8_t saved = packet[at];

			for (int v = 0; v < 256; v += 5) {
				ssize_t m;

				packet[at] = (uint8_t)v;
				if (decode_copy(k, n) != 0) {
					assert_true(is_zero(&out, k->size));
					continue;
				}
				m = k->encode(&out, again, sizeof(again));
				assert_int_equal(m, n);
				for (size_t j = 0; j < n; j++)
					assert_true(again[j] == packet[j] || again[j] == '?');
			}
			packet[at] = saved;
		}
	}
}

/* The encoder refuses the same values as the decoder. */
/* Ports and listeners come in pairs, in their order, and not with real pins. */
static void test_publishing(void **state)
{
	static const struct {
		uint32_t n, slots;
		bool port_zero, resolved_pins, fine;
	} cases[] = {
		{ 0, 0, false, false, true },	{ 1, 1, false, false, true },
		{ 2, 3, false, false, true },	{ 2, 3, true, false, false },
		{ 2, 1, false, false, false },	{ 1, 3, false, false, false },
		{ 2, 5, false, false, false },	{ 0, 1, false, false, false },
		{ 1, 2, false, false, false },	{ 1, 1, false, true, false },
		{ SBX_PUBLISH_MAX, (1u << SBX_PUBLISH_MAX) - 1, false, false, true },
		{ SBX_PUBLISH_MAX + 1, (1u << SBX_PUBLISH_MAX) - 1, false, false, false },
		{ UINT32_MAX, 0, false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_msg_config m = { 0 }, again;
		ssize_t n;

		sample_publishing(&m);
		for (size_t k = 0; k < SBX_PUBLISH_MAX; k++)
			m.publish[k] = k < cases[i].n ? (uint16_t)(8000 + k) : 0;
		if (cases[i].port_zero)
			m.publish[1] = 0;
		m.n_publish = cases[i].n;
		m.fd_mask = 1 << SBX_BFD_POLICY | cases[i].slots << SBX_BFD_PUBLISH;
		if (cases[i].resolved_pins) {
			m.resolved_pins = 1;
			m.stub_addr = addr("127.53.1.2");
		}
		n = sbx_msg_encode_config(&m, packet, sizeof(packet));
		if (!cases[i].fine) {
			assert_int_equal(n, -EINVAL);
			continue;
		}
		assert_true(n > 0);
		assert_int_equal(sbx_msg_decode_config(sbx_span(packet, (size_t)n), &again), 0);
		assert_memory_equal(&m, &again, sizeof(m));
	}
}

#define refuses(name, change)                                                                      \
	do {                                                                                       \
		memset(&in, 0, sizeof(in));                                                        \
		sample_##name(&in.name);                                                           \
		assert_true(sbx_msg_encode_##name(&in.name, packet, sizeof(packet)) > 0);          \
		change;                                                                            \
		assert_int_equal(sbx_msg_encode_##name(&in.name, packet, sizeof(packet)),          \
				 -EINVAL);                                                         \
	} while (0)

static void test_encode_refuses(void **state)
{
	(void)state;
	refuses(config, in.config.mode = SBX_N_MODES);
	refuses(config, in.config.resolvers_listed = 2);
	refuses(config, in.config.dns_real = 2);
	refuses(policy_done, in.policy_done.ok = 2);
	refuses(policy_done, in.policy_done.ok = 0); /* and flows were cut */
	refuses(flow_list, in.flow_list.n_flows = SBX_MSG_FLOWS_MAX + 1);
	refuses(flow_list, in.flow_list.v[1].proto = SBX_PROTO_DNS);
	refuses(flow_list, in.flow_list.last = 2);
	refuses(ruleset, in.ruleset.n_nets = SBX_MSG_NETS_MAX + 1);
	refuses(ruleset, in.ruleset.v[0].prefix = 33);
	refuses(ruleset, in.ruleset.v[1].prefix = 129);
	refuses(ruleset, in.ruleset.v[1].addr.family = 0);
	refuses(ruleset, in.ruleset.v[0].proto = SBX_PROTO_DNS);
	refuses(ruleset, in.ruleset.v[0].port_first = 3);
	refuses(ruleset_done, in.ruleset_done.taken = 2);
	refuses(config, in.config.fd_mask = 1u << SBX_N_BROKER_FDS);
	refuses(config, in.config.n_resolvers = SBX_RESOLVERS_MAX + 1);
	refuses(config, in.config.resolvers[1].addr.family = 0);
	refuses(config, in.config.resolvers[1].addr.family = 5);
	refuses(config, in.config.id[11] = '\0');
	refuses(config, in.config.id[3] = 'A');
	refuses(config, in.config.id[3] = '/');
	refuses(config, in.config.id[12] = '0');
	refuses(config, memset(in.config.proxy_host, 'x', sizeof(in.config.proxy_host)));
	refuses(config, in.config.n_publish = 1);
	refuses(event, in.event.action = SBX_N_ACTIONS);
	refuses(event, in.event.proto = SBX_N_PROTOS);
	refuses(event, in.event.reason = SBX_N_REASONS);
	refuses(event, in.event.count = 0);
	refuses(event, in.event.name[SBX_HOSTNAME_MAX] = 'x');
	refuses(event, in.event.rule[SBX_RULE_MAX] = 'x');
	refuses(event, in.event.request[SBX_REQUEST_MAX] = 'x');
	refuses(probes, in.probes.n_probes = SBX_PROBES_MAX + 1);
	refuses(probes, in.probes.probes[2].kind = SBX_N_PROBE_KINDS);
	refuses(probes, in.probes.probes[2].proto = SBX_N_PROTOS);
	refuses(verdicts, in.verdicts.n_verdicts = SBX_PROBES_MAX + 1);
	refuses(verdicts, in.verdicts.v[2].ok = 2);
	refuses(verdicts, memset(in.verdicts.v[2].detail, 'x', sizeof(in.verdicts.v[2].detail)));
	refuses(exec_failed, in.exec_failed.not_found = 2);
	refuses(exec_failed, in.exec_failed.error = UINT32_MAX);
	refuses(exec_failed, memset(in.exec_failed.why, 'x', sizeof(in.exec_failed.why)));
	refuses(exec_signal, in.exec_signal.number = 0);
	refuses(exec_signal, in.exec_signal.sig = 0);
	refuses(exec_signal, in.exec_signal.sig = 65);
	refuses(exec_exit, in.exec_exit.number = 0);
	refuses(exec_exit, in.exec_exit.status = 0x10000);
	refuses(exec_exit, in.exec_exit.error = UINT32_MAX);
	refuses(udp_socket, in.udp_socket.peer = addr("2001:db8::1"));
	refuses(udp_socket, in.udp_socket.local.family = 0);
	refuses(tcp_socket, in.tcp_socket.family = 0);
	refuses(tcp_socket, in.tcp_socket.family = 5);
	refuses(tcp_socket, in.tcp_socket.family = 10);
	refuses(tcp_socket, in.tcp_socket.port = 0);
	refuses(config, in.config.resolved_pins = 2);
	refuses(config, in.config.resolved_pins = 0); /* and yet an address of the stub */
	refuses(config, in.config.stub_addr.family = 0);
	refuses(programs, in.programs.n_programs = SBX_PROGRAMS_MAX + 1);
	refuses(programs, in.programs.n_programs = 0);
	refuses(programs, in.programs.v[1].path = 11);
	refuses(programs, in.programs.text[12] = 'u'); /* not absolute */
	refuses(programs, in.programs.text[12] = '\0');
	refuses(pins, in.pins.n_pins = SBX_MSG_PINS_MAX + 1);
	refuses(pins, in.pins.n_pins = 0);
	refuses(pins, in.pins.v[1].addr.family = 0);
	refuses(pins, in.pins.v[1].port = 0);
	refuses(pins, in.pins.v[1].proto = SBX_PROTO_DNS);
	refuses(pins, in.pins.v[1].old = 2);
}

/* The decoder refuses the same values from a hostile sender: one past each bound, set in the
 * bytes. */
static void decode_refuses_at(const char *name, size_t at, uint8_t bad)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++) {
		size_t n;

		if (strcmp(kinds[i].name, name) != 0)
			continue;
		n = encoded(&kinds[i]);
		packet[at] = bad;
		assert_int_equal(decode_copy(&kinds[i], n), -EBADMSG);
	}
}

static void test_decode_refuses(void **state)
{
	(void)state;
	decode_refuses_at("config", 4 + 2 + 3, 'G');
	decode_refuses_at("config", 4 + 2 + 3, '\0');
	decode_refuses_at("config", 4 + 14, SBX_N_MODES);
	decode_refuses_at("config", 4 + 15, 2);
	decode_refuses_at("config", 4 + 16, 2);
	decode_refuses_at("config", 4 + 17 + 2, 0xff);
	decode_refuses_at("config", 4 + 21 + 60 + 3, SBX_RESOLVERS_MAX + 1);
	decode_refuses_at("event", 4 + 8, SBX_N_ACTIONS);
	decode_refuses_at("event", 4 + 9, SBX_N_PROTOS);
	decode_refuses_at("event", 4 + 10, SBX_N_REASONS);
	decode_refuses_at("event", 4 + 11, 5);
	decode_refuses_at("probes", 4 + 4 + 3, SBX_PROBES_MAX + 1);
	decode_refuses_at("verdicts", 4 + 3, SBX_PROBES_MAX + 1);
	decode_refuses_at("verdicts", 4 + 3, 2); /* one fewer than there are */
	decode_refuses_at("verdicts", 4 + 4, 2);
}

/* Names and details from the broker and from init cannot drive a terminal. */
static void test_text_is_cleaned(void **state)
{
	ssize_t n;

	(void)state;
	memset(&in, 0, sizeof(in));
	sample_event(&in.event);
	strcpy(in.event.name, "a\x1b[2Jb\xff\xc3\xa9\n");
	strcpy(in.event.rule, "\xe2\x80\xae");
	strcpy(in.event.request, "GET /\x1b");
	n = sbx_msg_encode_event(&in.event, packet, sizeof(packet));
	assert_true(n > 0);
	assert_int_equal(sbx_msg_decode_event(sbx_span(packet, (size_t)n), &out.event), 0);
	assert_string_equal(out.event.name, "a?[2Jb?\xc3\xa9?");
	assert_string_equal(out.event.rule, "???");
	assert_string_equal(out.event.request, "GET /?");

	memset(&in, 0, sizeof(in));
	sample_stage_failed(&in.stage_failed);
	strcpy(in.stage_failed.detail, "one\ntwo");
	n = sbx_msg_encode_stage_failed(&in.stage_failed, packet, sizeof(packet));
	assert_int_equal(
		sbx_msg_decode_stage_failed(sbx_span(packet, (size_t)n), &out.stage_failed), 0);
	assert_string_equal(out.stage_failed.detail, "one?two");
}

/* The decoder does not write past a list's count. */
static void test_lists_are_read_to_their_count(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++) {
		const uint8_t *bytes = (const uint8_t *)&out;

		assert_int_equal(decode_copy(&kinds[i], encoded(&kinds[i])), 0);
		for (size_t at = used(&kinds[i]); at < kinds[i].size; at++)
			assert_int_equal(bytes[at], 0xa5);
	}
}

/* Probes that are all at their longest do not fit a packet: encoding fails, and cuts nothing. */
static void test_probes_too_long(void **state)
{
	(void)state;
	memset(&in, 0, sizeof(in));
	in.probes.n_probes = SBX_PROBES_MAX;
	for (int i = 0; i < SBX_PROBES_MAX; i++)
		memset(in.probes.probes[i].name, 'x', SBX_PROBE_NAME_MAX - 1);
	assert_int_equal(sbx_msg_encode_probes(&in.probes, packet, sizeof(packet)), -EMSGSIZE);
	for (int i = 0; i < SBX_PROBES_MAX; i++)
		in.probes.probes[i].name[900] = '\0';
	assert_true(sbx_msg_encode_probes(&in.probes, packet, sizeof(packet)) > 0);
}

/* --- simple messages --- */

/* Its first bytes are borrowed from the packet, so it is no kind of the table. */
static struct sbx_msg_exec sample_exec(void)
{
	static const char words[] = "/work\0sh\0-c\0\0A=b\0C=";

	return (struct sbx_msg_exec){ .number = 7, .tty = 1, .n_argv = 3, .n_env = 2,
				      .text = sbx_span(words, sizeof(words)) };
}

static void test_exec(void **state)
{
	struct sbx_msg_exec m = sample_exec(), got;
	ssize_t n = sbx_msg_encode_exec(&m, packet, SBX_MSG_MAX);

	(void)state;
	assert_true(n > 0);
	assert_int_equal(sbx_msg_type(sbx_span(packet, (size_t)n)), SBX_MSG_EXEC);
	assert_int_equal(sbx_msg_decode_exec(sbx_span(packet, (size_t)n), &got), 0);
	assert_int_equal(got.number, 7);
	assert_int_equal(got.tty, 1);
	assert_int_equal(got.n_argv, 3);
	assert_int_equal(got.n_env, 2);
	assert_int_equal(got.text.n, m.text.n);
	assert_memory_equal(got.text.p, m.text.p, m.text.n);
	for (size_t cut = 0; cut < (size_t)n; cut++) {
		SBX_AUTO_FREE uint8_t *copy = malloc(cut + 1);

		memcpy(copy, packet, cut);
		assert_int_equal(sbx_msg_decode_exec(sbx_span(copy, cut), &got), -EBADMSG);
		assert_true(is_zero(&got, sizeof(got)));
	}
	packet[n] = 0;
	assert_int_equal(sbx_msg_decode_exec(sbx_span(packet, (size_t)n + 1), &got), -EBADMSG);
}

static void test_exec_refused(void **state)
{
	static const struct {
		const char *words;
		size_t n_words;
		uint32_t n_argv, n_env;
	} bad[] = {
		{ "", 0, 1, 0 },
		{ "/\0sh", 5, 2, 0 },      /* a word too few */
		{ "/\0sh\0x", 7, 1, 0 },   /* a word too many */
		{ "/\0sh", 4, 1, 0 },      /* no NUL at the end */
		{ "work\0sh", 8, 1, 0 },   /* no absolute directory */
		{ "\0sh", 4, 1, 0 },
		{ "/\0", 3, 1, 0 },	   /* no command */
		{ "/\0sh\0=b", 8, 1, 1 },  /* no variable */
		{ "/\0sh\0b", 7, 1, 1 },
		{ "/\0sh", 5, 0, 1 },
		{ "/\0sh", 5, 1, UINT32_MAX },
	};
	static char long_words[SBX_EXEC_TEXT_MAX + 1];
	struct sbx_msg_exec m = { .number = 1, .n_argv = 1 };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++) {
		m.n_argv = bad[i].n_argv;
		m.n_env = bad[i].n_env;
		m.text = sbx_span(bad[i].words, bad[i].n_words);
		assert_int_equal(sbx_msg_encode_exec(&m, packet, SBX_MSG_MAX), -EINVAL);
	}
	memset(long_words, 'x', sizeof(long_words) - 1);
	long_words[0] = '/';
	long_words[1] = '\0';
	long_words[SBX_EXEC_TEXT_MAX - 1] = '\0';
	m = (struct sbx_msg_exec){ .number = 1, .n_argv = 1 };
	m.text = sbx_span(long_words, SBX_EXEC_TEXT_MAX);
	assert_true(sbx_msg_encode_exec(&m, packet, SBX_MSG_MAX) > 0);
	long_words[SBX_EXEC_TEXT_MAX - 1] = 'x';
	m.text.n++;
	assert_int_equal(sbx_msg_encode_exec(&m, packet, SBX_MSG_MAX), -EINVAL);
	m = sample_exec();
	m.number = 0;
	assert_int_equal(sbx_msg_encode_exec(&m, packet, SBX_MSG_MAX), -EINVAL);
	m = sample_exec();
	m.tty = 2;
	assert_int_equal(sbx_msg_encode_exec(&m, packet, SBX_MSG_MAX), -EINVAL);
}

static void test_tls_flow(void **state)
{
	static uint8_t first[SBX_TLS_FIRST_MAX + 1];
	struct sbx_msg_tls_flow m = { .flow = 1, .entry = 2, .tls = 1, .port = 443 }, got;
	ssize_t n;

	(void)state;
	m.addr = addr("198.18.0.1");
	strcpy(m.name, "api.example.org");
	memset(first, 'a', sizeof(first));
	m.first = sbx_span(first, SBX_TLS_FIRST_MAX);
	n = sbx_msg_encode_tls_flow(&m, packet, SBX_MSG_MAX);
	assert_true(n > SBX_TLS_FIRST_MAX);
	assert_int_equal(sbx_msg_decode_tls_flow(sbx_span(packet, (size_t)n), &got), 0);
	assert_int_equal(got.flow, 1);
	assert_int_equal(got.entry, 2);
	assert_int_equal(got.tls, 1);
	assert_string_equal(got.name, m.name);
	assert_int_equal(got.first.n, SBX_TLS_FIRST_MAX);
	assert_memory_equal(got.first.p, first, SBX_TLS_FIRST_MAX);
	for (size_t cut = 0; cut < (size_t)n; cut += cut < 64 ? 1 : 997)
		assert_int_equal(sbx_msg_decode_tls_flow(sbx_span(packet, cut), &got), -EBADMSG);
	m.first.n++;
	assert_int_equal(sbx_msg_encode_tls_flow(&m, packet, SBX_MSG_MAX), -EINVAL);
	m.first.n = 0;
	assert_true(sbx_msg_encode_tls_flow(&m, packet, SBX_MSG_MAX) > 0);
	/* a live rule comes with its text, and nothing else does */
	m.entry = SBX_TLS_LIVE;
	assert_int_equal(sbx_msg_encode_tls_flow(&m, packet, SBX_MSG_MAX), -EINVAL);
	m.rule = sbx_span_str("live api.example.org");
	m.requests = sbx_span_str("GET,HEAD /v1");
	m.first = sbx_span(first, SBX_TLS_FIRST_MAX);
	n = sbx_msg_encode_tls_flow(&m, packet, SBX_MSG_MAX);
	assert_true(n > 0);
	assert_int_equal(sbx_msg_decode_tls_flow(sbx_span(packet, (size_t)n), &got), 0);
	assert_int_equal(got.entry, SBX_TLS_LIVE);
	assert_int_equal(got.rule.n, m.rule.n);
	assert_memory_equal(got.requests.p, m.requests.p, m.requests.n);
	for (size_t cut = SBX_TLS_FIRST_MAX; cut < (size_t)n; cut++)
		assert_int_equal(sbx_msg_decode_tls_flow(sbx_span(packet, cut), &got), -EBADMSG);
	m.entry = 2;
	assert_int_equal(sbx_msg_encode_tls_flow(&m, packet, SBX_MSG_MAX), -EINVAL);
	m.entry = SBX_TLS_LIVE;
	m.first.n = 0;
	m.requests = sbx_span(first, SBX_TLS_REQUESTS_MAX + 1);
	assert_int_equal(sbx_msg_encode_tls_flow(&m, packet, SBX_MSG_MAX), -EINVAL);
	m.requests.n--;
	m.rule = sbx_span(first, SBX_TLS_RULE_MAX + 1);
	assert_int_equal(sbx_msg_encode_tls_flow(&m, packet, SBX_MSG_MAX), -EINVAL);
	m.rule = m.requests = sbx_span(NULL, 0);
	m.entry = 2;
	m.port = 0;
	assert_int_equal(sbx_msg_encode_tls_flow(&m, packet, SBX_MSG_MAX), -EINVAL);
	m.port = 443;
	m.name[0] = 0;
	assert_int_equal(sbx_msg_encode_tls_flow(&m, packet, SBX_MSG_MAX), -EINVAL);
}

static void test_simple(void **state)
{
	static const struct {
		enum sbx_msg_type type;
		int number;
	} simple[] = {
		{ SBX_MSG_STOP, 0 },
		{ SBX_MSG_READY, 0 },
		{ SBX_MSG_STAGE_READY, 1 },
		{ SBX_MSG_INIT_HELLO, 0 },
		{ SBX_MSG_RELEASE, 0 },
		{ SBX_MSG_SIGNAL, 1 },
		{ SBX_MSG_SIGNAL_ALL, 1 },
		{ SBX_MSG_COMMAND_EXIT, 1 },
		{ SBX_MSG_UDP_SOCKET_MADE, 1 },
		{ SBX_MSG_UDP_SOCKET_FAILED, 1 },
		{ SBX_MSG_PINNED, 1 },
		{ SBX_MSG_PINS_FAILED, 1 },
		{ SBX_MSG_STAGE_CONFIG, 0 },
		{ SBX_MSG_CHECK_MOUNTS, 0 },
		{ SBX_MSG_EXEC_LISTENER, 0 },
		{ SBX_MSG_MOUNTS_CHECKED, 1 },
	};
	uint32_t v;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(simple); i++) {
		uint32_t value = simple[i].number ? 0xdeadbeef : 0;
		size_t want = simple[i].number ? 8 : 4;
		ssize_t n = sbx_msg_encode_simple(simple[i].type, value, packet, sizeof(packet));

		assert_int_equal(n, want);
		assert_int_equal(sbx_msg_decode_simple(sbx_span(packet, want), simple[i].type, &v),
				 0);
		assert_int_equal(v, value);
		assert_int_equal(
			sbx_msg_decode_simple(sbx_span(packet, want), simple[i].type, NULL), 0);
		for (size_t cut = 0; cut < want; cut++)
			assert_int_equal(
				sbx_msg_decode_simple(sbx_span(packet, cut), simple[i].type, &v),
				-EBADMSG);
		packet[want] = 0;
		assert_int_equal(
			sbx_msg_decode_simple(sbx_span(packet, want + 1), simple[i].type, &v),
			-EBADMSG);
		assert_int_equal(v, 0);
		/* Another simple type is not this one. */
		assert_int_equal(
			sbx_msg_decode_simple(sbx_span(packet, want),
					      simple[(i + 1) % SBX_N_ELEMENTS(simple)].type, &v),
			-EBADMSG);
	}
	assert_int_equal(sbx_msg_encode_simple(SBX_MSG_STOP, 1, packet, sizeof(packet)), -EINVAL);
	assert_int_equal(sbx_msg_encode_simple(SBX_MSG_EVENT, 0, packet, sizeof(packet)), -EINVAL);
	assert_int_equal(sbx_msg_encode_simple(SBX_MSG_STOP, 0, packet, 3), -EMSGSIZE);
	memcpy(packet, "\1\4\0\0", 4);
	assert_int_equal(sbx_msg_decode_simple(sbx_span(packet, 4), SBX_MSG_EVENT, &v), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_many_programs),
		cmocka_unit_test(test_every_prefix_and_tail),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_every_byte_changed),
		cmocka_unit_test(test_publishing),
		cmocka_unit_test(test_encode_refuses),
		cmocka_unit_test(test_decode_refuses),
		cmocka_unit_test(test_text_is_cleaned),
		cmocka_unit_test(test_lists_are_read_to_their_count),
		cmocka_unit_test(test_probes_too_long),
		cmocka_unit_test(test_tls_flow),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_exec_refused),
		cmocka_unit_test(test_simple),
	};

	return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
