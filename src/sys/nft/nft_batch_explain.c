/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a refused netlink message to a sentence with cause and remedy. The kernel answers with an
 * errno, the refused message and (since 4.12, NETLINK_EXT_ACK) the place of the trouble in it. For
 * a rule that place is the list element of the expression that the kernel does not know.
 */
#include "sys/nft/nft_batch.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

#include "base/cleanup.h"

/* The kernel option for each expression that may be missing. */
static const struct {
	const char *expr, *option, *module;
} needs[] = {
	{ "tproxy", "CONFIG_NFT_TPROXY", "nft_tproxy" },
	{ "log", "CONFIG_NFT_LOG and CONFIG_NETFILTER_NETLINK_LOG", "nft_log nfnetlink_log" },
	{ "reject", "CONFIG_NFT_REJECT_INET", "nft_reject_inet" },
	{ "socket", "CONFIG_NFT_SOCKET and CONFIG_SOCK_CGROUP_DATA", "nft_socket" },
};

static size_t needs_find(const char *expr)
{
	size_t i = 0;

	while (i < SBX_N_ELEMENTS(needs) && strcmp(needs[i].expr, expr) != 0)
		i++;
	return i;
}

/* The name of the expression in the list element at @a, if @offset is in it; else NULL. */
static const char *expr_name_at(const struct nlattr *element, size_t at, uint32_t offset)
{
	const struct nlattr *a;

	if (offset < at || offset >= at + mnl_attr_get_len(element))
		return NULL;
	mnl_attr_for_each_nested(a, element) {
		if (mnl_attr_get_type(a) == NFTA_EXPR_NAME)
			return mnl_attr_get_str(a);
	}
	return NULL;
}

/* The expression of our own rule @nlh that @offset points into; NULL when it is in none. */
static const char *expr_name(const struct nlmsghdr *nlh, uint32_t offset)
{
	const struct nlattr *a, *element;

	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg)) {
		if (mnl_attr_get_type(a) != NFTA_RULE_EXPRESSIONS)
			continue;
		mnl_attr_for_each_nested(element, a) {
			size_t at = (const char *)element - (const char *)nlh;
			const char *name = expr_name_at(element, at, offset);

			if (name)
				return name;
		}
	}
	return NULL;
}

static bool is_unsupported(int error)
{
	return error == EOPNOTSUPP || error == EAFNOSUPPORT || error == EPROTONOSUPPORT ||
	       error == ENOENT;
}

static void explain_rule(const struct nlmsghdr *nlh, const struct sbx_nft_refusal *refusal,
			 struct sbx_err *err)
{
	const char *name = refusal->offset ? expr_name(nlh, refusal->offset) : NULL;
	size_t i = name ? needs_find(name) : SBX_N_ELEMENTS(needs);

	if (is_unsupported(refusal->error) && i < SBX_N_ELEMENTS(needs))
		sbx_err_set(err,
			    "this kernel has no nf_tables %s expression (%s): load it as root "
			    "(modprobe %s) or use a kernel built with it",
			    name, needs[i].option, needs[i].module);
	else if (is_unsupported(refusal->error))
		sbx_err_set(
			err,
			"this kernel lacks an nf_tables expression of the firewall (%s; it needs "
			"CONFIG_NFT_TPROXY, CONFIG_NFT_LOG, CONFIG_NFT_REJECT_INET): load them as "
			"root (modprobe -a nft_tproxy nft_log nft_reject_inet nfnetlink_log)",
			name ? name : strerror(refusal->error));
	else
		sbx_err_set(err, "the kernel refused a rule of the firewall%s%s: %s%s%s",
			    name ? " at expression " : "", name ? name : "",
			    strerror(refusal->error), refusal->reason[0] ? ", " : "",
			    refusal->reason);
}

void sbx_nft_explain(const struct sbx_nft_batch *b, const struct sbx_nft_refusal *refusal,
		     struct sbx_err *err)
{
	const struct nlmsghdr *nlh = sbx_nft_batch_message(b, refusal->seq);
	int type =
		nlh && nlh->nlmsg_type >> 8 == NFNL_SUBSYS_NFTABLES ? nlh->nlmsg_type & 0xff : -1;

	if (refusal->error == EPERM || refusal->error == EACCES)
		sbx_err_set(err,
			    "no permission to use nf_tables in this namespace: where AppArmor "
			    "restricts "
			    "unprivileged user namespaces, install sbx's AppArmor profile or set "
			    "kernel.apparmor_restrict_unprivileged_userns=0, or run as root");
	else if (type == NFT_MSG_NEWRULE)
		explain_rule(nlh, refusal, err);
	else if (type == NFT_MSG_NEWTABLE && refusal->error == EEXIST)
		sbx_err_set(err, "this network namespace has a table inet " SBX_NFT_TABLE
				 " already: a sandbox needs a fresh one");
	else if (is_unsupported(refusal->error) && type == NFT_MSG_NEWCHAIN)
		sbx_err_set(
			err,
			"this kernel has no nf_tables filter chains of family inet "
			"(CONFIG_NF_TABLES_INET): load them as root (modprobe nf_tables) or use a "
			"kernel built with them");
	else if (is_unsupported(refusal->error))
		sbx_err_set(err,
			    "this kernel has no nf_tables (CONFIG_NF_TABLES with "
			    "CONFIG_NF_TABLES_INET): load it as root (modprobe nf_tables) or use a "
			    "kernel built with it");
	else
		sbx_err_set(err, "the kernel refused the firewall: %s%s%s",
			    strerror(refusal->error), refusal->reason[0] ? ", " : "",
			    refusal->reason);
}
