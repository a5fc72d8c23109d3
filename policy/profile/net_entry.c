/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Entries of the network lists. The text is parsed from its end: the protocol after the last slash,
 * the ports after the colon; the rest is a cidr or a name. Every refusal says what to write
 * instead, because most refused entries are a URL, an address or a too wide wildcard.
 *
 * A wildcard to allow must not admit names of other owners: `*.github.io` and `*.co.uk` admit
 * everybody who registers there. So the public and the private part of the Public Suffix List are
 * refused as bases. So are names directly above suffixes (`*.compute.amazonaws.com`) and unlisted
 * top-level names, except reserved ones, below which nobody can register.
 */

#include "policy/profile/net_entry.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <idn2.h>
#include <libpsl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hostname.h"
#include "base/text.h"
#include "policy/forms/units.h"

/* The list that libpsl was built with; no file is read. */
#define PSL_ANY_RULE (PSL_TYPE_ICANN | PSL_TYPE_PRIVATE)

/* Reserved for private use, so no public registration happens below: RFC 6761 (test, example,
 * invalid), RFC 6762 (local), RFC 8375 (home.arpa), ICANN's resolution of 2024-07-29 (internal). */
static const char *const reserved[] = { "test",	 "example",   "invalid",
					"local", "home.arpa", "internal" };

static bool is_reserved(const char *host)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(reserved); i++) {
		if (strcmp(host, reserved[i]) == 0)
			return true;
	}
	return false;
}

static int bad(struct sbx_err *err, const char *pattern, const char *what)
{
	sbx_err_set(err, "'%s': %s", pattern, what);
	return SBX_PROFILE_E_INVALID;
}

/* --- names --- */

/* Do names below @host belong to other owners, who register them? libpsl also says so of a name
 * with a rule "*.name". */
static bool is_public_suffix(const char *host)
{
	const psl_ctx_t *psl = psl_builtin();

	if (is_reserved(host))
		return false;
	/* The implicit rule "*" makes every unlisted single label a suffix. For a libpsl that was
	 * built without the list, no name is safe. */
	return !psl || !strchr(host, '.') || psl_is_public_suffix2(psl, host, PSL_ANY_RULE);
}

static bool is_ascii(const char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s >= 0x80)
			return false;
	}
	return true;
}

/* Write the normalised ASCII form of @name to @out (SBX_HOSTNAME_MAX + 1 bytes). */
static int to_ascii(const char *pattern, const char *name, char *out, struct sbx_err *err)
{
	char *ascii = NULL;
	int r;

	if (is_ascii(name)) {
		r = sbx_hostname_normalise(name, strlen(name), out);
	} else {
		r = idn2_to_ascii_8z(name, &ascii, IDN2_NONTRANSITIONAL);
		if (r == IDN2_MALLOC)
			return -ENOMEM;
		if (r != IDN2_OK) {
			sbx_err_set(err, "'%s': not an internationalised name (%s)", pattern,
				    idn2_strerror_name(r));
			return SBX_PROFILE_E_INVALID;
		}
		r = sbx_hostname_normalise(ascii, strlen(ascii), out);
		idn2_free(ascii);
	}
	if (r == SBX_HOSTNAME_E_ADDRESS)
		return bad(err, pattern,
			   "an address, not a name; write it as a cidr, for example 'cidr: "
			   "192.0.2.1' or '192.0.2.0/24'");
	if (r != 0)
		return bad(err, pattern, sbx_hostname_strerror(r));
	return 0;
}

/* RFC 6761 section 6.3: this name and all names below it are loopback. */
static bool is_localhost(const char *host)
{
	size_t n = strlen(host), n_name = strlen("localhost");

	return n >= n_name && strcmp(host + n - n_name, "localhost") == 0 &&
	       (n == n_name || host[n - n_name - 1] == '.');
}

static int parse_host(const char *pattern, const char *text, bool deny, struct sbx_net_entry *e,
		      struct sbx_err *err)
{
	char host[SBX_HOSTNAME_MAX + 1];
	int r;

