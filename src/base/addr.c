/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Addresses and what they are.
 *
 * sbx_addr_class() is the last judgement before the broker dials. A DNS server of the attacker's
 * choice may have given the address. In IPv4 an address that no row of the table names is public
 * (the table follows IANA's special-purpose registry, RFC 6890). In IPv6 only 2000::/3 is public;
 * the rest is refused unless a row names it. An address that a translator or tunnel would turn into
 * an IPv4 address is judged by that address as well, and the worst class counts.
 */

#include "base/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

const struct sbx_cidr sbx_synthetic4 = { { 4, { 198, 18 } }, 15 };
const struct sbx_cidr sbx_synthetic6 = { { 6, { 0xfd, 0, 0, 0x5b, 0, 1 } }, 48 };
const struct sbx_addr sbx_self4 = { 4, { 100, 64, 0, 1 } };
const struct sbx_addr sbx_self6 = { 6, { 0xfd, 0, 0, 0x5b, [15] = 1 } };

static size_t addr_size(uint8_t family)
{
	return family == 4 ? 4 : family == 6 ? 16 : 0;
}

/* Are the first @bits bits of @a and @b the same? */
static bool prefix_equal(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

/* --- classes --- */

struct class4 {
	uint8_t prefix[4];
	uint8_t bits;
	uint8_t class; /* enum sbx_addr_class */
};

/* The first match wins, so single addresses stand before the ranges that hold them. */
static const struct class4 table4[] = {
	{ { 169, 254, 169, 254 }, 32, SBX_ADDR_METADATA }, /* AWS, Azure, GCP, OpenStack, ... */
	{ { 169, 254, 170, 2 }, 32, SBX_ADDR_METADATA },   /* AWS ECS task credentials */
	{ { 169, 254, 170, 23 }, 32, SBX_ADDR_METADATA },  /* AWS EKS pod credentials */
	{ { 100, 100, 100, 200 }, 32, SBX_ADDR_METADATA }, /* Alibaba */
	{ { 168, 63, 129, 16 }, 32, SBX_ADDR_METADATA },   /* Azure's host agent */
	{ { 192, 0, 0, 192 }, 32, SBX_ADDR_METADATA },	   /* Oracle */
	{ { 0 }, 8, SBX_ADDR_UNSPECIFIED }, /* connecting to 0.0.0.0 reaches this host */
	{ { 127 }, 8, SBX_ADDR_LOOPBACK },
	{ { 169, 254 }, 16, SBX_ADDR_LINK_LOCAL },
	{ { 10 }, 8, SBX_ADDR_PRIVATE },
	{ { 172, 16 }, 12, SBX_ADDR_PRIVATE },
	{ { 192, 168 }, 16, SBX_ADDR_PRIVATE },
	{ { 100, 64 }, 10, SBX_ADDR_PRIVATE },	 /* shared space, RFC 6598; our own 100.64.0.1 */
	{ { 198, 18 }, 15, SBX_ADDR_PRIVATE },	 /* benchmarking, RFC 2544; our synthetic range */
	{ { 192, 0, 0 }, 24, SBX_ADDR_PRIVATE }, /* protocol assignments, RFC 6890 */
	{ { 192, 88, 99 }, 24, SBX_ADDR_UNSPECIFIED }, /* 6to4 relays, withdrawn by RFC 7526 */
	{ { 255, 255, 255, 255 }, 32, SBX_ADDR_BROADCAST },
	{ { 224 }, 4, SBX_ADDR_MULTICAST },
	{ { 240 }, 4, SBX_ADDR_UNSPECIFIED },
};

static enum sbx_addr_class class_v4(const uint8_t b[4])
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(table4); i++) {
		if (prefix_equal(b, table4[i].prefix, table4[i].bits))
			return (enum sbx_addr_class)table4[i].class;
	}
	return SBX_ADDR_PUBLIC;
}

/* The order, from the worst: metadata; the classes that no profile can admit; PRIVATE, which a
 * profile can admit; PUBLIC. */
static enum sbx_addr_class worse(enum sbx_addr_class a, enum sbx_addr_class b)
{
	static const uint8_t rank[SBX_ADDR_N_CLASSES] = {
		[SBX_ADDR_PUBLIC] = 0,	  [SBX_ADDR_PRIVATE] = 1,    [SBX_ADDR_MULTICAST] = 2,
		[SBX_ADDR_BROADCAST] = 3, [SBX_ADDR_LINK_LOCAL] = 4, [SBX_ADDR_UNSPECIFIED] = 5,
		[SBX_ADDR_LOOPBACK] = 6,  [SBX_ADDR_METADATA] = 7,
	};

