/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Messages to and from bytes.
 *
 * Each message is described once, by a function that visits its fields in order. The visitor either
 * writes or reads them, so the two directions cannot differ, and both have the same bounds: the
 * encoder refuses to send a value that a decoder would refuse. After its first failure a codec does
 * nothing more; the public functions report the cause at the end (no room, or a value out of
 * bounds).
 *
 * Every length on the wire is checked against the buffer in the struct, and every count against its
 * array, before the data is read. The only memory is the caller's struct.
 */

#include "ipc/messages.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"

#define HEADER_SIZE 4

struct codec {
	bool writing;
	bool bad; /* a value out of bounds */
	struct sbx_reader r;
	struct sbx_writer w;
};

static bool codec_failed(const struct codec *c)
{
	return c->bad || (c->writing ? c->w.failed : c->r.failed);
}

/* --- field visitors --- */

static void f_u8(struct codec *c, uint8_t *v, uint8_t max)
{
	if (c->writing)
		sbx_write_u8(&c->w, *v);
	else
		*v = sbx_read_u8(&c->r);
	if (*v > max)
		c->bad = true;
}

static void f_u16(struct codec *c, uint16_t *v)
{
	if (c->writing)
		sbx_write_u16(&c->w, *v);
	else
		*v = sbx_read_u16(&c->r);
}

static void f_u32(struct codec *c, uint32_t *v, uint32_t max)
{
	if (c->writing)
		sbx_write_u32(&c->w, *v);
	else
		*v = sbx_read_u32(&c->r);
	if (*v > max)
		c->bad = true;
}

static void f_u64(struct codec *c, uint64_t *v)
{
	if (c->writing)
		sbx_write_u64(&c->w, *v);
	else
		*v = sbx_read_u64(&c->r);
}

/* A string of at most size-1 bytes without a NUL, taken as it is. */
static void f_str(struct codec *c, char *s, size_t size)
{
	if (!c->writing)
		sbx_read_str(&c->r, s, size);
	else if (strnlen(s, size) == size)
		c->bad = true;
	else
		sbx_write_str(&c->w, s);
}

/* A string for people: see the header. */
static void f_text(struct codec *c, char *s, size_t size)
{
	f_str(c, s, size);
	if (c->writing || codec_failed(c))
		return;
	for (size_t n = strlen(s), i = 0; i < n;) {
		size_t unit = sbx_text_unit(s + i, n - i);

		if (unit == 0)
			s[i] = '?';
		i += unit ? unit : 1;
	}
}

static void f_addr(struct codec *c, struct sbx_addr *a)
{
	struct sbx_span s;
	size_t n;

	f_u8(c, &a->family, 6);
	n = a->family == 4 ? 4 : a->family == 6 ? 16 : 0;
	if (n == 0 && a->family != 0)
		c->bad = true;
	if (codec_failed(c))
		return;
	if (c->writing) {
		sbx_write_bytes(&c->w, a->b, n);
		return;
	}
	s = sbx_read_bytes(&c->r, n);
	if (s.n)
		memcpy(a->b, s.p, n);
}

static void f_id(struct codec *c, char id[SBX_ID_LEN + 1])
{
	f_str(c, id, SBX_ID_LEN + 1);
	if (!codec_failed(c) && !sbx_id_is_valid(id))
		c->bad = true;
}

/* Clear an element of a list just before it is read. The whole list has many pages, of which few
 * are used; init, which reads PROBES, is a fresh process and would fault in each. */
static void clear_element(const struct codec *c, void *p, size_t n)
{
	if (!c->writing)
		memset(p, 0, n);
}

/* --- one description per message --- */