	if (strcmp(text, "*") == 0)
		return bad(err, pattern,
			   deny ? "every name; to refuse all, leave it to `default: deny`"
				: "every name; to allow all, set network.mode: full or "
				  "network.default: allow");
	e->wildcard = strncmp(text, "*.", 2) == 0;
	if (e->wildcard)
		text += 2;
	if (strchr(text, '*'))
		return bad(err, pattern,
			   "an asterisk stands only for whole labels at the front: "
			   "'*.example.org'");
	r = to_ascii(pattern, text, host, err);
	if (r != 0)
		return r;
	if (!deny && is_localhost(host))
		return bad(err, pattern,
			   "inside, it is the sandbox's own loopback, and no entry leads to this "
			   "host's: run the server in "
			   "the sandbox, or let it listen on an address of the network that the "
			   "system policy admits");
	if (e->wildcard && !deny && is_public_suffix(host))
		return bad(err, pattern,
			   "anyone can register names there (a public suffix); name the hosts, or "
			   "a domain of one owner");
	e->host = strdup(host);
	return e->host ? 0 : -ENOMEM;
}

/* --- addresses --- */

static struct sbx_addr masked(const struct sbx_addr *a, unsigned prefix, bool ones)
{
	unsigned n = a->family == 4 ? 4 : 16;
	struct sbx_addr out = *a;

	for (unsigned i = 0; i < n; i++) {
		unsigned kept = prefix > i * 8 ? prefix - i * 8 : 0;
		uint8_t mask = kept >= 8 ? 0xff : (uint8_t)(0xff00 >> kept);

		out.b[i] = ones ? (uint8_t)(a->b[i] | ~mask) : (uint8_t)(a->b[i] & mask);
	}
	return out;
}

/* A range whose addresses are all refused, whatever an entry says, would allow nothing. */
int sbx_net_entry_check_reachable(const char *pattern, const struct sbx_net_entry *e,
				  struct sbx_err *err)
{
	const struct sbx_cidr *c = &e->cidr;
	struct sbx_addr last = masked(&c->addr, c->prefix, true);
	enum sbx_addr_class class = sbx_addr_class(&c->addr);
	struct sbx_cidr synthetic = c->addr.family == 4 ? sbx_synthetic4 : sbx_synthetic6;

	if (c->prefix >= synthetic.prefix && sbx_cidr_contains(&synthetic, &c->addr))
		return bad(err, pattern,
			   "the range that sandboxes' own names are mapped to; nothing outside can "
			   "be reached there");
	if (class == SBX_ADDR_PUBLIC || class == SBX_ADDR_PRIVATE || class == SBX_ADDR_LINK_LOCAL ||
	    sbx_addr_class(&last) != class)
		return 0;
	sbx_err_set(err, "'%s': %s addresses are never reached from a sandbox", pattern,
		    sbx_addr_class_str(class));
	return SBX_PROFILE_E_INVALID;
}

static int parse_cidr(const char *pattern, char *text, bool deny, struct sbx_net_entry *e,
		      struct sbx_err *err)
{
	char *slash = strchr(text, '/'), addr[SBX_ADDR_STR_MAX];
	uint64_t prefix;
	int r;

