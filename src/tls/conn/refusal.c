/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of refused requests, for HTTP/1 and HTTP/2. */
#include "tls/conn/refusal.h"

#include <string.h>

#include "base/text.h"
#include "http/verdict.h"

const char *sbx_refusal_phrase(int status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 405:
		return "Method Not Allowed";
	case 413:
		return "Content Too Large";
	case 421:
		return "Misdirected Request";
	case 431:
		return "Request Header Fields Too Large";
	case 502:
		return "Bad Gateway";
	case 503:
		return "Service Unavailable";
	default:
		return "Forbidden";
	}
}

/* The next step for people, of refusals that are the same for every entry. */
static const char *next_step(enum sbx_reason reason, int status)
{
	switch (reason) {
	case SBX_REASON_HTTP_MALFORMED:
		return "servers read such a request in more than one way, so send it as RFC 9112 "
		       "or 9113 says; for a client that cannot, set passthrough: true";
	case SBX_REASON_HOST_ABSENT:
	case SBX_REASON_HOST_DUPLICATE:
		return "send one Host, with the name of the server";
	case SBX_REASON_HOST_MISMATCH:
		return "open a connection of its own for the other host, which needs an entry in "
		       "network.allow";
	case SBX_REASON_HTTP_UPGRADE:
		return "send an HTTP/1.1 request; HTTP/2 is agreed on in the TLS handshake";
	case SBX_REASON_OVERSIZED:
		return status == 413 ? "send fewer placeholders" :
				       "send fewer or shorter fields, such as cookies";
	case SBX_REASON_REQUEST_SIZE:
		return "to allow it, raise max_request_bytes";
	case SBX_REASON_UPSTREAM_FAILED:
		return "ask again later; if it fails again, try the server from outside the "
		       "sandbox";
	default:
		return "ask again later";
	}
}

struct sbx_http_verdict sbx_refusal_verdict(const struct sbx_conn *c, enum sbx_reason reason,
					    int status, const char *cause)
{
	struct sbx_http_verdict v;

	/* Long names are cut, so that the next step fits. */
	sbx_http_refuse(&v, reason, status,
			"a request to %.100s was not carried: %.200s; %s (entry '%.*s')", c->name,
			cause, next_step(reason, status), SBX_HTTP_SPAN_ARGS(c->entry->text));
	return v;
}

size_t sbx_refusal_body(const struct sbx_http_verdict *v, char *out)
{
	sbx_text_cut(out, SBX_REFUSAL_MAX, "sbx: %s\n",
		     v->text[0] ? v->text : sbx_reason_help(v->reason));
	return strlen(out);
}
