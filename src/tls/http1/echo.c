/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The echo of the self-test: stands for a server, before the command is released.
 *
 * It gets the rewritten request. If the probe's header has the value of a secret of the self-test's
 * name, the answer is 200 with that value in a header, which goes through the same replacement as
 * every server's response. So the probe proves both ways. The secret is one that was
 * made for the self-test: no real value is ever sent here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/probe.h"
#include "tls/http1/http1.h"
#include "wire/http_field.h"

static bool is_value(const struct sbx_conn *c, struct sbx_span v)
{
	const struct sbx_http_rules *rules = &c->ctx->rules;

	for (size_t i = 0; i < rules->n_secrets; i++) {
		const struct sbx_http_secret *s = &rules->secrets[i];

		if (s->hosts.n == 1 && sbx_http_host_matches(s->hosts.v[0], c->name) &&
		    s->value.n == v.n && memcmp(s->value.p, v.p, v.n) == 0)
			return true;
	}
	return false;
}

static struct sbx_span probe_header(const struct sbx_http_request *r)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (sbx_http_equal(r->headers[i].name, SBX_ECHO_HEADER))
			return r->headers[i].value;
	return sbx_span("", 0);
}

enum sbx_http1_step sbx_http1_echo(struct sbx_conn *c, const struct sbx_http_request *r)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	struct sbx_span value = probe_header(r);
	char *swapped = NULL, reply[512];
	size_t n = 0;
	int length;

	if (!is_value(c, value) || !h->reply_swap ||
	    sbx_swap_text(h->reply_swap, value, &swapped, &n) < 0 || !swapped)
		return sbx_http1_fail(c, SBX_REASON_SELFTEST, 403,
				      "the echo did not get the value of the self-test's secret");
	length = snprintf(reply, sizeof(reply),
			  "HTTP/1.1 200 OK\r\n" SBX_ECHO_HEADER ": %.*s\r\n"
			  "Content-Length: 0\r\nConnection: close\r\n\r\n", (int)n, swapped);
	free(swapped);
	if (length >= (int)sizeof(reply) ||
	    sbx_side_write(&c->client, sbx_span(reply, (size_t)length)) != SBX_IO_ON)
		return sbx_http1_abort(c);
	sbx_conn_linger(c);
	return SBX_HTTP1_GONE;
}
