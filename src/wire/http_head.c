/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Judges the requests that a sandboxed client sends on a plain HTTP connection, one by one.
 *
 * A request that names a forbidden host is easy to refuse. The danger is a request that the judge
 * does not see: one that is hidden in bytes that the judge takes for another request's body, or one
 * with two names, of which the server believes the name that the judge does not. So the grammar is
 * RFC 9112 without its leniencies (CRLF only, no empty lines before a request, no folding, no space
 * before a colon). A length may be stated once and in one way, and so may the host. Requests of
 * common clients pass, with one exception: curl may send bytes over 0x7f in a target, where
 * browsers encode them.
 *
 * The head stays in the caller's buffer. Two offsets into it make the work linear for any pieces:
 * `scanned`, the bytes that were looked at, and `line`, the begin of the current line. A line is
 * parsed when its LF has arrived, so a verdict always falls at the same byte.
 *
 * States: HEAD, from one request to the next; BODY, while the body of the last head is due;
 * REJECTED.
 */

#include "wire/http_head.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "wire/http_field.h"

enum state {
	ST_HEAD = 0,
	ST_BODY,
	ST_REJECTED,
};

#define DEFAULT_PORT	 80
#define DEFAULT_PORT_TLS 443

/* Steps return 0 to go on, or the reason to refuse; no such reason is 0. */

/* --- request line, RFC 9112 section 3 --- */

/* ":port" or nothing. RFC 3986 would allow an empty port and leading zeros; no client sends
 * them. */
static int parse_port(struct sbx_span s, uint16_t *ret_port)
{
	uint32_t port = 0;

	*ret_port = 0;
	if (!s.n)
		return 0;
	if (s.p[0] != ':' || s.n < 2 || s.n > 6 || s.p[1] == '0')
		return SBX_REASON_HTTP_MALFORMED;
	for (size_t i = 1; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return SBX_REASON_HTTP_MALFORMED;
		port = port * 10 + (s.p[i] - '0');
	}
	if (port > UINT16_MAX)
		return SBX_REASON_HTTP_MALFORMED;
	*ret_port = (uint16_t)port;
	return 0;
}

/* Make an address in text canonical. The caller has checked that no byte is a NUL. */
static int parse_address(struct sbx_span s, uint8_t family, struct sbx_http_authority *ret_a)
{
	char text[SBX_ADDR_STR_MAX];
	struct sbx_addr addr;

	if (sbx_text_copy_n(text, sizeof(text), (const char *)s.p, s.n) < 0)
		return SBX_REASON_HTTP_MALFORMED;
	if (sbx_addr_parse(text, &addr) || addr.family != family)
		return SBX_REASON_HTTP_MALFORMED;
	ret_a->addr = sbx_addr_unmap(&addr);
	sbx_addr_format(&ret_a->addr, ret_a->host, sizeof(ret_a->host));
	return 0;
}

/* "host[:port]" without userinfo, RFC 9112 section 3.2. */
static int parse_authority(struct sbx_span s, struct sbx_http_authority *ret_a)
{
	const uint8_t *end;
	size_t n;
	int e;

	memset(&ret_a->addr, 0, sizeof(ret_a->addr));
	if (s.n && s.p[0] == '[') {
		end = memchr(s.p, ']', s.n);
		if (!end)
			return SBX_REASON_HTTP_MALFORMED;
		n = (size_t)(end - s.p);
		e = parse_address(sbx_span(s.p + 1, n - 1), 6, ret_a);
		n++;
	} else {
		end = s.n ? memchr(s.p, ':', s.n) : NULL;
		n = end ? (size_t)(end - s.p) : s.n;
		e = sbx_hostname_normalise((const char *)s.p, n, ret_a->host);
		if (e == SBX_HOSTNAME_E_ADDRESS)
			e = parse_address(sbx_span(s.p, n), 4, ret_a);
		else if (e)
			e = SBX_REASON_HTTP_MALFORMED;
	}
	return e ? e : parse_port(sbx_span(s.p + n, s.n - n), &ret_a->port);
}