	if (slash)
		*slash++ = '\0';
	r = sbx_addr_parse(text, &e->cidr.addr);
	if (r < 0)
		return bad(err, pattern,
			   slash ? "not an address before the '/'; a name is written "
				   "without path or scheme"
				 : "not an IPv4 or IPv6 address");
	prefix = e->cidr.addr.family == 4 ? 32 : 128;
	if (slash &&
	    (sbx_count_parse(slash, &prefix) < 0 || prefix > (e->cidr.addr.family == 4 ? 32 : 128)))
		return bad(err, pattern,
			   "the prefix length is 0 to 32 for IPv4, 0 to 128 for IPv6");
	e->cidr.prefix = (uint8_t)prefix;
	struct sbx_addr network = masked(&e->cidr.addr, e->cidr.prefix, false);
	if (!sbx_addr_equal(&network, &e->cidr.addr)) {
		sbx_err_set(err, "'%s': bits are set behind the prefix (did you mean '%s/%u'?)",
			    pattern, sbx_addr_format(&network, addr, sizeof(addr)),
			    (unsigned)prefix);
		return SBX_PROFILE_E_INVALID;
	}
	struct sbx_addr unmapped = sbx_addr_unmap(&network);
	if (unmapped.family != network.family)
		return bad(err, pattern, "an IPv4 address in the form of IPv6; write it as IPv4");
	e->is_cidr = true;
	return deny ? 0 : sbx_net_entry_check_reachable(pattern, e, err);
}

/* --- ports and protocol --- */

static int parse_port(const char *s, uint16_t *ret_port)
{
	uint64_t v;

	if (sbx_count_parse(s, &v) < 0 || v < 1 || v > UINT16_MAX)
		return -EINVAL;
	*ret_port = (uint16_t)v;
	return 0;
}

static int parse_ports(const char *pattern, char *text, struct sbx_net_entry *e,
		       struct sbx_err *err)
{
	char *next;

	if (strcmp(text, "*") == 0) {
		e->ports[0] = (struct sbx_port_range){ 1, UINT16_MAX };
		e->n_ports = 1;
		return 0;
	}
	for (; text; text = next) {
		struct sbx_port_range *p = &e->ports[e->n_ports];
		char *dash;

		next = strchr(text, ',');
		if (next)
			*next++ = '\0';
		if (e->n_ports == SBX_PORTS_MAX)
			return bad(err, pattern, "at most 16 ports or ranges in one entry");
		dash = strchr(text, '-');
		if (dash)
			*dash++ = '\0';
		if (parse_port(text, &p->first) < 0 || parse_port(dash ? dash : text, &p->last) < 0)
			return bad(err, pattern,
				   "a port is a number from 1 to 65535, a range 1000-2000, several "
				   "443,8443");
		if (p->first > p->last)
			return bad(err, pattern, "the first port of the range is above its last");
		e->n_ports++;
	}
	return 0;
}

/* Cut "/tcp" or "/udp" off the end of @text. */
static int cut_proto(const char *pattern, char *text, struct sbx_net_entry *e, struct sbx_err *err)
{
	char *slash = strrchr(text, '/');

	if (!slash || isdigit((unsigned char)slash[1]))
		return 0;
	if (strcmp(slash, "/udp") == 0)
		e->proto = SBX_PROTO_UDP;
	else if (strcmp(slash, "/tcp") == 0)
		e->proto = SBX_PROTO_TCP;
	else if (strstr(text, "://"))
		return bad(err, pattern, "a URL; write only the host's name");
	else
		return bad(err, pattern, "behind the '/' stands tcp or udp; names have no path");
	e->proto_set = true;
	*slash = '\0';
	return 0;
}

/* Split @text into target and ports, in place. *ret_bracketed: the target was in brackets. */
static int split(const char *pattern, char *text, char **ret_target, char **ret_ports,
		 bool *ret_bracketed, struct sbx_err *err)
{
	char *colon = strchr(text, ':');

	*ret_target = text;
	*ret_ports = NULL;
	*ret_bracketed = *text == '[';
	if (*ret_bracketed) {
		char *end = strchr(text, ']');

		if (!end || (end[1] && end[1] != ':'))
			return bad(err, pattern,
				   "brackets hold the whole address or cidr: "
				   "'[2001:db8::/32]:443'");
		*ret_target = text + 1;
		*end = '\0';
		if (end[1])
			*ret_ports = end + 2;
	} else if (colon && !strchr(colon + 1, ':')) {
		*colon = '\0';
		*ret_ports = colon + 1;
	}
	return 0;
}