static void limits_fields(struct codec *c, struct sbx_limits *l)
{
	f_u32(c, &l->n_flows, UINT32_MAX);
	f_u32(c, &l->n_published, UINT32_MAX);
	f_u32(c, &l->n_udp_flows, UINT32_MAX);
	f_u32(c, &l->n_pins, UINT32_MAX);
	f_u32(c, &l->n_dns_tcp, UINT32_MAX);
	f_u32(c, &l->n_event_keys, UINT32_MAX);
	f_u32(c, &l->client_hello_bytes, UINT32_MAX);
	f_u32(c, &l->http_head_bytes, UINT32_MAX);
	f_u32(c, &l->handshake_timeout_ms, UINT32_MAX);
	f_u32(c, &l->connect_timeout_ms, UINT32_MAX);
	f_u32(c, &l->idle_timeout_ms, UINT32_MAX);
	f_u32(c, &l->udp_idle_timeout_ms, UINT32_MAX);
	f_u32(c, &l->dns_tcp_timeout_ms, UINT32_MAX);
	f_u32(c, &l->n_addresses, UINT32_MAX);
	f_u32(c, &l->n_leaves, UINT32_MAX);
}
_Static_assert(sizeof(struct sbx_limits) == 15 * sizeof(uint32_t),
	       "limits_fields visits every limit");

static void config_fields(struct codec *c, struct sbx_msg_config *m)
{
	f_id(c, m->id);
	f_u8(c, &m->mode, SBX_N_MODES - 1);
	f_u8(c, &m->resolvers_listed, 1);
	f_u8(c, &m->dns_real, 1);
	f_u32(c, &m->fd_mask, (UINT32_C(1) << SBX_N_BROKER_FDS) - 1);
	limits_fields(c, &m->limits);
	f_u32(c, &m->n_resolvers, SBX_RESOLVERS_MAX);
	for (uint32_t i = 0; i < m->n_resolvers && !codec_failed(c); i++) {
		f_addr(c, &m->resolvers[i].addr);
		f_u16(c, &m->resolvers[i].port);
		if (m->resolvers[i].addr.family == 0)
			c->bad = true;
	}
	f_str(c, m->proxy_host, sizeof(m->proxy_host));
	f_u16(c, &m->proxy_port);
	f_str(c, m->selftest_name, sizeof(m->selftest_name));
	f_u8(c, &m->resolved_pins, 1);
	f_u32(c, &m->repin_interval_s, UINT32_MAX);
	f_addr(c, &m->stub_addr);
	if (m->resolved_pins != (m->stub_addr.family != 0))
		c->bad = true;
	f_u32(c, &m->n_publish, SBX_PUBLISH_MAX);
	for (uint32_t i = 0; i < m->n_publish && !codec_failed(c); i++) {
		f_u16(c, &m->publish[i]);
		if (m->publish[i] == 0)
			c->bad = true;
	}
	if (!codec_failed(c) &&
	    (m->fd_mask >> SBX_BFD_PUBLISH != (UINT32_C(1) << m->n_publish) - 1 ||
	     (m->resolved_pins && m->n_publish)))
		c->bad = true;
}

static void event_fields(struct codec *c, struct sbx_event *m)
{
	f_u64(c, &m->ts_ms);
	f_u8(c, &m->action, SBX_N_ACTIONS - 1);
	f_u8(c, &m->proto, SBX_N_PROTOS - 1);
	f_u8(c, &m->reason, SBX_N_REASONS - 1);
	f_addr(c, &m->addr);
	f_u16(c, &m->port);
	f_text(c, m->name, sizeof(m->name));
	f_text(c, m->rule, sizeof(m->rule));
	f_text(c, m->request, sizeof(m->request));
	f_u64(c, &m->count);
	f_u64(c, &m->bytes_out);
	f_u64(c, &m->bytes_in);
	f_u64(c, &m->duration_ms);
	f_u64(c, &m->generation);
	if (m->count == 0)
		c->bad = true;
}

static void stats_fields(struct codec *c, struct sbx_msg_stats *m)
{
	f_u64(c, &m->flows);
	f_u64(c, &m->flows_denied);
	f_u64(c, &m->dns_queries);
	f_u64(c, &m->dns_refused);
	f_u64(c, &m->bytes_out);
	f_u64(c, &m->bytes_in);
	f_u64(c, &m->events_folded);
	f_u64(c, &m->limits_hit);
	f_u64(c, &m->published);
	f_u64(c, &m->published_failed);
	f_u64(c, &m->published_bytes_out);
	f_u64(c, &m->published_bytes_in);
}