/* "http://authority[/path][?query]"; over TLS https. */
static int parse_absolute(struct sbx_http_judge *j, struct sbx_span target)
{
	const char *scheme = j->over_tls ? "https://" : "http://";
	const size_t n_scheme = strlen(scheme);
	size_t n = n_scheme;

	if (target.n < n_scheme || !sbx_http_equal(sbx_span(target.p, n_scheme), scheme))
		return SBX_REASON_HTTP_MALFORMED;
	while (n < target.n && target.p[n] != '/' && target.p[n] != '?')
		n++;
	j->target_seen = true;
	return parse_authority(sbx_span(target.p + n_scheme, n - n_scheme), &j->target);
}

static int parse_target(struct sbx_http_judge *j, struct sbx_span method, struct sbx_span target)
{
	if (!sbx_http_all(target, SBX_HTTP_TARGET))
		return SBX_REASON_HTTP_MALFORMED;
	if (target.p[0] == '/')
		return 0;
	if (target.p[0] == '*')
		return target.n == 1 && sbx_http_equal(method, "OPTIONS")
			       ? 0
			       : SBX_REASON_HTTP_MALFORMED;
	return parse_absolute(j, target);
}

static int parse_request_line(struct sbx_http_judge *j, struct sbx_span line)
{
	struct sbx_span version = line, method, target;

	if (!sbx_span_cut(&version, ' ', &method) || !sbx_span_cut(&version, ' ', &target))
		return SBX_REASON_HTTP_MALFORMED;
	if (method.n > SBX_HTTP_METHOD_MAX || !sbx_http_all(method, SBX_HTTP_TOKEN) ||
	    version.n != 8 || memcmp(version.p, "HTTP/", 5))
		return SBX_REASON_HTTP_MALFORMED;
	/* The connection preface of HTTP/2, RFC 9113 section 3.4. */
	if (sbx_http_equal(line, "PRI * HTTP/2.0") || sbx_http_equal(method, "CONNECT"))
		return SBX_REASON_HTTP_UPGRADE;
	if (memcmp(version.p + 5, "1.", 2) || (version.p[7] != '0' && version.p[7] != '1'))
		return SBX_REASON_HTTP_MALFORMED;
	j->version_minor = version.p[7] - '0';
	j->n_method = method.n;
	j->n_target = target.n;
	return parse_target(j, method, target);
}

/* --- fields, RFC 9112 sections 5 and 6 --- */

static int on_host(struct sbx_http_judge *j, struct sbx_span value)
{
	if (j->host_seen)
		return SBX_REASON_HOST_DUPLICATE;
	j->host_seen = true;
	/* An empty host is for targets without an authority, which http does not have. */
	if (!value.n)
		return j->loose ? 0 : SBX_REASON_HOST_ABSENT;
	return parse_authority(value, &j->host);
}

static int on_content_length(struct sbx_http_judge *j, struct sbx_span value)
{
	if (j->length_seen || !sbx_http_length_parse(value, &j->content_length))
		return SBX_REASON_HTTP_MALFORMED;
	j->length_seen = true;
	return 0;
}

static int on_transfer_encoding(struct sbx_http_judge *j, struct sbx_span value)
{
	if (j->chunked || !sbx_http_equal(value, "chunked"))
		return SBX_REASON_HTTP_MALFORMED;
	j->chunked = true;
	return 0;
}

static int on_upgrade(struct sbx_http_judge *j)
{
	j->upgrade = true;
	return j->loose ? 0 : SBX_REASON_HTTP_UPGRADE;
}

/* RFC 9110 section 7.6.1: the next proxy removes the fields that are named here. If that is Host or
 * a length, the next server reads another request than the judge did. */
static int on_connection(struct sbx_http_judge *j, struct sbx_span value)
{
	struct sbx_span option;

	while (sbx_http_list_next(&value, &option)) {
		enum sbx_http_field f = sbx_http_field_lookup(option);

		if (f == SBX_HTTP_FIELD_UPGRADE || f == SBX_HTTP_FIELD_HTTP2_SETTINGS) {
			if (on_upgrade(j))
				return SBX_REASON_HTTP_UPGRADE;
		} else if (f != SBX_HTTP_FIELD_OTHER ||
			   (option.n && !sbx_http_all(option, SBX_HTTP_TOKEN))) {
			return SBX_REASON_HTTP_MALFORMED;
		}
	}
	return 0;
}

