/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_ADDR_H
#define SBX_BASE_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* An IPv4 or IPv6 address, without port or scope. */
struct sbx_addr {
	uint8_t family; /* 4, 6, or 0: none */
	uint8_t b[16];  /* network byte order; 4 or 16 bytes used, the rest zero */
};

#define SBX_ADDR_STR_MAX 48 /* INET6_ADDRSTRLEN and a few more */

struct sbx_cidr {
	struct sbx_addr addr; /* host bits zero */
	uint8_t prefix;       /* 0..32 or 0..128 */
};

/*
 * The class of an address, which decides whether the broker may dial it. Addresses are untrusted,
 * and only SBX_ADDR_PUBLIC is for everybody. If an address embeds an IPv4 one (::ffff:0:0/96,
 * ::/96, 64:ff9b::/96, 64:ff9b:1::/48, 2002::/16, 2001::/32 Teredo: both the server and the
 * obfuscated client), the worse class of the two counts. Documentation ranges (RFC 5737, RFC 3849)
 * count as public here.
 */
enum sbx_addr_class {
	/* 0.0.0.0/8 and :: (dialling them reaches this host!), and whatever cannot be judged:
	 * 240/4, 192.88.99/24, family 0, ::/96, 2001::/23 but Teredo, IPv6 outside 2000::/3 */
	SBX_ADDR_UNSPECIFIED = 0,
	SBX_ADDR_LOOPBACK,        /* 127/8, ::1 */
	SBX_ADDR_LINK_LOCAL,      /* 169.254/16, fe80::/10, fec0::/10 */
	SBX_ADDR_PRIVATE,         /* RFC 1918, 100.64/10, fc00::/7, 198.18/15, 192.0.0/24 */
	SBX_ADDR_MULTICAST,       /* 224/4, ff00::/8 */
	SBX_ADDR_BROADCAST,       /* 255.255.255.255 */
	SBX_ADDR_METADATA,        /* metadata services of clouds; worse than every other class */
	SBX_ADDR_PUBLIC,
	SBX_ADDR_N_CLASSES,
};

enum sbx_addr_class sbx_addr_class(const struct sbx_addr *a);

/* The IPv4 addresses that an IPv6 address embeds (see enum sbx_addr_class): a packet to the IPv6
 * address may end there. A rule that refuses an IPv4 address refuses addresses that embed it.
 * Returns how many were written; 0 for IPv4. In 64:ff9b:1::/48 there is one for each length of
 * prefix that RFC 6052 has, except those in 0/8. */
#define SBX_ADDR_EMBEDDED_MAX 4
size_t sbx_addr_embedded(const struct sbx_addr *a, struct sbx_addr ret_v4[SBX_ADDR_EMBEDDED_MAX]);

const char *sbx_addr_class_str(enum sbx_addr_class c);

/* The ranges that sbx_addr_class() uses, as networks for a packet filter: the first one that
 * holds an address gives its class, or a worse one by the address that it embeds. */
enum sbx_addr_embedding {
	SBX_ADDR_EMBEDS_NONE = 0,
	/* the IPv4 address is bytes 2 to 5: a network of its own for each IPv4 one */
	SBX_ADDR_EMBEDS_AT_2,
	SBX_ADDR_EMBEDS_AT_12, /* bytes 12 to 15 */
	SBX_ADDR_EMBEDS_NAT64, /* in one of several places */
	SBX_ADDR_EMBEDS_TEREDO, /* two of them, one inverted */
};
struct sbx_addr_range {
	struct sbx_cidr cidr;
	enum sbx_addr_class class; /* of the range itself */
	enum sbx_addr_embedding embeds;
};
/* @i from 0 until false: IPv4, then IPv6; an IPv4 address in none of them is public. */
bool sbx_addr_range_at(size_t i, struct sbx_addr_range *ret_range);

/* Parse "192.0.2.1" or "2001:db8::1" (inet_pton forms: no octal, no short forms). 0 or -EINVAL. */
int sbx_addr_parse(const char *s, struct sbx_addr *ret_addr);
/* Parse "addr" or "addr/len". 0, or -EINVAL (also when host bits are set). */
int sbx_cidr_parse(const char *s, struct sbx_cidr *ret_cidr);
/* RFC 5952 text, "" for family 0. Returns @buf. */
const char *sbx_addr_format(const struct sbx_addr *a, char *buf, size_t n_buf);
bool sbx_addr_equal(const struct sbx_addr *a, const struct sbx_addr *b);
/* The families must be the same: ::ffff:1.2.3.4 is not in 1.2.3.0/24 (callers unmap first). */
bool sbx_cidr_contains(const struct sbx_cidr *c, const struct sbx_addr *a);
/* ::ffff:a.b.c.d becomes a.b.c.d; anything else is copied. */
struct sbx_addr sbx_addr_unmap(const struct sbx_addr *a);

/* From a socket address; a v4-mapped address is unmapped. 0 or -EAFNOSUPPORT. */
int sbx_addr_from_sockaddr(const struct sockaddr *sa, socklen_t n, struct sbx_addr *ret_addr,
			   uint16_t *ret_port);
/* To a socket address. Returns its length; 0 for family 0. */
socklen_t sbx_addr_to_sockaddr(const struct sbx_addr *a, uint16_t port,
			       struct sockaddr_storage *ret_sa);

/* The ranges of synthetic addresses, and the sandbox's own addresses. */
extern const struct sbx_cidr sbx_synthetic4; /* 198.18.0.0/15 */
extern const struct sbx_cidr sbx_synthetic6; /* fd00:5b:1::/48 */
extern const struct sbx_addr sbx_self4;      /* 100.64.0.1 */
extern const struct sbx_addr sbx_self6;      /* fd00:5b::1 */

#endif