static void probes_fields(struct codec *c, struct sbx_msg_probes *m)
{
	f_u32(c, &m->timeout_ms, UINT32_MAX);
	f_u32(c, &m->n_probes, SBX_PROBES_MAX);
	for (uint32_t i = 0; i < m->n_probes && !codec_failed(c); i++) {
		struct sbx_probe *p = &m->probes[i];

		clear_element(c, p, sizeof(*p));
		f_u8(c, &p->kind, SBX_N_PROBE_KINDS - 1);
		f_u8(c, &p->proto, SBX_N_PROTOS - 1);
		f_u16(c, &p->port);
		f_addr(c, &p->addr);
		f_str(c, p->name, sizeof(p->name));
		f_str(c, p->expect, sizeof(p->expect));
	}
}

static void programs_fields(struct codec *c, struct sbx_msg_programs *m)
{
	uint32_t at = 0;

	f_u32(c, &m->n_programs, SBX_PROGRAMS_MAX);
	if (m->n_programs == 0)
		c->bad = true;
	for (uint32_t i = 0; i < m->n_programs && !codec_failed(c); i++) {
		struct sbx_msg_program *p = &m->v[i];

		clear_element(c, p, sizeof(*p));
		f_u64(c, &p->dev);
		f_u64(c, &p->ino);
		if (!c->writing)
			p->path = at;
		if (p->path != at || at >= sizeof(m->text)) {
			c->bad = true;
			return;
		}
		f_str(c, m->text + at, sizeof(m->text) - at);
		if (codec_failed(c))
			return;
		if (m->text[at] != '/')
			c->bad = true;
		at += (uint32_t)strlen(m->text + at) + 1;
	}
}
_Static_assert(HEADER_SIZE + 4 + SBX_PROGRAMS_MAX * 18 + SBX_PROGRAMS_TEXT_MAX <= SBX_MSG_MAX,
	       "all programs fit one packet");

static void verdicts_fields(struct codec *c, struct sbx_msg_verdicts *m)
{
	f_u32(c, &m->n_verdicts, SBX_PROBES_MAX);
	for (uint32_t i = 0; i < m->n_verdicts && !codec_failed(c); i++) {
		struct sbx_msg_verdict *v = &m->v[i];

		clear_element(c, v, sizeof(*v));
		f_u8(c, &v->ok, 1);
		f_u32(c, &v->elapsed_us, UINT32_MAX);
		f_text(c, v->detail, sizeof(v->detail));
	}
}
_Static_assert(HEADER_SIZE + 4 + SBX_PROBES_MAX * sizeof(struct sbx_msg_verdict) <= SBX_MSG_MAX,
	       "all verdicts at their longest fit one packet");

static void exec_failed_fields(struct codec *c, struct sbx_msg_exec_failed *m)
{
	f_u32(c, &m->error, INT32_MAX);
	f_u8(c, &m->not_found, 1);
	f_text(c, m->why, sizeof(m->why));
}

/* Is @text as many words as @m says, and each of its form? */
static bool exec_words_are_fine(const struct sbx_msg_exec *m, struct sbx_span text)
{
	const char *p = (const char *)text.p, *end = p + text.n;
	uint64_t n = 0;

	if (text.n == 0 || end[-1] != '\0' || p[0] != '/')
		return false;
	for (; p < end; p += strlen(p) + 1, n++) {
		if (n == 1 && !p[0])
			return false;
		if (n > m->n_argv && (p[0] == '=' || !strchr(p, '=')))
			return false;
	}
	return n == 1 + (uint64_t)m->n_argv + m->n_env;
}