static int parse_field(struct sbx_http_judge *j, struct sbx_span line)
{
	struct sbx_http_header f;

	if (!sbx_http_field_split(line, &f))
		return SBX_REASON_HTTP_MALFORMED;
	switch (sbx_http_field_lookup(f.name)) {
	case SBX_HTTP_FIELD_HOST:
		return on_host(j, f.value);
	case SBX_HTTP_FIELD_CONTENT_LENGTH:
		return on_content_length(j, f.value);
	case SBX_HTTP_FIELD_TRANSFER_ENCODING:
		return on_transfer_encoding(j, f.value);
	case SBX_HTTP_FIELD_CONNECTION:
		return on_connection(j, f.value);
	case SBX_HTTP_FIELD_UPGRADE:
	case SBX_HTTP_FIELD_HTTP2_SETTINGS:
		return on_upgrade(j);
	case SBX_HTTP_FIELD_DISGUISED:
		return SBX_REASON_HTTP_MALFORMED;
	case SBX_HTTP_FIELD_OTHER:
	case SBX_N_HTTP_FIELDS:
		break;
	}
	return 0;
}

static uint16_t port_or_default(const struct sbx_http_judge *j, const struct sbx_http_authority *a)
{
	return a->port ? a->port : j->over_tls ? DEFAULT_PORT_TLS : DEFAULT_PORT;
}

static int check_head(struct sbx_http_judge *j)
{
	if (j->chunked && (j->length_seen || j->version_minor == 0))
		return SBX_REASON_HTTP_MALFORMED;
	if (!j->host_seen && !j->loose)
		return SBX_REASON_HOST_ABSENT;
	if (!j->host_seen && j->target_seen)
		j->host = j->target;
	/* By RFC 9112 section 3.2.2 the target wins, but not every server does that. */
	if (j->target_seen && (strcmp(j->target.host, j->host.host) ||
			       port_or_default(j, &j->target) != port_or_default(j, &j->host)))
		return SBX_REASON_HOST_MISMATCH;
	return 0;
}

/* --- the judge --- */

static int reject(struct sbx_http_judge *j, enum sbx_reason reason, bool is_http)
{
	j->state = ST_REJECTED;
	j->reason = reason;
	j->is_http = is_http;
	return SBX_HTTP_E_REJECT;
}

/* For a malformed head: might a lenient server accept it? Yes if its first line has a version, or
 * is empty, because empty lines may come before a request. */
static bool resembles_http(const struct sbx_http_judge *j, struct sbx_span buffer)
{
	static const char version[] = "HTTP/";
	const size_t n = sizeof(version) - 1;

	if (buffer.p[0] == '\r' || buffer.p[0] == '\n')
		return true;
	for (size_t i = 0; i + n <= j->scanned; i++)
		if (sbx_http_equal(sbx_span(buffer.p + i, n), version))
			return true;
	return false;
}

static void begin_head(struct sbx_http_judge *j)
{
	j->state = ST_HEAD;
	j->cr = false;
	j->scanned = j->line = 0;
	j->n_method = j->n_target = 0;
	j->host_seen = j->target_seen = j->length_seen = j->chunked = j->upgrade = false;
	j->host.host[0] = '\0';
	j->host.addr.family = 0;
	j->host.port = 0;
}

void sbx_http_judge_init(struct sbx_http_judge *j, size_t limit_bytes, bool loose)
{
	memset(j, 0, sizeof(*j));
	j->limit = limit_bytes;
	j->loose = loose;
	begin_head(j);
}

static void finish_head(struct sbx_http_judge *j, struct sbx_span buffer,
			struct sbx_http_event *ret_event)
{
	enum sbx_http_framing framing = SBX_HTTP_FRAMING_NONE;
	uint64_t length = j->length_seen ? j->content_length : 0;
	size_t n_unused;

