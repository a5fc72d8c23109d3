/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Going out through an HTTP proxy (network.upstream_proxy): CONNECT name:port, and the proxy
 * resolves the name. The bytes that the sandbox sent so far wait in the up direction until the
 * proxy answers 2xx. Bytes behind the head of its answer are the server's.
 */

#include "broker/tcp/tcp_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/http_answer.h"

struct sbx_tcp_proxy {
	uint8_t out[SBX_HOSTNAME_MAX * 2 + 128]; /* the request */
	size_t n_out, at;
	uint8_t in[SBX_HTTP_CONNECT_ANSWER_MAX]; /* the answer so far, and bytes behind it */
	size_t n_in;
};

void sbx_tcp_proxy_free(struct sbx_tcp_proxy *p)
{
	free(p);
}

static bool failed(struct sbx_tcp_flow *f)
{
	return sbx_tcp_refuse_reason(f, SBX_REASON_PROXY_FAILED);
}

static bool connected(struct sbx_tcp_flow *f, size_t n_head)
{
	struct sbx_tcp_proxy *p = f->proxy;
	size_t n = p->n_in - n_head;

	if (n) {
		uint8_t *rest = malloc(n);

		if (!rest)
			return sbx_tcp_refuse_reason(f, SBX_REASON_RESOURCE);
		memcpy(rest, p->in + n_head, n);
		sbx_tcp_relay_preload(&f->down, rest, 0, n);
	}
	sbx_tcp_proxy_free(p);
	f->proxy = NULL;
	return sbx_tcp_relay_start(f);
}

static bool write_request(struct sbx_tcp_flow *f)
{
	struct sbx_tcp_proxy *p = f->proxy;

	while (p->at < p->n_out && f->out.writable) {
		ssize_t n = send(f->out.fd, p->out + p->at, p->n_out - p->at, MSG_NOSIGNAL);

		if (n >= 0)
			p->at += (size_t)n;
		else if (errno == EAGAIN)
			f->out.writable = false;
		else if (errno != EINTR)
			return failed(f);
	}
	return true;
}

bool sbx_tcp_proxy_event(struct sbx_tcp_flow *f)
{
	struct sbx_tcp_proxy *p = f->proxy;
	size_t n, n_head;
	int r, status;

	if (!write_request(f))
		return false;
	while (f->out.readable) {
		switch (sbx_tcp_recv(&f->out, p->in + p->n_in, sizeof(p->in) - p->n_in, &n)) {
		case SBX_PUMP_WAIT:
			return true;
		case SBX_PUMP_RESET:
			return failed(f);
		case SBX_PUMP_ON:
			break;
		}
		if (n == 0)
			return failed(f);
		p->n_in += n;
		r = sbx_http_connect_answer_parse(sbx_span(p->in, p->n_in), &status, &n_head);
		if (r == 0)
			return status / 100 == 2 ? connected(f, n_head) : failed(f);
		if (r != SBX_HTTP_E_MORE || p->n_in == sizeof(p->in))
			return failed(f);
	}
	return true;
}

bool sbx_tcp_proxy_start(struct sbx_tcp_flow *f)
{
	struct sbx_tcp_proxy *p = calloc(1, sizeof(*p));
	char addr[SBX_ADDR_STR_MAX];
	const char *host = f->target.kind == SBX_FLOW_NAME
				   ? f->target.name
				   : sbx_addr_format(&f->target.addr, addr, sizeof(addr));

	if (!p)
		return sbx_tcp_refuse_reason(f, SBX_REASON_RESOURCE);
	f->proxy = p;
	f->state = SBX_TCP_PROXYING;
	if (sbx_http_connect_write(host, f->target.port, p->out, sizeof(p->out), &p->n_out) < 0)
		return failed(f);
	return sbx_tcp_proxy_event(f);
}