static void exec_fields(struct codec *c, struct sbx_msg_exec *m)
{
	uint16_t n = (uint16_t)m->text.n;

	if (c->writing && m->text.n > SBX_EXEC_TEXT_MAX)
		c->bad = true;
	f_u32(c, &m->number, UINT32_MAX);
	f_u8(c, &m->tty, 1);
	f_u32(c, &m->n_argv, SBX_EXEC_TEXT_MAX);
	f_u32(c, &m->n_env, SBX_EXEC_TEXT_MAX);
	f_u16(c, &n);
	if (n > SBX_EXEC_TEXT_MAX || m->number == 0 || m->n_argv == 0)
		c->bad = true;
	if (codec_failed(c))
		return;
	if (c->writing)
		sbx_write_bytes(&c->w, m->text.p, n);
	else
		m->text = sbx_read_bytes(&c->r, n);
	if (!codec_failed(c) && !exec_words_are_fine(m, m->text))
		c->bad = true;
}

static void exec_signal_fields(struct codec *c, struct sbx_msg_exec_signal *m)
{
	f_u32(c, &m->number, UINT32_MAX);
	f_u32(c, &m->sig, 64);
	if (m->number == 0 || m->sig == 0)
		c->bad = true;
}

static void exec_exit_fields(struct codec *c, struct sbx_msg_exec_exit *m)
{
	f_u32(c, &m->number, UINT32_MAX);
	f_u32(c, &m->status, UINT16_MAX);
	f_u32(c, &m->error, INT32_MAX);
	if (m->number == 0)
		c->bad = true;
}

static void stage_failed_fields(struct codec *c, struct sbx_msg_stage_failed *m)
{
	f_u32(c, &m->error, INT32_MAX);
	f_text(c, m->step, sizeof(m->step));
	f_text(c, m->detail, sizeof(m->detail));
}

static void udp_socket_fields(struct codec *c, struct sbx_msg_udp_socket *m)
{
	f_addr(c, &m->local);
	f_u16(c, &m->local_port);
	f_addr(c, &m->peer);
	f_u16(c, &m->peer_port);
	f_u32(c, &m->cookie, UINT32_MAX);
	/* One socket serves both ends, so both are of one family. */
	if (m->local.family == 0 || m->local.family != m->peer.family)
		c->bad = true;
}

static void tcp_socket_fields(struct codec *c, struct sbx_msg_tcp_socket *m)
{
	f_u8(c, &m->family, 6);
	f_u16(c, &m->port);
	f_u32(c, &m->cookie, UINT32_MAX);
	if ((m->family != 4 && m->family != 6) || m->port == 0)
		c->bad = true;
}

/* Bytes with their length. */
static void f_span(struct codec *c, struct sbx_span *s, size_t n_max)
{
	uint16_t n = (uint16_t)s->n;

	if (c->writing && s->n > n_max)
		c->bad = true;
	f_u16(c, &n);
	if (n > n_max)
		c->bad = true;
	if (codec_failed(c))
		return;
	if (c->writing)
		sbx_write_bytes(&c->w, s->p, n);
	else
		*s = sbx_read_bytes(&c->r, n);
}

static void tls_flow_fields(struct codec *c, struct sbx_msg_tls_flow *m)
{
	f_u32(c, &m->flow, UINT32_MAX);
	f_u32(c, &m->entry, UINT32_MAX);
	f_u8(c, &m->tls, 1);
	f_addr(c, &m->addr);
	f_u16(c, &m->port);
	f_str(c, m->name, sizeof(m->name));
	f_span(c, &m->first, SBX_TLS_FIRST_MAX);
	f_span(c, &m->rule, SBX_TLS_RULE_MAX);
	f_span(c, &m->requests, SBX_TLS_REQUESTS_MAX);
	if (!m->name[0] || !m->port || (m->entry == SBX_TLS_LIVE) != (m->requests.n > 0))
		c->bad = true;
}

static void tls_done_fields(struct codec *c, struct sbx_msg_tls_done *m)
{
	f_u32(c, &m->flow, UINT32_MAX);
	f_u64(c, &m->bytes_out);
	f_u64(c, &m->bytes_in);
}

