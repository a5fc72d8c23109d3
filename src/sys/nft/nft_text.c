/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ruleset as nft(8) text, which --dry-run and receipts show and `nft -f` loads. It has the form
 * in which nft lists rules, so that a golden file can be compared with `nft list ruleset`.
 */
#include "sys/nft/nft.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "sys/nft/nft_form.h"

static const char *proto_word(enum sbx_proto proto)
{
	return proto == SBX_PROTO_TCP ? "tcp" : "udp";
}

static const char *ip_word(uint8_t family)
{
	return family == 4 ? "ip" : "ip6";
}

static void print_cidr(FILE *f, const struct sbx_cidr *c)
{
	char buf[SBX_ADDR_STR_MAX];

	fputs(sbx_addr_format(&c->addr, buf, sizeof(buf)), f);
	if (c->prefix != (c->addr.family == 4 ? 32 : 128))
		fprintf(f, "/%u", c->prefix);
}

static void print_daddr(FILE *f, const struct sbx_nft_item *i)
{
	const struct sbx_cidr *c = &i->u.cidr;

	if (c->prefix == 0) {
		fprintf(f, "meta nfproto %sipv%u", i->negate ? "!= " : "", c->addr.family);
		return;
	}
	fprintf(f, "%s daddr %s", ip_word(c->addr.family), i->negate ? "!= " : "");
	print_cidr(f, c);
}

static void print_port(FILE *f, const char *which, const struct sbx_nft_item *i)
{
	fprintf(f, "%s %s %u", proto_word(i->u.port.proto), which, i->u.port.first);
	if (i->u.port.last != i->u.port.first)
		fprintf(f, "-%u", i->u.port.last);
}

static void print_item(FILE *f, const struct sbx_nft_item *i)
{
	switch (i->kind) {
	case SBX_NFT_IIF_LO:
		fprintf(f, "iif %s\"lo\"", i->negate ? "!= " : "");
		return;
	case SBX_NFT_OIF_LO:
		fprintf(f, "oif %s\"lo\"", i->negate ? "!= " : "");
		return;
	case SBX_NFT_DADDR:
		print_daddr(f, i);
		return;
	case SBX_NFT_L4PROTO:
		fprintf(f, "meta l4proto %s", proto_word(i->u.port.proto));
		return;
	case SBX_NFT_DPORT:
		print_port(f, "dport", i);
		return;
	case SBX_NFT_SPORT:
		print_port(f, "sport", i);
		return;
	case SBX_NFT_TCP_OPENED:
		fputs(i->negate ? "tcp flags syn / syn,ack" : "tcp flags != syn / syn,ack", f);
		return;
	case SBX_NFT_DADDR_IN:
		fprintf(f, "%s daddr @%s", ip_word(i->u.set.family), i->u.set.name);
		return;
	case SBX_NFT_PIN_IN:
		fprintf(f, "%s daddr . meta l4proto . th dport @%s", ip_word(i->u.set.family),
			i->u.set.name);
		return;
	case SBX_NFT_IP6_ROUTED:
		/* ipv6-route; a host may have no /etc/protocols to look that up in */
		fputs("ip6 nexthdr 43", f);
		return;
	case SBX_NFT_CGROUP_VMAP:
		fprintf(f, "socket cgroupv2 level %u vmap @%s", (unsigned)i->u.cgroup.level,
			i->u.cgroup.map);
		return;
	case SBX_NFT_TPROXY:
		fprintf(f, "tproxy %s to :%u", i->u.tproxy.family == 4 ? "ip" : "ip6",
			i->u.tproxy.port);
		return;
	case SBX_NFT_LOG:
		fputs("log", f);
		if (i->u.log.prefix)
			fprintf(f, " prefix \"%s\"", i->u.log.prefix);
		fprintf(f, " group %u snaplen %u", i->u.log.group, (unsigned)i->u.log.snaplen);
		return;
	case SBX_NFT_REJECT_TCP_RESET:
		fputs("reject with tcp reset", f);
		return;
	case SBX_NFT_REJECT_ADMIN:
		fputs("reject with icmpx admin-prohibited", f);
		return;
	case SBX_NFT_ACCEPT:
		fputs("accept", f);
		return;
	case SBX_NFT_DROP:
		fputs("drop", f);
		return;
	case SBX_NFT_GOTO:
		fprintf(f, "goto %s", i->u.name);
		return;
	case SBX_NFT_JUMP:
		fprintf(f, "jump %s", i->u.name);
		return;
	case SBX_NFT_RETURN:
		fputs("return", f);
		return;
	case SBX_N_NFT_ITEM_KINDS:
		break;
	}
	assert(!"an item kind without text");
}