/* Write the canonical text of a checked entry. */
static int set_text(struct sbx_net_entry *e)
{
	char target[SBX_HOSTNAME_MAX + 3], ports[SBX_PORTS_STR_MAX];
	const char *proto = !e->proto_set ? "" : e->proto == SBX_PROTO_UDP ? "/udp" : "/tcp";
	bool brackets = e->is_cidr && e->cidr.addr.family == 6 && e->n_ports > 0;
	size_t n;

	sbx_net_entry_target(e, target, sizeof(target));
	sbx_net_entry_ports(e, ports, sizeof(ports));
	n = strlen(target) + strlen(ports) + 16;
	e->text = malloc(n);
	if (!e->text)
		return -ENOMEM;
	sbx_text_fit(e->text, n, "%s%s%s%s%s%s", brackets ? "[" : "", target, brackets ? "]" : "",
		     *ports ? ":" : "", ports, proto);
	return 0;
}

static int parse_target(const char *pattern, char *target, bool bracketed,
			enum sbx_pattern_form form, bool deny, struct sbx_net_entry *e,
			struct sbx_err *err)
{
	struct sbx_addr addr;
	bool literal = bracketed || strchr(target, '/') || strchr(target, ':') ||
		       sbx_addr_parse(target, &addr) == 0;

	if (!*target)
		return bad(err, pattern, "no name and no address");
	if (form == SBX_PATTERN_HOST && literal)
		return bad(err, pattern,
			   "host takes a name; write an address or network as cidr: and ports "
			   "under ports:");
	if (form == SBX_PATTERN_CIDR || literal)
		return parse_cidr(pattern, target, deny, e, err);
	return parse_host(pattern, target, deny, e, err);
}

int sbx_net_entry_parse(const char *pattern, enum sbx_pattern_form form, bool deny,
			struct sbx_net_entry *ret_entry, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_net_entry_fini) struct sbx_net_entry e = { .proto = SBX_PROTO_TCP };
	char text[SBX_PATTERN_MAX + 1], *target, *ports;
	size_t n = strlen(pattern);
	bool bracketed;
	int r;

	if (n > SBX_PATTERN_MAX) {
		sbx_err_set(err, "an entry longer than %d bytes", SBX_PATTERN_MAX);
		return SBX_PROFILE_E_INVALID;
	}
	memcpy(text, pattern, n + 1);
	r = cut_proto(pattern, text, &e, err);
	if (r == 0)
		r = split(pattern, text, &target, &ports, &bracketed, err);
	if (r == 0 && ports)
		r = parse_ports(pattern, ports, &e, err);
	if (r == 0)
		r = parse_target(pattern, target, bracketed, form, deny, &e, err);
	if (r == 0)
		r = set_text(&e);
	if (r != 0)
		return r;
	*ret_entry = e;
	e.text = e.host = NULL;
	return 0;
}

void sbx_net_entry_fini(struct sbx_net_entry *e)
{
	free(e->text);
	free(e->host);
	free(e->file);
	sbx_str_list_fini(&e->methods);
	sbx_str_list_fini(&e->paths);
	sbx_str_list_fini(&e->headers);
	free(e->cert);
	free(e->key);
	*e = (struct sbx_net_entry){ 0 };
}

static int copy_string(const char *from, char **ret)
{
	*ret = from ? strdup(from) : NULL;
	return from && !*ret ? -ENOMEM : 0;
}

int sbx_net_entry_copy_for(const struct sbx_net_entry *from, const struct sbx_net_entry *host,
			   struct sbx_net_entry *ret_copy)
{
	struct sbx_net_entry *e = ret_copy, ports = *ret_copy;