static void policy_done_fields(struct codec *c, struct sbx_msg_policy_done *m)
{
	f_u8(c, &m->ok, 1);
	f_u64(c, &m->generation);
	f_u32(c, &m->n_cut, UINT32_MAX);
	if (!m->ok && m->n_cut)
		c->bad = true;
}

static void flow_list_fields(struct codec *c, struct sbx_msg_flow_list *m)
{
	f_u8(c, &m->last, 1);
	f_u32(c, &m->n_flows, SBX_MSG_FLOWS_MAX);
	for (uint32_t i = 0; i < m->n_flows && !codec_failed(c); i++) {
		struct sbx_msg_flow *f = &m->v[i];

		clear_element(c, f, sizeof(*f));
		f_text(c, f->name, sizeof(f->name));
		f_addr(c, &f->addr);
		f_u16(c, &f->port);
		f_u8(c, &f->proto, SBX_PROTO_UDP);
		f_u64(c, &f->bytes_out);
		f_u64(c, &f->bytes_in);
		f_u64(c, &f->age_ms);
		f_text(c, f->rule, sizeof(f->rule));
	}
}
_Static_assert(HEADER_SIZE + 5 + SBX_MSG_FLOWS_MAX * sizeof(struct sbx_msg_flow) <= SBX_MSG_MAX,
	       "all flows at their longest fit one packet");

static void net_fields(struct codec *c, struct sbx_msg_net *net)
{
	f_addr(c, &net->addr);
	f_u8(c, &net->prefix, net->addr.family == 4 ? 32 : 128);
	f_u16(c, &net->port_first);
	f_u16(c, &net->port_last);
	f_u8(c, &net->proto, SBX_PROTO_UDP);
	if (net->addr.family == 0 || net->port_first > net->port_last)
		c->bad = true;
}

static void ruleset_fields(struct codec *c, struct sbx_msg_ruleset *m)
{
	f_u16(c, &m->tcp_port4);
	f_u16(c, &m->tcp_port6);
	f_u16(c, &m->udp_port4);
	f_u16(c, &m->udp_port6);
	f_u8(c, &m->all_destinations, 1);
	f_u8(c, &m->udp, 1);
	f_u8(c, &m->dns, 1);
	f_u8(c, &m->shut, 1);
	f_u16(c, &m->nflog_group);
	f_u32(c, &m->n_nets, SBX_MSG_NETS_MAX);
	for (uint32_t i = 0; i < m->n_nets && !codec_failed(c); i++) {
		clear_element(c, &m->v[i], sizeof(m->v[i]));
		net_fields(c, &m->v[i]);
	}
}

static void ruleset_done_fields(struct codec *c, struct sbx_msg_ruleset_done *m)
{
	f_u32(c, &m->error, INT32_MAX);
	f_u8(c, &m->taken, 1);
	f_text(c, m->detail, sizeof(m->detail));
}

static void pins_fields(struct codec *c, struct sbx_msg_pins *m)
{
	f_u32(c, &m->serial, UINT32_MAX);
	f_u32(c, &m->n_pins, SBX_MSG_PINS_MAX);
	if (m->n_pins == 0)
		c->bad = true;
	for (uint32_t i = 0; i < m->n_pins && !codec_failed(c); i++) {
		struct sbx_msg_pin *p = &m->v[i];

		clear_element(c, p, sizeof(*p));
		f_addr(c, &p->addr);
		f_u16(c, &p->port);
		f_u8(c, &p->proto, SBX_N_PROTOS - 1);
		f_u8(c, &p->old, 1);
		f_u32(c, &p->timeout_ms, UINT32_MAX);
		if (p->addr.family == 0 || p->port == 0 ||
		    (p->proto != SBX_PROTO_TCP && p->proto != SBX_PROTO_UDP))
			c->bad = true;
	}
}
_Static_assert(HEADER_SIZE + 8 + SBX_MSG_PINS_MAX * 25 <= SBX_MSG_MAX, "all pins fit one packet");

/* --- packets --- */

static struct codec encode_begin(enum sbx_msg_type type, void *p, size_t n)
{
	struct codec c = {
		.writing = true,
		.w = sbx_writer(p, n < SBX_MSG_MAX ? n : SBX_MSG_MAX),
	};