	return rank[a] >= rank[b] ? a : b;
}

struct class6 {
	uint8_t prefix[16];
	uint8_t bits;
	enum sbx_addr_class class; /* of the range itself */
	enum sbx_addr_embedding embeds;
};

#define EMBEDS_NONE   SBX_ADDR_EMBEDS_NONE
#define EMBEDS_AT_2   SBX_ADDR_EMBEDS_AT_2
#define EMBEDS_AT_12  SBX_ADDR_EMBEDS_AT_12
#define EMBEDS_NAT64  SBX_ADDR_EMBEDS_NAT64
#define EMBEDS_TEREDO SBX_ADDR_EMBEDS_TEREDO

/* First match wins, as in table4. */
static const struct class6 table6[] = {
	/* AWS fd00:ec2::254, AWS EKS pods fd00:ec2::23, GCP fd20:ce::254 */
	{ { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54 }, 128, SBX_ADDR_METADATA, EMBEDS_NONE },
	{ { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x00, 0x23 }, 128, SBX_ADDR_METADATA, EMBEDS_NONE },
	{ { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54 }, 128, SBX_ADDR_METADATA, EMBEDS_NONE },
	{ { 0 }, 128, SBX_ADDR_UNSPECIFIED, EMBEDS_NONE },
	{ { [15] = 1 }, 128, SBX_ADDR_LOOPBACK, EMBEDS_NONE },
	/* IPv4-mapped: the kernel dials the IPv4 address. */
	{ { [10] = 0xff, 0xff }, 96, SBX_ADDR_PUBLIC, EMBEDS_AT_12 },
	/* IPv4-compatible, withdrawn by RFC 4291: never a real destination, whatever it embeds. */
	{ { 0 }, 96, SBX_ADDR_UNSPECIFIED, EMBEDS_AT_12 },
	{ { 0x00, 0x64, 0xff, 0x9b }, 96, SBX_ADDR_PUBLIC, EMBEDS_AT_12 }, /* NAT64, RFC 6052 */
	{ { 0x00, 0x64, 0xff, 0x9b, 0, 1 }, 48, SBX_ADDR_PUBLIC, EMBEDS_NAT64 },
	{ { 0x20, 0x01, 0, 0 }, 32, SBX_ADDR_PUBLIC, EMBEDS_TEREDO },
	{ { 0x20, 0x01, 0, 0 }, 23, SBX_ADDR_UNSPECIFIED, EMBEDS_NONE }, /* assignments, RFC 2928 */
	{ { 0x20, 0x02 }, 16, SBX_ADDR_PUBLIC, EMBEDS_AT_2 },		 /* 6to4, RFC 3056 */
	{ { 0xfe, 0x80 }, 10, SBX_ADDR_LINK_LOCAL, EMBEDS_NONE },
	{ { 0xfe, 0xc0 }, 10, SBX_ADDR_LINK_LOCAL, EMBEDS_NONE },
	{ { 0xfc }, 7, SBX_ADDR_PRIVATE, EMBEDS_NONE },
	{ { 0xff }, 8, SBX_ADDR_MULTICAST, EMBEDS_NONE },
	{ { 0x20 }, 3, SBX_ADDR_PUBLIC, EMBEDS_NONE },
	{ { 0 }, 0, SBX_ADDR_UNSPECIFIED, EMBEDS_NONE }, /* not assigned to anyone yet */
};

static const struct class6 *row_of(const uint8_t b[16])
{
	const struct class6 *row = table6;

	while (!prefix_equal(b, row->prefix, row->bits))
		row++;
	return row;
}

static void add_embedded(struct sbx_addr ret_v4[SBX_ADDR_EMBEDDED_MAX], size_t *n, uint8_t b0,
			 uint8_t b1, uint8_t b2, uint8_t b3)
{
	ret_v4[(*n)++] = (struct sbx_addr){ 4, { b0, b1, b2, b3 } };
}

/*
 * 64:ff9b:1::/48 (RFC 8215) is for translators of the network's own choosing, and the prefix they
 * use may be 48, 56, 64 or 96 bits long: RFC 6052 section 2.2 puts the IPv4 address elsewhere for
 * each (and leaves byte 8 out). We cannot know which, so every reading counts, except those in 0/8:
 * the true reading leaves zeros where the shorter ones look, and no translator forwards to 0/8.
 */