	*e = *from;
	e->text = e->host = e->cert = e->key = e->file = NULL;
	e->methods = e->paths = e->headers = (struct sbx_str_list){ 0 };
	e->wildcard = host->wildcard;
	e->terminate = false;
	e->n_ports = ports.n_ports;
	memcpy(e->ports, ports.ports, sizeof(e->ports));
	if (copy_string(host->host, &e->host) < 0 ||
	    sbx_str_list_copy(&from->methods, &e->methods) < 0 ||
	    sbx_str_list_copy(&from->paths, &e->paths) < 0 ||
	    sbx_str_list_copy(&from->headers, &e->headers) < 0 ||
	    copy_string(from->cert, &e->cert) < 0 || copy_string(from->key, &e->key) < 0 ||
	    copy_string(from->file, &e->file) < 0)
		return -ENOMEM;
	return set_text(e);
}

size_t sbx_net_entry_ranges(const struct sbx_net_entry *e, bool deny,
			    struct sbx_port_range ret_ranges[SBX_PORTS_MAX])
{
	if (e->n_ports > 0) {
		assert(e->n_ports <= SBX_PORTS_MAX);
		memcpy(ret_ranges, e->ports, e->n_ports * sizeof(*ret_ranges));
		return e->n_ports;
	}
	if (deny || e->is_cidr) {
		ret_ranges[0] = (struct sbx_port_range){ 1, UINT16_MAX };
		return 1;
	}
	ret_ranges[0] = (struct sbx_port_range){ 443, 443 };
	ret_ranges[1] = (struct sbx_port_range){ 80, 80 };
	return 2;
}

bool sbx_net_entry_same_names(const struct sbx_net_entry *a, const struct sbx_net_entry *b)
{
	return !a->is_cidr && !b->is_cidr && a->wildcard == b->wildcard &&
	       strcmp(a->host, b->host) == 0;
}

bool sbx_net_entry_covers(const struct sbx_net_entry *a, const struct sbx_net_entry *b)
{
	if (a->is_cidr || b->is_cidr)
		return false;
	if (!a->wildcard || strcmp(a->host, b->host) == 0)
		return sbx_net_entry_same_names(a, b);
	return sbx_hostname_in_domain(b->host, a->host);
}

const char *sbx_net_entry_ports(const struct sbx_net_entry *e, char *buf, size_t n_buf)
{
	size_t pos = 0;

	assert(n_buf >= SBX_PORTS_STR_MAX);
	buf[0] = '\0';
	for (size_t i = 0; i < e->n_ports; i++) {
		const struct sbx_port_range *p = &e->ports[i];

		pos += (size_t)snprintf(buf + pos, n_buf - pos, "%s%u", i ? "," : "", p->first);
		if (p->last != p->first)
			pos += (size_t)snprintf(buf + pos, n_buf - pos, "-%u", p->last);
	}
	return buf;
}

const char *sbx_net_entry_target(const struct sbx_net_entry *e, char *buf, size_t n_buf)
{
	char addr[SBX_ADDR_STR_MAX];
	unsigned full = e->cidr.addr.family == 4 ? 32 : 128;

	if (!e->is_cidr)
		sbx_text_fit(buf, n_buf, "%s%s", e->wildcard ? "*." : "", e->host);
	else if (e->cidr.prefix == full)
		sbx_text_fit(buf, n_buf, "%s", sbx_addr_format(&e->cidr.addr, addr, sizeof(addr)));
	else
		sbx_text_fit(buf, n_buf, "%s/%u",
			     sbx_addr_format(&e->cidr.addr, addr, sizeof(addr)), e->cidr.prefix);
	return buf;
}

int sbx_net_list_append(struct sbx_net_list *list, struct sbx_net_entry *e)
{
	/* Room for 8, doubled whenever it is full: the capacity is a power of two, so it need not
	 * be stored. */
	if (list->n == 0 || (list->n >= 8 && (list->n & (list->n - 1)) == 0)) {
		size_t room = list->n ? list->n * 2 : 8;
		struct sbx_net_entry *v = realloc(list->v, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		list->v = v;
	}
	list->v[list->n++] = *e;
	*e = (struct sbx_net_entry){ 0 };
	return 0;
}

void sbx_net_list_fini(struct sbx_net_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		sbx_net_entry_fini(&list->v[i]);
	free(list->v);
	list->v = NULL;
	list->n = 0;
}