	if (j->chunked)
		framing = SBX_HTTP_FRAMING_CHUNKED;
	else if (j->length_seen)
		framing = SBX_HTTP_FRAMING_LENGTH;
	*ret_event = (struct sbx_http_event){
		.kind = SBX_HTTP_HEAD,
		.n = j->scanned,
		.method = sbx_span(buffer.p, j->n_method),
		.target = sbx_span(buffer.p + j->n_method + 1, j->n_target),
		.version_minor = j->version_minor,
		.host_addr = j->host.addr,
		.host_port = j->host.port,
		.framing = framing,
		.content_length = length,
		.upgrade = j->upgrade,
	};
	memcpy(ret_event->host, j->host.host, sizeof(ret_event->host));

	sbx_http_body_init(&j->body, framing, length);
	begin_head(j);
	if (sbx_http_body_feed(&j->body, sbx_span(NULL, 0), &n_unused))
		j->state = ST_BODY;
}

/* A line without its CRLF. *ret_done: it was the empty line that ends a good head. */
static int on_line(struct sbx_http_judge *j, struct sbx_span line, bool *ret_done)
{
	*ret_done = false;
	if (!j->n_method)
		return parse_request_line(j, line);
	if (line.n)
		return parse_field(j, line);
	*ret_done = true;
	return check_head(j);
}

/* Skip the bytes that are allowed in a line. The byte at the returned offset is not. */
static size_t scan_text(struct sbx_span buffer, size_t from, size_t end)
{
	while (from < end && sbx_http_is(buffer.p[from], SBX_HTTP_VALUE))
		from++;
	return from;
}

static int next_head(struct sbx_http_judge *j, struct sbx_span buffer,
		     struct sbx_http_event *ret_event)
{
	size_t end = buffer.n < j->limit ? buffer.n : j->limit;

	assert(end >= j->scanned);
	while (j->scanned < end) {
		struct sbx_span line;
		bool done;
		int e;

		if (!j->cr) {
			j->scanned = scan_text(buffer, j->scanned, end);
			if (j->scanned == end)
				break;
			if (buffer.p[j->scanned++] != '\r')
				return reject(j, SBX_REASON_HTTP_MALFORMED,
					      resembles_http(j, buffer));
			j->cr = true;
			continue;
		}
		if (buffer.p[j->scanned++] != '\n')
			return reject(j, SBX_REASON_HTTP_MALFORMED, resembles_http(j, buffer));
		line = sbx_span(buffer.p + j->line, j->scanned - 2 - j->line);
		j->cr = false;
		j->line = j->scanned;
		e = on_line(j, line, &done);
		if (e)
			return reject(j, (enum sbx_reason)e, resembles_http(j, buffer));
		if (done) {
			finish_head(j, buffer, ret_event);
			return 0;
		}
	}
	return j->scanned == j->limit ? reject(j, SBX_REASON_OVERSIZED, true) : SBX_HTTP_E_MORE;
}

static int next_body(struct sbx_http_judge *j, struct sbx_span buffer,
		     struct sbx_http_event *ret_event)
{
	size_t n;
	int e = sbx_http_body_feed(&j->body, buffer, &n);

	/* The good bytes before a wrong one are an event of their own; the next call refuses. */
	if (!n)
		return e == SBX_HTTP_E_REJECT ? reject(j, j->body.reason, true) : e;
	*ret_event = (struct sbx_http_event){ .kind = SBX_HTTP_BODY, .n = n };
	if (!e)
		begin_head(j);
	return 0;
}

int sbx_http_judge_next(struct sbx_http_judge *j, struct sbx_span buffer,
			struct sbx_http_event *ret_event)
{
	switch ((enum state)j->state) {
	case ST_HEAD:
		return next_head(j, buffer, ret_event);
	case ST_BODY:
		return next_body(j, buffer, ret_event);
	case ST_REJECTED:
		break;
	}
	return SBX_HTTP_E_REJECT;
}

uint64_t sbx_http_judge_opaque(const struct sbx_http_judge *j)
{
	return j->state == ST_BODY ? sbx_http_body_opaque(&j->body) : 0;
}

void sbx_http_judge_skip(struct sbx_http_judge *j, uint64_t n)
{
	assert(n <= sbx_http_judge_opaque(j));
	if (j->state == ST_BODY && sbx_http_body_skip(&j->body, n))
		begin_head(j);
}

bool sbx_http_judge_idle(const struct sbx_http_judge *j)
{
	return j->state == ST_HEAD && !j->scanned;
}