static void print_nets(FILE *f, const struct sbx_nft_set *s)
{
	fprintf(f, "\t\ttype ipv%u_addr\n\t\tflags constant,interval\n", s->family);
	for (size_t i = 0; i < s->n_nets; i++) {
		fputs(i ? ",\n\t\t\t     " : "\t\telements = { ", f);
		print_cidr(f, &s->nets[i]);
	}
	if (s->n_nets)
		fputs(" }\n", f);
}

/* nft(8) names a cgroup only by its path; without a path the element is written as a comment. */
static void print_cgroups(FILE *f, const struct sbx_nft_set *s)
{
	fputs("\t\ttype cgroupsv2 : verdict\n", f);
	if (s->cgroup_path)
		fprintf(f, "\t\telements = { \"%s\" : goto %s }\n", s->cgroup_path, s->chain);
	else
		fprintf(f, "\t\t# elements = { the sandbox's cgroup : goto %s }\n", s->chain);
}

static void print_set(FILE *f, const struct sbx_nft_set *s)
{
	fprintf(f, "\t%s %s {\n", s->kind == SBX_NFT_SET_CGROUPS ? "map" : "set", s->name);
	switch (s->kind) {
	case SBX_NFT_SET_NETS:
		print_nets(f, s);
		break;
	case SBX_NFT_SET_PINS:
		fprintf(f, "\t\ttype ipv%u_addr . inet_proto . inet_service\n\t\tflags timeout\n",
			s->family);
		break;
	case SBX_NFT_SET_CGROUPS:
		print_cgroups(f, s);
		break;
	case SBX_N_NFT_SET_KINDS:
		assert(!"a set kind without text");
	}
	fputs("\t}\n", f);
}

static void print_chain(FILE *f, const struct sbx_nft_chain *c)
{
	fprintf(f, "\tchain %s {\n", c->name);
	if (c->hook_name)
		fprintf(f, "\t\ttype filter hook %s priority %s; policy %s;\n", c->hook_name,
			c->priority_name, c->policy_drop ? "drop" : "accept");
	for (size_t i = 0; i < c->n_rules; i++) {
		const struct sbx_nft_rule *r = &c->rules[i];

		for (size_t k = 0; k < r->n_items; k++) {
			fputs(k ? " " : "\t\t", f);
			print_item(f, &r->items[k]);
		}
		fputc('\n', f);
	}
	fputs("\t}\n", f);
}

char *sbx_nft_ruleset_text(const struct sbx_nft_ruleset *rs)
{
	SBX_AUTO_FREE char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int failed;

	if (!f)
		return NULL;
	fputs("table inet " SBX_NFT_TABLE " {\n", f);
	for (size_t i = 0; i < rs->n_sets; i++) {
		if (i)
			fputc('\n', f);
		print_set(f, &rs->sets[i]);
	}
	for (size_t i = 0; i < rs->n_chains; i++) {
		if (i || rs->n_sets)
			fputc('\n', f);
		print_chain(f, &rs->chains[i]);
	}
	fputs("}\n", f);
	failed = ferror(f);
	if (fclose(f) != 0 || failed)
		return NULL;
	return sbx_steal_ptr(&text);
}