	sbx_write_u8(&c.w, SBX_MSG_VERSION);
	sbx_write_u8(&c.w, (uint8_t)type);
	sbx_write_u16(&c.w, 0);
	return c;
}

static ssize_t encode_end(const struct codec *c)
{
	if (c->bad)
		return -EINVAL;
	return c->w.failed ? -EMSGSIZE : (ssize_t)c->w.pos;
}

enum sbx_msg_type sbx_msg_type(struct sbx_span packet)
{
	struct sbx_reader r = sbx_reader(packet);
	uint8_t version = sbx_read_u8(&r), type = sbx_read_u8(&r);
	uint16_t zero = sbx_read_u16(&r);

	if (r.failed || packet.n > SBX_MSG_MAX || version != SBX_MSG_VERSION || zero != 0 ||
	    type >= SBX_N_MSG_TYPES)
		return SBX_MSG_NONE;
	return (enum sbx_msg_type)type;
}

static struct codec decode_begin(struct sbx_span packet, enum sbx_msg_type type)
{
	struct codec c = { .r = sbx_reader(packet) };

	if (type == SBX_MSG_NONE || sbx_msg_type(packet) != type)
		c.bad = true;
	sbx_read_bytes(&c.r, HEADER_SIZE);
	return c;
}

/* Wipe the half-filled struct of a refused packet, so that no caller uses it. */
static int decode_end(const struct codec *c, void *m, size_t n)
{
	if (!c->bad && sbx_reader_done(&c->r))
		return 0;
	memset(m, 0, n);
	return -EBADMSG;
}

/* A visitor that writes does not change the struct; the const is taken off for its reading half.
 * The first n_clear bytes are cleared before reading. */
#define DEFINE_CODEC(name, type, msg_type, n_clear) \
	ssize_t sbx_msg_encode_##name(const type *m, void *p, size_t n)                            \
	{                                                                                          \
		struct codec c = encode_begin(msg_type, p, n);                                     \
                                                                                                   \
		name##_fields(&c, (type *)(uintptr_t)m);                                           \
		return encode_end(&c);                                                             \
	}                                                                                          \
                                                                                                   \
	int sbx_msg_decode_##name(struct sbx_span packet, type *ret_m)                             \
	{                                                                                          \
		struct codec c = decode_begin(packet, msg_type);                                   \
                                                                                                   \
		memset(ret_m, 0, n_clear);                                                         \
		if (!codec_failed(&c))                                                             \
			name##_fields(&c, ret_m);                                                  \
		return decode_end(&c, ret_m, sizeof(*ret_m));                                      \
	}

#define DEFINE_MESSAGE(name, type, msg_type) DEFINE_CODEC(name, type, msg_type, sizeof(type))
#define DEFINE_LIST(name, type, msg_type, list)                                                    \
	DEFINE_CODEC(name, type, msg_type, offsetof(type, list))