static size_t local_nat64(const uint8_t b[16], struct sbx_addr ret_v4[SBX_ADDR_EMBEDDED_MAX])
{
	size_t n = 0;

	if (b[6])
		add_embedded(ret_v4, &n, b[6], b[7], b[9], b[10]);
	if (b[7])
		add_embedded(ret_v4, &n, b[7], b[9], b[10], b[11]);
	if (b[9])
		add_embedded(ret_v4, &n, b[9], b[10], b[11], b[12]);
	if (b[12])
		add_embedded(ret_v4, &n, b[12], b[13], b[14], b[15]);
	return n;
}

size_t sbx_addr_embedded(const struct sbx_addr *a, struct sbx_addr ret_v4[SBX_ADDR_EMBEDDED_MAX])
{
	const uint8_t *b = a->b;
	size_t n = 0;

	if (a->family != 6)
		return 0;
	switch (row_of(b)->embeds) {
	case EMBEDS_AT_2:
		add_embedded(ret_v4, &n, b[2], b[3], b[4], b[5]);
		break;
	case EMBEDS_AT_12:
		add_embedded(ret_v4, &n, b[12], b[13], b[14], b[15]);
		break;
	case EMBEDS_NAT64:
		return local_nat64(b, ret_v4);
	case EMBEDS_TEREDO: /* RFC 4380 section 4: the server, and the client's address inverted */
		add_embedded(ret_v4, &n, b[4], b[5], b[6], b[7]);
		add_embedded(ret_v4, &n, b[12] ^ 0xff, b[13] ^ 0xff, b[14] ^ 0xff, b[15] ^ 0xff);
		break;
	case EMBEDS_NONE:
		break;
	}
	return n;
}

static enum sbx_addr_class class_v6(const struct sbx_addr *a)
{
	const struct class6 *row = row_of(a->b);
	enum sbx_addr_class c = row->class;
	struct sbx_addr v4[SBX_ADDR_EMBEDDED_MAX];
	size_t n = sbx_addr_embedded(a, v4);

	if (row->embeds == EMBEDS_NAT64 && n == 0)
		return SBX_ADDR_UNSPECIFIED;
	for (size_t i = 0; i < n; i++)
		c = worse(c, class_v4(v4[i].b));
	return c;
}

enum sbx_addr_class sbx_addr_class(const struct sbx_addr *a)
{
	if (a->family == 4)
		return class_v4(a->b);
	if (a->family == 6)
		return class_v6(a);
	return SBX_ADDR_UNSPECIFIED;
}

bool sbx_addr_range_at(size_t i, struct sbx_addr_range *ret_range)
{
	struct sbx_addr_range r = { 0 };

	if (i < SBX_N_ELEMENTS(table4)) {
		r.cidr.addr.family = 4;
		memcpy(r.cidr.addr.b, table4[i].prefix, sizeof(table4[i].prefix));
		r.cidr.prefix = table4[i].bits;
		r.class = (enum sbx_addr_class)table4[i].class;
	} else if (i - SBX_N_ELEMENTS(table4) < SBX_N_ELEMENTS(table6)) {
		const struct class6 *row = &table6[i - SBX_N_ELEMENTS(table4)];

		r.cidr.addr.family = 6;
		memcpy(r.cidr.addr.b, row->prefix, sizeof(row->prefix));
		r.cidr.prefix = row->bits;
		r.class = row->class;
		r.embeds = row->embeds;
	} else {
		return false;
	}
	*ret_range = r;
	return true;
}

const char *sbx_addr_class_str(enum sbx_addr_class c)
{
	static const char *const names[] = {
		[SBX_ADDR_UNSPECIFIED] = "unspecified", [SBX_ADDR_LOOPBACK] = "loopback",
		[SBX_ADDR_LINK_LOCAL] = "link-local",	[SBX_ADDR_PRIVATE] = "private",
		[SBX_ADDR_MULTICAST] = "multicast",	[SBX_ADDR_BROADCAST] = "broadcast",
		[SBX_ADDR_METADATA] = "metadata",	[SBX_ADDR_PUBLIC] = "public",
	};
	_Static_assert(SBX_N_ELEMENTS(names) == SBX_ADDR_N_CLASSES, "a word per class");

	return (unsigned)c < SBX_ADDR_N_CLASSES ? names[c] : "unknown";
}

/* --- text --- */

