/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ruleset as nft(8) text: what --dry-run and receipts show and what `nft -f` loads. Written in
 * the form in which nft lists rules, so that a golden file can be held against `nft list ruleset`.
 */
#include "sys/nft_form.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

static const char *proto_word(enum sbx_proto proto)
{
	return proto == SBX_PROTO_TCP ? "tcp" : "udp";
}

static void print_daddr(FILE *f, const struct sbx_nft_item *i)
{
	const struct sbx_cidr *c = &i->u.cidr;
	bool v4 = c->addr.family == 4;
	char buf[SBX_ADDR_STR_MAX];

	if (c->prefix == 0) {
		fprintf(f, "meta nfproto %sipv%c", i->negate ? "!= " : "", v4 ? '4' : '6');
		return;
	}
	fprintf(f, "%s daddr %s%s", v4 ? "ip" : "ip6", i->negate ? "!= " : "",
		sbx_addr_format(&c->addr, buf, sizeof(buf)));
	if (c->prefix != (v4 ? 32 : 128))
		fprintf(f, "/%u", c->prefix);
}

static void print_dport(FILE *f, const struct sbx_nft_item *i)
{
	fprintf(f, "%s dport %u", proto_word(i->u.port.proto), i->u.port.first);
	if (i->u.port.last != i->u.port.first)
		fprintf(f, "-%u", i->u.port.last);
}

static void print_item(FILE *f, const struct sbx_nft_item *i)
{
	switch (i->kind) {
	case SBX_NFT_IIFNAME:
		fprintf(f, "iifname %s\"%s\"", i->negate ? "!= " : "", i->u.name);
		return;
	case SBX_NFT_DADDR:
		print_daddr(f, i);
		return;
	case SBX_NFT_L4PROTO:
		fprintf(f, "meta l4proto %s", proto_word(i->u.port.proto));
		return;
	case SBX_NFT_DPORT:
		print_dport(f, i);
		return;
	case SBX_NFT_TPROXY:
		fprintf(f, "tproxy %s to :%u", i->u.tproxy.family == 4 ? "ip" : "ip6",
			i->u.tproxy.port);
		return;
	case SBX_NFT_LOG:
		fprintf(f, "log group %u snaplen %u", i->u.log.group, (unsigned)i->u.log.snaplen);
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
	case SBX_N_NFT_ITEM_KINDS:
		break;
	}
	assert(!"an item kind without text");
}

static void print_chain(FILE *f, const struct sbx_nft_chain *c)
{
	fprintf(f, "\tchain %s {\n\t\ttype filter hook %s priority %s; policy %s;\n", c->name,
		c->hook_name, c->priority_name, c->policy_drop ? "drop" : "accept");
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
	for (size_t i = 0; i < rs->n_chains; i++) {
		if (i)
			fputc('\n', f);
		print_chain(f, &rs->chains[i]);
	}
	fputs("}\n", f);
	failed = ferror(f);
	if (fclose(f) != 0 || failed)
		return NULL;
	return sbx_steal_ptr(&text);
}