DEFINE_MESSAGE(config, struct sbx_msg_config, SBX_MSG_CONFIG)
DEFINE_MESSAGE(event, struct sbx_event, SBX_MSG_EVENT)
DEFINE_MESSAGE(stats, struct sbx_msg_stats, SBX_MSG_STATS)
DEFINE_LIST(probes, struct sbx_msg_probes, SBX_MSG_PROBES, probes)
DEFINE_LIST(programs, struct sbx_msg_programs, SBX_MSG_PROGRAMS, v)
DEFINE_LIST(verdicts, struct sbx_msg_verdicts, SBX_MSG_VERDICTS, v)
DEFINE_MESSAGE(exec_failed, struct sbx_msg_exec_failed, SBX_MSG_EXEC_FAILED)
DEFINE_MESSAGE(exec, struct sbx_msg_exec, SBX_MSG_EXEC)
DEFINE_MESSAGE(exec_signal, struct sbx_msg_exec_signal, SBX_MSG_EXEC_SIGNAL)
DEFINE_MESSAGE(exec_exit, struct sbx_msg_exec_exit, SBX_MSG_EXEC_EXIT)
DEFINE_MESSAGE(stage_failed, struct sbx_msg_stage_failed, SBX_MSG_STAGE_FAILED)
DEFINE_MESSAGE(udp_socket, struct sbx_msg_udp_socket, SBX_MSG_UDP_SOCKET)
DEFINE_MESSAGE(tcp_socket, struct sbx_msg_tcp_socket, SBX_MSG_TCP_SOCKET)
DEFINE_MESSAGE(tls_flow, struct sbx_msg_tls_flow, SBX_MSG_TLS_FLOW)
DEFINE_MESSAGE(tls_done, struct sbx_msg_tls_done, SBX_MSG_TLS_DONE)
DEFINE_MESSAGE(policy_done, struct sbx_msg_policy_done, SBX_MSG_POLICY_DONE)
DEFINE_LIST(flow_list, struct sbx_msg_flow_list, SBX_MSG_FLOW_LIST, v)
DEFINE_LIST(ruleset, struct sbx_msg_ruleset, SBX_MSG_RULESET, v)
DEFINE_MESSAGE(ruleset_done, struct sbx_msg_ruleset_done, SBX_MSG_RULESET_DONE)
DEFINE_LIST(pins, struct sbx_msg_pins, SBX_MSG_PINS, v)

/* --- messages of a type and at most a number --- */

static int simple_shape(enum sbx_msg_type type, bool *ret_number)
{
	switch (type) {
	case SBX_MSG_STOP:
	case SBX_MSG_READY:
	case SBX_MSG_INIT_HELLO:
	case SBX_MSG_RELEASE:
	case SBX_MSG_STAGE_CONFIG:
	case SBX_MSG_STAGE_UPPER:
	case SBX_MSG_CHECK_MOUNTS:
	case SBX_MSG_TLS_CONFIG:
	case SBX_MSG_TLS_READY:
	case SBX_MSG_POLICY:
	case SBX_MSG_FLOWS:
	case SBX_MSG_EXEC_LISTENER:
		*ret_number = false;
		return 0;
	case SBX_MSG_STAGE_READY:
	case SBX_MSG_STAGE_FILLS:
	case SBX_MSG_SIGNAL:
	case SBX_MSG_SIGNAL_ALL:
	case SBX_MSG_COMMAND_EXIT:
	case SBX_MSG_MOUNTS_CHECKED:
	case SBX_MSG_UDP_SOCKET_MADE:
	case SBX_MSG_UDP_SOCKET_FAILED:
	case SBX_MSG_PINNED:
	case SBX_MSG_PINS_FAILED:
	case SBX_MSG_TCP_SOCKET_MADE:
	case SBX_MSG_TCP_SOCKET_FAILED:
	case SBX_MSG_SECRET_STALE:
	case SBX_MSG_SECRET:
	case SBX_MSG_TLS_CUT:
	case SBX_MSG_PUBLISH:
	case SBX_MSG_WALL_TIME:
		*ret_number = true;
		return 0;
	default:
		return -EINVAL;
	}
}

static void simple_fields(struct codec *c, enum sbx_msg_type type, uint32_t *value)
{
	bool number = false;

	if (simple_shape(type, &number))
		c->bad = true;
	else if (number)
		f_u32(c, value, UINT32_MAX);
	else if (*value != 0)
		c->bad = true;
}

ssize_t sbx_msg_encode_simple(enum sbx_msg_type type, uint32_t value, void *p, size_t n)
{
	struct codec c = encode_begin(type, p, n);

	simple_fields(&c, type, &value);
	return encode_end(&c);
}

int sbx_msg_decode_simple(struct sbx_span packet, enum sbx_msg_type type, uint32_t *ret_value)
{
	struct codec c = decode_begin(packet, type);
	uint32_t value = 0;
	int r;

	if (!codec_failed(&c))
		simple_fields(&c, type, &value);
	r = decode_end(&c, &value, sizeof(value));
	if (ret_value)
		*ret_value = value;
	return r;
}
