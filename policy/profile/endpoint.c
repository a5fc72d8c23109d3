/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Endpoints in the form of probes, resolvers and the proxy: a host or address, with or without a
 * port. */

#include "policy/profile/endpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "policy/forms/units.h"
#include "policy/profile/profile.h"

#define TEXT_MAX (SBX_HOSTNAME_MAX + 32)

static int bad(struct sbx_err *err, const char *text, const char *why)
{
	sbx_err_set(err, "'%s': %s", text, why);
	return SBX_PROFILE_E_INVALID;
}

static const char bracket_hint[] = "brackets hold an IPv6 address: '[2001:db8::1]:53'";

int sbx_endpoint_parse(const char *text, struct sbx_endpoint *ret_endpoint, struct sbx_err *err)
{
	struct sbx_endpoint e = { .proto = SBX_PROTO_TCP };
	char copy[TEXT_MAX + 1], *host = copy, *port = NULL, *slash;
	uint64_t v;
	int r;

	if (sbx_text_copy(copy, sizeof(copy), text) < 0)
		return bad(err, text, "too long for a name and a port");
	slash = strchr(copy, '/');
	if (slash) {
		*slash++ = '\0';
		if (strcmp(slash, "udp") != 0 && strcmp(slash, "tcp") != 0)
			return bad(err, text, "behind the '/' stands tcp or udp");
		e.proto = *slash == 'u' ? SBX_PROTO_UDP : SBX_PROTO_TCP;
		e.proto_set = true;
	}
	if (*copy == '[') {
		char *end = strchr(copy, ']');

		if (!end || (end[1] && end[1] != ':'))
			return bad(err, text, bracket_hint);
		host = copy + 1;
		*end = '\0';
		port = end[1] ? end + 2 : NULL;
	} else {
		char *colon = strchr(copy, ':');

		/* Two colons and no brackets: an IPv6 address without a port. */
		if (colon && !strchr(colon + 1, ':')) {
			*colon = '\0';
			port = colon + 1;
		}
	}
	if (port && (sbx_count_parse(port, &v) < 0 || v < 1 || v > UINT16_MAX))
		return bad(err, text, "a port is a number from 1 to 65535");
	e.port = port ? (uint16_t)v : 0;
	e.is_addr = sbx_addr_parse(host, &e.addr) == 0;
	if (!e.is_addr && *copy == '[')
		return bad(err, text, bracket_hint);
	r = e.is_addr ? 0 : sbx_hostname_normalise(host, strlen(host), e.host);
	if (r != 0)
		return bad(err, text, sbx_hostname_strerror(r));
	*ret_endpoint = e;
	return 0;
}

const char *sbx_endpoint_format(const struct sbx_endpoint *e, char *buf, size_t n_buf)
{
	bool brackets = e->is_addr && e->addr.family == 6;
	char addr[SBX_ADDR_STR_MAX], port[16] = "";

	if (e->port)
		snprintf(port, sizeof(port), ":%u", e->port);
	sbx_text_fit(buf, n_buf, "%s%s%s%s%s", brackets ? "[" : "",
		     e->is_addr ? sbx_addr_format(&e->addr, addr, sizeof(addr)) : e->host,
		     brackets ? "]" : "", port,
		     !e->proto_set		     ? ""
		     : e->proto == SBX_PROTO_UDP ? "/udp"
						 : "/tcp");
	return buf;
}
