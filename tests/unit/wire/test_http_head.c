/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The client's direction of HTTP/1: what is carried, what is refused, and at which byte. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/http_head.h"

#define LIMIT 4096
#define HOST  "Host: a.example\r\n"

/* --- a connection written down as text, to compare --- */

struct trace {
	char text[4096];
	size_t n;
	uint64_t n_body; /* bytes of body since the last line */
};

static void note(struct trace *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void note(struct trace *t, const char *fmt, ...)
{
	va_list ap;

	if (t->n_body)
		t->n += (size_t)snprintf(t->text + t->n, sizeof(t->text) - t->n,
					 "body %" PRIu64 "\n", t->n_body);
	t->n_body = 0;
	va_start(ap, fmt);
	t->n += (size_t)vsnprintf(t->text + t->n, sizeof(t->text) - t->n, fmt, ap);
	va_end(ap);
	assert_true(t->n < sizeof(t->text));
}

static void note_event(struct trace *t, const struct sbx_http_event *e)
{
	if (e->kind == SBX_HTTP_BODY) {
		assert_true(e->n > 0);
		t->n_body += e->n;
		return;
	}
	note(t, "head %zu %.*s %.*s 1.%u %s%s:%u %s%s%" PRIu64 "\n", e->n, (int)e->method.n,
	     (const char *)e->method.p, (int)e->target.n, (const char *)e->target.p,
	     e->version_minor, e->host_addr.family ? "addr " : "", e->host, e->host_port,
	     e->framing == SBX_HTTP_FRAMING_CHUNKED ? "chunked " : "", e->upgrade ? "upgrade " : "",
	     e->content_length);
}

/*
 * Run a stream through a judge as the broker does: @piece more bytes at a time behind what is in
 * the buffer; opaque bytes skipped when @skip. The trace ends with "more", "idle" or the reason.
 */
static bool loose; /* of the judges that follow */

static void run(const char *s, size_t n, size_t piece, size_t limit, bool skip, struct trace *t)
{
	size_t done = 0, have = 0; /* carried; received */
	struct sbx_http_judge j;
	int r;

	t->n = t->n_body = 0;
	t->text[0] = '\0';
	sbx_http_judge_init(&j, limit, loose);
	for (;;) {
		struct sbx_http_event e;
		uint64_t opaque = sbx_http_judge_opaque(&j);
		SBX_AUTO_FREE char *copy = NULL;

		if (skip && opaque && have > done) {
			size_t k = opaque < have - done ? (size_t)opaque : have - done;

			sbx_http_judge_skip(&j, k);
			t->n_body += k;
			done += k;
			continue;
		}
		copy = malloc(have - done + 1);
		assert_non_null(copy);
		memcpy(copy, s + done, have - done);
		r = sbx_http_judge_next(&j, sbx_span(copy, have - done), &e);
		if (r == 0) {
			note_event(t, &e);
			assert_true(e.n <= have - done);
			done += e.n;
		} else if (r == SBX_HTTP_E_REJECT) {
			note(t, "%s%s", sbx_reason_str(j.reason),
			     loose && !j.is_http ? ", other" : "");
			assert_int_equal(sbx_http_judge_next(&j, sbx_span(NULL, 0), &e),
					 SBX_HTTP_E_REJECT);
			return;
		} else if (have < n) {
			have += piece < n - have ? piece : n - have;
		} else {
			break;
		}
	}
	note(t, "%s", sbx_http_judge_idle(&j) ? "idle" : "more");
}

static struct trace trace; /* of the last stream judged */

/* Whole, in pieces of every size, bodies shown or skipped: one trace. */
static const char *judge_n(const char *s, size_t n, size_t limit)
{
	run(s, n, n, limit, false, &trace);
	for (size_t piece = 1; piece < n && piece < 200; piece++) {
		for (int skip = 0; skip <= 1; skip++) {
			struct trace t;

			run(s, n, piece, limit, skip, &t);
			assert_string_equal(t.text, trace.text);
		}
	}
	return trace.text;
}

static const char *judge(const char *s)
{
	return judge_n(s, strlen(s), LIMIT);
}

/* --- tests --- */

static void test_requests(void **state)
{
	(void)state;
	assert_string_equal(judge("GET / HTTP/1.1\r\nHost: A.Example.\r\nUser-Agent: x/1 (y; z)\r\n"
				  "Accept: */*\r\nX-Empty:\r\n\r\n"),
			    "head 83 GET / 1.1 a.example:0 0\nidle");
	assert_string_equal(judge("POST /p?q=1 HTTP/1.1\r\nhost:a.example:8080\r\n"
				  "content-length: 5\r\n\r\nhello"
				  "GET /2 HTTP/1.0\r\nHOST: a.example\t \r\n\r\n"),
			    "head 64 POST /p?q=1 1.1 a.example:8080 5\nbody 5\n"
			    "head 38 GET /2 1.0 a.example:0 0\nidle");
	assert_string_equal(judge("PUT /u HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n"
				  "Expect: 100-continue\r\n\r\n5\r\nGET /\r\n0\r\nX-Sum: 1\r\n\r\n"
				  "DELETE /u HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"),
			    "head 86 PUT /u 1.1 a.example:0 chunked 0\nbody 25\n"
			    "head 58 DELETE /u 1.1 a.example:0 0\nidle");
	assert_string_equal(
		judge("OPTIONS * HTTP/1.1\r\n" HOST "Connection: keep-alive, ,Close\r\n\r\n"),
		"head 71 OPTIONS * 1.1 a.example:0 0\nidle");
	/* A body that looks like a request is a body. */
	assert_string_equal(judge("POST / HTTP/1.1\r\n" HOST "Content-Length: 40\r\n\r\n"
				  "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n.."
				  "GET"),
			    "head 56 POST / 1.1 a.example:0 40\nbody 40\nmore");
}

static void test_prefixes(void **state)
{
	static const char s[] = "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
				"3\r\nabc\r\n0\r\n\r\n";
	const size_t n_head = strstr(s, "\r\n\r\n") + 4 - s;

	(void)state;
	for (size_t n = 0; n < sizeof(s); n++) {
		const char *end = strrchr(judge_n(s, n, LIMIT), '\n');

		end = end ? end + 1 : trace.text;
		assert_string_equal(end, n == 0 || n == sizeof(s) - 1 ? "idle" : "more");
		assert_int_equal(!strncmp(trace.text, "head", 4), n >= n_head);
	}
}

static void test_hosts(void **state)
{
	static const struct {
		const char *host, *want; /* "host:port", or a reason */
	} hosts[] = {
		{ "a.example", "a.example:0" },
		{ " \t a.example:80 ", "a.example:80" },
		{ "a.example:65535", "a.example:65535" },
		{ "A_b.example.", "a_b.example:0" },
		{ "192.0.2.1", "addr 192.0.2.1:0" },
		{ "192.0.2.1:81", "addr 192.0.2.1:81" },
		{ "[2001:DB8::0:1]:8080", "addr 2001:db8::1:8080" },
		{ "[::ffff:192.0.2.1]", "addr 192.0.2.1:0" },
		{ "", "host_absent" },
		{ "  ", "host_absent" },
		{ ".", "http_malformed" },
		{ "a.example:", "http_malformed" },
		{ "a.example:0", "http_malformed" },
		{ "a.example:080", "http_malformed" },
		{ "a.example:65536", "http_malformed" },
		{ "a.example:123456", "http_malformed" },
		{ "a.example:4294967739", "http_malformed" }, /* 443 in 32 bits */
		{ "a.example:+80", "http_malformed" },
		{ "a.example:80:80", "http_malformed" },
		{ ":80", "http_malformed" },
		{ "u@a.example", "http_malformed" },
		{ "u:p@a.example", "http_malformed" },
		{ "a.example/", "http_malformed" },
		{ "a.example, b.example", "http_malformed" },
		{ "a.example b.example", "http_malformed" },
		{ "http://a.example", "http_malformed" },
		{ "m\xc3\xbcnster.example", "http_malformed" },
		{ "a..example", "http_malformed" },
		{ "127.1", "http_malformed" },
		{ "0x7f.0.0.1", "http_malformed" },
		{ "192.0.2.1.", "http_malformed" },
		{ "[192.0.2.1]", "http_malformed" },
		{ "2001:db8::1", "http_malformed" },
		{ "[2001:db8::1", "http_malformed" },
		{ "[2001:db8::1]x", "http_malformed" },
		{ "[fe80::1%eth0]", "http_malformed" },
		{ "a@ipinfo.io", "http_malformed" },
		{ "ipinfo%2eio", "http_malformed" },
		{ "ipinfo%2Eio:80", "http_malformed" },
		{ "[]", "http_malformed" },
		/* as long as an address can be, and longer than its buffer */
		{ "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]",
		  "addr ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:0" },
		{ "[1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1]", "http_malformed" },
		{ "[1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:11]", "http_malformed" },
		{ "[1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1]", "http_malformed" },
		{ "[1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:"
		  "1:1:1:1:1:1:1:1:1]",
		  "http_malformed" },
		{ "[", "http_malformed" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(hosts); i++) {
		bool good = strchr(hosts[i].want, ':');
		char s[200], want[200];
		int n = snprintf(s, sizeof(s), "GET / HTTP/1.1\r\nHost:%s\r\n\r\n", hosts[i].host);

		if (good)
			snprintf(want, sizeof(want), "head %d GET / 1.1 %s 0\nidle", n,
				 hosts[i].want);
		else
			snprintf(want, sizeof(want), "%s", hosts[i].want);
		assert_string_equal(judge(s), want);
	}
	assert_string_equal(judge_n("GET / HTTP/1.1\r\nHost: a.example\0x\r\n\r\n", 38, LIMIT),
			    "http_malformed");
}

static void test_targets(void **state)
{
	static const struct {
		const char *line, *want; /* "": good */
	} lines[] = {
		{ "GET http://a.example/x HTTP/1.1", "" },
		{ "GET HTTP://A.EXAMPLE.:80 HTTP/1.1", "" },
		{ "GET http://a.example?q HTTP/1.0", "" },
		{ "GET //evil.example/ HTTP/1.1", "" },
		{ "GET /{a}|\"^`\\ HTTP/1.1", "" },
		{ "PROPFIND /%00 HTTP/1.1", "" },
		{ "GET http://evil.example/ HTTP/1.1", "host_mismatch" },
		{ "GET http://a.example:8080/ HTTP/1.1", "host_mismatch" },
		{ "GET http://192.0.2.1/ HTTP/1.1", "host_mismatch" },
		{ "GET http://a.example@evil.example/ HTTP/1.1", "http_malformed" },
		{ "GET http://evil.example\\@a.example/ HTTP/1.1", "http_malformed" },
		{ "GET http:///x HTTP/1.1", "http_malformed" },
		{ "GET http://?x HTTP/1.1", "http_malformed" },
		{ "GET http:/a.example/ HTTP/1.1", "http_malformed" },
		{ "GET https://a.example/ HTTP/1.1", "http_malformed" },
		{ "GET ftp://a.example/ HTTP/1.1", "http_malformed" },
		{ "GET a.example:80 HTTP/1.1", "http_malformed" },
		{ "GET x HTTP/1.1", "http_malformed" },
		{ "GET * HTTP/1.1", "http_malformed" },
		{ "OPTIONS *x HTTP/1.1", "http_malformed" },
		{ "GET /#f HTTP/1.1", "http_malformed" },
		{ "GET /\xe9 HTTP/1.1", "http_malformed" },
		{ "GET /\tx HTTP/1.1", "http_malformed" },
		{ "GET /a b HTTP/1.1", "http_malformed" },
		{ "GET  / HTTP/1.1", "http_malformed" },
		{ "GET /  HTTP/1.1", "http_malformed" },
		{ "GET / HTTP/1.1 ", "http_malformed" },
		{ " GET / HTTP/1.1", "http_malformed" },
		{ "GET\t/ HTTP/1.1", "http_malformed" },
		{ "GET / HTTP/1.2", "http_malformed" },
		{ "GET / HTTP/0.9", "http_malformed" },
		{ "GET / HTTP/2.0", "http_malformed" },
		{ "GET / HTTP/1.10", "http_malformed" },
		{ "GET / http/1.1", "http_malformed" },
		{ "GET / HTTPS/1.1", "http_malformed" },
		{ "GET /", "http_malformed" },
		{ "GET", "http_malformed" },
		{ "", "http_malformed" },
		{ "G(T / HTTP/1.1", "http_malformed" },
		{ "SSH-2.0-OpenSSH_9.2p1 Debian-2", "http_malformed" },
		{ "CONNECT a.example:443 HTTP/1.1", "http_upgrade" },
		{ "connect / HTTP/1.0", "http_upgrade" },
		{ "PRI * HTTP/2.0", "http_upgrade" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(lines); i++) {
		char s[300];

		snprintf(s, sizeof(s), "%s\r\n" HOST "\r\n", lines[i].line);
		judge(s);
		if (lines[i].want[0])
			assert_string_equal(trace.text, lines[i].want);
		else
			assert_int_equal(strncmp(trace.text, "head", 4), 0);
	}
	assert_string_equal(judge("GET http://a.example/ HTTP/1.1\r\nHost: a.example:80\r\n\r\n"),
			    "head 54 GET http://a.example/ 1.1 a.example:80 0\nidle");
	assert_string_equal(judge("GET http://[::1]:8/ HTTP/1.1\r\nHost: [0::1]:8\r\n\r\n"),
			    "head 48 GET http://[::1]:8/ 1.1 addr ::1:8 0\nidle");
}

static void test_fields(void **state)
{
	static const struct {
		const char *fields, *want;
	} heads[] = {
		{ "", "host_absent" },
		{ "X: y\r\n", "host_absent" },
		{ HOST HOST, "host_duplicate" },
		{ HOST "X: y\r\nhOST: b.example\r\n", "host_duplicate" },
		{ "Host:\r\n" HOST, "host_absent" },
		/* names and values */
		{ HOST "X y: z\r\n", "http_malformed" },
		{ HOST "X : z\r\n", "http_malformed" },
		{ HOST "X\t: z\r\n", "http_malformed" },
		{ HOST ": z\r\n", "http_malformed" },
		{ HOST "X\r\n", "http_malformed" },
		{ HOST "X\xe9: z\r\n", "http_malformed" },
		{ HOST " folded\r\n", "http_malformed" },
		{ HOST "\tfolded: x\r\n", "http_malformed" },
		{ " " HOST, "http_malformed" },
		{ HOST "X: \x7f\r\n", "http_malformed" },
		{ HOST "X: \x01\r\n", "http_malformed" },
		{ HOST "X: a\ry\r\n", "http_malformed" },
		{ HOST "X: a\ny: b\r\n", "http_malformed" },
		{ HOST "X: a\r\r\n", "http_malformed" },
		/* leaving HTTP/1 */
		{ HOST "Upgrade: websocket\r\n", "http_upgrade" },
		{ HOST "upgrade:\r\n", "http_upgrade" },
		{ HOST "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n", "http_upgrade" },
		{ HOST "Connection: Upgrade\r\n", "http_upgrade" },
		{ HOST "Connection: keep-alive,\tupgrade\r\n", "http_upgrade" },
		{ HOST "Connection: HTTP2-Settings\r\n", "http_upgrade" },
		{ HOST "Connection: host\r\n", "http_malformed" },
		{ HOST "Connection: close, Transfer-Encoding\r\n", "http_malformed" },
		{ HOST "Connection: close; content-length\r\n", "http_malformed" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(heads); i++) {
		char s[300];

		snprintf(s, sizeof(s), "POST / HTTP/1.1\r\n%s\r\n", heads[i].fields);
		assert_string_equal(judge(s), heads[i].want);
	}
}

static void test_framing(void **state)
{
	static const struct {
		const char *fields, *want;
	} heads[] = {
		{ HOST "Content-Length: 1\r\nContent-Length: 1\r\n", "http_malformed" },
		{ HOST "Content-Length: 1, 1\r\n", "http_malformed" },
		{ HOST "Content-Length:\r\n", "http_malformed" },
		{ HOST "Content-Length: +1\r\n", "http_malformed" },
		{ HOST "Content-Length: -1\r\n", "http_malformed" },
		{ HOST "Content-Length: 0x1\r\n", "http_malformed" },
		{ HOST "Content-Length: 1 1\r\n", "http_malformed" },
		{ HOST "Content-Length: 1e1\r\n", "http_malformed" },
		{ HOST "Content-Length: 00\r\n", "http_malformed" },
		{ HOST "Content-Length: 01\r\n", "http_malformed" },
		{ HOST "Content-Length: 010\r\n", "http_malformed" },
		{ HOST "Content-Length: 0000000000000001\r\n", "http_malformed" },
		{ HOST "Content-Length: 9007199254740993\r\n", "http_malformed" }, /* 2^53 + 1 */
		{ HOST "Content-Length: 9999999999999999\r\n", "http_malformed" },
		{ HOST "Content-Length: 10000000000000000\r\n", "http_malformed" },
		{ HOST "Content-Length: 9223372036854775808\r\n", "http_malformed" },
		{ HOST "Content-Length: 00000000000000000001\r\n", "http_malformed" },
		{ HOST "Content-Length: 18446744073709551617\r\n", "http_malformed" },
		{ HOST "Content_Length: 1\r\n", "http_malformed" },
		{ HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", "http_malformed" },
		{ HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "http_malformed" },
		{ HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		  "http_malformed" },
		{ HOST "Transfer-Encoding: gzip, chunked\r\n", "http_malformed" },
		{ HOST "Transfer-Encoding: chunked, chunked\r\n", "http_malformed" },
		{ HOST "Transfer-Encoding: identity\r\n", "http_malformed" },
		{ HOST "Transfer-Encoding: chunked;q=1\r\n", "http_malformed" },
		{ HOST "Transfer-Encoding:\r\n", "http_malformed" },
		{ HOST "Transfer-Encoding: \"chunked\"\r\n", "http_malformed" },
		{ HOST "Transfer-Encoding : chunked\r\n", "http_malformed" },
		{ HOST "Transfer_Encoding: chunked\r\n", "http_malformed" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(heads); i++) {
		char s[300];

		snprintf(s, sizeof(s), "POST / HTTP/1.1\r\n%s\r\n", heads[i].fields);
		assert_string_equal(judge(s), heads[i].want);
	}
	assert_string_equal(judge("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"),
			    "http_malformed");
	assert_string_equal(
		judge("POST / HTTP/1.1\r\n" HOST "Content-Length: 9007199254740992\r\n\r\n"),
		"head 70 POST / 1.1 a.example:0 9007199254740992\nmore");
}

/* A flow that need not be HTTP: no name is missed, and bytes that are not HTTP are told apart. */
static void test_loose(void **state)
{
	static const struct {
		const char *stream, *want;
	} streams[] = {
		{ "GET / HTTP/1.1\r\n" HOST "\r\n", "head 35 GET / 1.1 a.example:0 0\nidle" },
		{ "GET / HTTP/1.0\r\n\r\n", "head 18 GET / 1.0 :0 0\nidle" },
		{ "GET / HTTP/1.1\r\nHost:\r\n\r\n", "head 25 GET / 1.1 :0 0\nidle" },
		{ "GET http://b.example:8/ HTTP/1.0\r\n\r\n",
		  "head 36 GET http://b.example:8/ 1.0 b.example:8 0\nidle" },
		{ "GET http://[::1]/ HTTP/1.0\r\n\r\n",
		  "head 30 GET http://[::1]/ 1.0 addr ::1:0 0\nidle" },
		/* of a second request what it says itself */
		{ "GET / HTTP/1.0\r\n" HOST "\r\nGET / HTTP/1.0\r\n\r\n",
		  "head 35 GET / 1.0 a.example:0 0\nhead 18 GET / 1.0 :0 0\nidle" },
		{ "GET / HTTP/1.0\r\nHost: [::1]:8\r\n\r\nGET / HTTP/1.0\r\n\r\n",
		  "head 33 GET / 1.0 addr ::1:8 0\nhead 18 GET / 1.0 :0 0\nidle" },
		{ "GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n" HOST "\r\n",
		  "head 18 GET / 1.0 :0 0\nhead 35 GET / 1.0 a.example:0 0\nidle" },
		/* the name is seen, wherever it stands */
		{ "GET / HTTP/1.1\r\nUpgrade: x\r\n" HOST "\r\n",
		  "head 47 GET / 1.1 a.example:0 upgrade 0\nidle" },
		{ "GET / HTTP/1.1\r\nConnection: a, upgrade\r\n" HOST "\r\n",
		  "head 59 GET / 1.1 a.example:0 upgrade 0\nidle" },
		{ "GET / HTTP/1.1\r\nHTTP2-Settings: x\r\n" HOST "\r\nGET / HTTP/1.1\r\n" HOST
		  "\r\n",
		  "head 54 GET / 1.1 a.example:0 upgrade 0\nhead 35 GET / 1.1 a.example:0 "
		  "0\nidle" },
		{ "GET / HTTP/1.1\r\nUpgrade: x\r\nHost: u@a.example\r\n\r\n", "http_malformed" },
		{ "GET / HTTP/1.1\r\nConnection: upgrade, host\r\n" HOST "\r\n", "http_malformed" },
		{ "GET / HTTP/1.1\r\n" HOST HOST "\r\n", "host_duplicate" },
		{ "GET / HTTP/1.1\r\nHost:\r\n" HOST "\r\n", "host_duplicate" },
		{ "GET http://b.example/ HTTP/1.1\r\n" HOST "\r\n", "host_mismatch" },
		{ "GET http://b.example/ HTTP/1.1\r\nHost:\r\n\r\n", "host_mismatch" },
		/* HTTP to some */
		{ "GET / HTTP/1.1\r\nHost: a@ipinfo.io\r\n\r\n", "http_malformed" },
		{ "GET / HTTP/1.1\r\nHost: ipinfo%2eio\r\n\r\n", "http_malformed" },
		{ "GET http://a@ipinfo.io/ HTTP/1.1\r\n" HOST "\r\n", "http_malformed" },
		{ "GET / HTTP/1.1\n", "http_malformed" },
		{ "GET / HTTP/1.1\rX", "http_malformed" },
		{ "GET  / HTTP/1.1\r\n", "http_malformed" },
		{ "GET\t/\tHTTP/1.1\r\n", "http_malformed" },
		{ "GET / http/1.1\r\n", "http_malformed" },
		{ "GET /\xe9 HTTP/1.1\r\n", "http_malformed" },
		{ "GET / HTTP/3.0\r\n", "http_malformed" },
		{ " GET / HTTP/1.1\r\n", "http_malformed" },
		{ "HTTP/\n", "http_malformed" },
		{ "\r\nGET / HTTP/1.1\r\n", "http_malformed" },
		{ "\nGET / HTTP/1.1\r\n", "http_malformed" },
		{ "GET / HTTP/1.1\r\nX\r\n", "http_malformed" },
		{ "GET / HTTP/1.1\r\n" HOST "\r\n\r\n",
		  "head 35 GET / 1.1 a.example:0 0\nhttp_malformed" },
		{ "PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nx",
		  "head 63 PUT / 1.1 a.example:0 chunked 0\nhttp_malformed" },
		{ "CONNECT a.example:443 HTTP/1.1\r\n", "http_upgrade" },
		{ "PRI * HTTP/2.0\r\n", "http_upgrade" },
		/* to nobody */
		{ "SSH-2.0-x\r\n", "http_malformed, other" },
		{ "GET /\r\n", "http_malformed, other" },
		{ "\x16\3\1", "http_malformed, other" },
		{ "EHLO a.example\n", "http_malformed, other" },
		{ "GET / HTTP\n", "http_malformed, other" },
		{ "GET / HTTP\1/", "http_malformed, other" },
		{ "GET / HTTP/1.1\r\n" HOST "\r\n\1",
		  "head 35 GET / 1.1 a.example:0 0\nhttp_malformed, other" },
	};

	(void)state;
	loose = true;
	for (size_t i = 0; i < SBX_N_ELEMENTS(streams); i++)
		assert_string_equal(judge(streams[i].stream), streams[i].want);
	loose = false;
}

/* Refused with the byte that shows it, not at the end of the head. */
static void test_earliest_byte(void **state)
{
	static const char *const streams[] = {
		"\x16",
		"\n",
		"\r\n",
		"GET / HTTP/1.1\n",
		"GET / HTTP/1.1\rH",
		"GET / HTTP/2.1\r\n",
		"GET / HTTP/1.1\r\n" HOST "\n",
		"GET / HTTP/1.1\r\n" HOST HOST,
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(streams); i++) {
		size_t n = strlen(streams[i]);
		const char *before = judge_n(streams[i], n - 1, LIMIT);

		assert_string_equal(before, n == 1 ? "idle" : "more");
		judge_n(streams[i], n, LIMIT);
		assert_non_null(strstr(trace.text, i == 7 ? "host_duplicate" : "http_malformed"));
	}
}

static void test_second_request(void **state)
{
	(void)state;
	assert_string_equal(
		judge("GET / HTTP/1.1\r\n" HOST "\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n"),
		"head 35 GET / 1.1 a.example:0 0\nhttp_malformed");
	assert_string_equal(judge("GET / HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.1\r\n\r\n"),
			    "head 35 GET / 1.1 a.example:0 0\nhost_absent");
	assert_string_equal(judge("GET / HTTP/1.1\r\n" HOST "\r\n"
				  "GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n"),
			    "head 35 GET / 1.1 a.example:0 0\nhost_mismatch");
	/* The second request inherits nothing from the first. */
	assert_string_equal(judge("GET http://a.example/ HTTP/1.1\r\n" HOST
				  "Content-Length: 1\r\n\r\nx"
				  "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n"
				  "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n"),
			    "head 70 GET http://a.example/ 1.1 a.example:0 1\nbody 1\n"
			    "head 31 GET / 1.1 addr ::1:0 0\n"
			    "head 35 GET / 1.1 b.example:0 0\nidle");
	assert_string_equal(
		judge("PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nxy"),
		"head 63 PUT / 1.1 a.example:0 chunked 0\nbody 4\nhttp_malformed");
}

static void test_limits(void **state)
{
	static const char s[] = "GET / HTTP/1.1\r\n" HOST "\r\n";
	char text[200], method[SBX_HTTP_METHOD_MAX + 2];
	const size_t n = sizeof(s) - 1;

	(void)state;
	assert_string_equal(judge_n(s, n, n), "head 35 GET / 1.1 a.example:0 0\nidle");
	for (size_t limit = 0; limit < n; limit++)
		assert_string_equal(judge_n(s, n, limit), "oversized");
	/* The limit is per head, and bodies have none. */
	snprintf(text, sizeof(text), "POST / HTTP/1.1\r\n" HOST "Content-Length: 60\r\n\r\n%060d%s",
		 1, s);
	assert_string_equal(judge_n(text, strlen(text), 56),
			    "head 56 POST / 1.1 a.example:0 60\nbody 60\n"
			    "head 35 GET / 1.1 a.example:0 0\nidle");

	for (size_t k = SBX_HTTP_METHOD_MAX; k <= SBX_HTTP_METHOD_MAX + 1; k++) {
		memset(method, 'M', k);
		method[k] = '\0';
		snprintf(text, sizeof(text), "%s / HTTP/1.1\r\n" HOST "\r\n", method);
		assert_int_equal(!strcmp(judge(text), "http_malformed"), k > SBX_HTTP_METHOD_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),       cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_hosts),	       cmocka_unit_test(test_targets),
		cmocka_unit_test(test_fields),	       cmocka_unit_test(test_framing),
		cmocka_unit_test(test_loose),	       cmocka_unit_test(test_earliest_byte),
		cmocka_unit_test(test_second_request), cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests_name("http_head", tests, NULL, NULL);
}
