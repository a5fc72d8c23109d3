/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text form of published ports. It has addresses, and of all names only localhost, which is
 * 127.0.0.1: another name could lead elsewhere between the judgement and the listener, and could
 * have several addresses.
 */

#include "policy/profile/publish.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "policy/profile/profile.h"

#define TEXT_MAX (SBX_ADDR_STR_MAX + 16)

static int bad(struct sbx_err *err, const char *text, const char *why)
{
	sbx_err_set(err, "'%s': %s", text, why);
	return SBX_PROFILE_E_INVALID;
}

/* Split off the address in front, if there is one; its end becomes a NUL. Returns the rest; NULL:
 * malformed. */
static char *split_address(char *s, const char **ret_addr)
{
	char *end, *colon = strchr(s, ':');

	*ret_addr = NULL;
	if (*s == '[') {
		end = strchr(s, ']');
		if (!end || end[1] != ':')
			return NULL;
		*end = '\0';
		*ret_addr = s + 1;
		return end + 2;
	}
	if (strncmp(s, "localhost:", 10) == 0) {
		*ret_addr = "127.0.0.1";
		return s + 10;
	}
	if (!colon || (!memchr(s, '.', (size_t)(colon - s)) && !strchr(colon + 1, ':')))
		return s;
	*colon = '\0';
	*ret_addr = s;
	return colon + 1;
}

int sbx_publish_parse(const char *text, struct sbx_publish *ret_publish, struct sbx_err *err)
{
	struct sbx_publish p = { .addr = { 4, { 127, 0, 0, 1 } } };
	char copy[TEXT_MAX + 1], *rest, *inside;
	const char *addr;

	if (sbx_text_copy(copy, sizeof(copy), text) < 0)
		return bad(err, text, "too long for [ADDR:]PORT[:PORT]");
	rest = split_address(copy, &addr);
	if (!rest ||
	    (addr && (sbx_addr_parse(addr, &p.addr) < 0 || (p.addr.family == 6) != (*copy == '['))))
		return bad(err, text,
			   "write [ADDR:]PORT[:PORT], with an address of this host, one of IPv6 in "
			   "brackets: '8888', '127.0.0.2:8080:80', '[::1]:8080'");
	inside = strchr(rest, ':');
	if (inside)
		*inside++ = '\0';
	p.port = sbx_port_parse(rest);
	if (!p.port && (strcmp(rest, "0") != 0 || !inside))
		return bad(err, text,
			   inside ? "a port is a number from 1 to 65535; the first may be 0: any "
				    "free one" :
				    "a port is a number from 1 to 65535; with 0, any free one, the "
				    "sandbox's must be said: '0:8888'");
	p.inside = inside ? sbx_port_parse(inside) : p.port;
	if (!p.inside)
		return bad(err, text, "the sandbox's port is a number from 1 to 65535");
	*ret_publish = p;
	return 0;
}

const char *sbx_publish_format(const struct sbx_publish *p, char *buf, size_t n_buf)
{
	bool brackets = p->addr.family == 6;
	char addr[SBX_ADDR_STR_MAX];

	sbx_text_fit(buf, n_buf, "%s%s%s:%u", brackets ? "[" : "",
		     sbx_addr_format(&p->addr, addr, sizeof(addr)), brackets ? "]" : "", p->port);
	return buf;
}

/* Not sbx_addr_class(): an address that embeds a loopback address is of that class too, and others
 * may reach it. */
bool sbx_publish_is_loopback(const struct sbx_publish *p)
{
	static const struct sbx_cidr loopback4 = { { 4, { 127 } }, 8 },
				     loopback6 = { { 6, { [15] = 1 } }, 128 };

	return sbx_cidr_contains(&loopback4, &p->addr) || sbx_cidr_contains(&loopback6, &p->addr);
}