int sbx_addr_parse(const char *s, struct sbx_addr *ret_addr)
{
	struct sbx_addr a = { 0 };

	if (inet_pton(AF_INET, s, a.b) == 1)
		a.family = 4;
	else if (inet_pton(AF_INET6, s, a.b) == 1)
		a.family = 6;
	else
		return -EINVAL;
	*ret_addr = a;
	return 0;
}

/* "0".."128" without sign, space or leading zero; -1 otherwise. */
static int parse_prefix(const char *s)
{
	int v = 0;

	if (!*s || (s[0] == '0' && s[1]))
		return -1;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -1;
		v = v * 10 + (*s - '0');
		if (v > 128)
			return -1;
	}
	return v;
}

int sbx_cidr_parse(const char *s, struct sbx_cidr *ret_cidr)
{
	const char *slash = strchr(s, '/');
	char text[SBX_ADDR_STR_MAX];
	struct sbx_cidr c = { 0 };
	size_t n = slash ? (size_t)(slash - s) : strlen(s);
	int prefix, bits;

	if (sbx_text_copy_n(text, sizeof(text), s, n) < 0 || sbx_addr_parse(text, &c.addr))
		return -EINVAL;
	bits = 8 * (int)addr_size(c.addr.family);
	prefix = slash ? parse_prefix(slash + 1) : bits;
	if (prefix < 0 || prefix > bits)
		return -EINVAL;
	for (int i = prefix; i < bits; i++) {
		if (c.addr.b[i / 8] & (0x80 >> (i % 8)))
			return -EINVAL;
	}
	c.prefix = (uint8_t)prefix;
	*ret_cidr = c;
	return 0;
}

const char *sbx_addr_format(const struct sbx_addr *a, char *buf, size_t n_buf)
{
	int af = a->family == 4 ? AF_INET : AF_INET6;

	if (n_buf == 0)
		return buf;
	/* glibc's inet_ntop() writes what RFC 5952 asks for: lower case, the longest (then first)
	 * run of at least two zero groups compressed, mixed notation for embedded IPv4. */
	if (!addr_size(a->family) || !inet_ntop(af, a->b, buf, (socklen_t)n_buf))
		buf[0] = '\0';
	return buf;
}

/* --- comparing and converting --- */

bool sbx_addr_equal(const struct sbx_addr *a, const struct sbx_addr *b)
{
	return a->family == b->family && memcmp(a->b, b->b, addr_size(a->family)) == 0;
}

bool sbx_cidr_contains(const struct sbx_cidr *c, const struct sbx_addr *a)
{
	if (!addr_size(a->family) || a->family != c->addr.family)
		return false;
	return prefix_equal(a->b, c->addr.b, c->prefix);
}

struct sbx_addr sbx_addr_unmap(const struct sbx_addr *a)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	struct sbx_addr out = { .family = 4 };

	if (a->family != 6 || memcmp(a->b, mapped, sizeof(mapped)) != 0)
		return *a;
	memcpy(out.b, a->b + 12, 4);
	return out;
}

int sbx_addr_from_sockaddr(const struct sockaddr *sa, socklen_t n, struct sbx_addr *ret_addr,
			   uint16_t *ret_port)
{
	struct sbx_addr a = { 0 };

	/* Copied, because the caller's buffer need not be aligned for the real type. */
	if (n >= sizeof(struct sockaddr_in) && sa->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, sa, sizeof(in));
		a.family = 4;
		memcpy(a.b, &in.sin_addr, 4);
		*ret_port = ntohs(in.sin_port);
	} else if (n >= sizeof(struct sockaddr_in6) && sa->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, sa, sizeof(in6));
		a.family = 6;
		memcpy(a.b, &in6.sin6_addr, 16);
		*ret_port = ntohs(in6.sin6_port);
	} else {
		return -EAFNOSUPPORT;
	}
	*ret_addr = sbx_addr_unmap(&a);
	return 0;
}

socklen_t sbx_addr_to_sockaddr(const struct sbx_addr *a, uint16_t port,
			       struct sockaddr_storage *ret_sa)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memset(ret_sa, 0, sizeof(*ret_sa));
	if (a->family == 4) {
		memcpy(&in.sin_addr, a->b, 4);
		memcpy(ret_sa, &in, sizeof(in));
		return sizeof(in);
	}
	if (a->family == 6) {
		memcpy(&in6.sin6_addr, a->b, 16);
		memcpy(ret_sa, &in6, sizeof(in6));
		return sizeof(in6);
	}
	return 0;
}
