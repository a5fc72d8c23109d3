/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells whether the part of the shared table that a sandbox needs may have changed. The kernel
 * reports every change of a ruleset to the group NFNLGRP_NFTABLES. Most changes are not of this
 * sandbox's rules (pins, other sandboxes), so names are compared. A match is a reason to read the
 * ruleset, not a verdict: our own additions are reported as well.
 */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "sys/net/net.h"
#include "sys/net/nlmsg.h"
#include "sys/nft/nft_attach.h"
#include "sys/nft/nft_attach_internal.h"

#define DATAGRAM_MAX 32768 /* the kernel's are of a page or two */

int sbx_attach_watch_open(void)
{
	SBX_AUTO_CLOSE int fd = sbx_net_netlink_open(NETLINK_NETFILTER);
	int group = NFNLGRP_NFTABLES, r;

	if (fd < 0)
		return fd;
	if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
		return -errno;
	r = sbx_fd_set_nonblocking(fd);
	return r < 0 ? r : sbx_fd_steal(&fd);
}

/* "sb-ID", "sb-ID-lo", ... of the ruleset, or its level. */
static bool is_ours(const char *name, const struct sbx_nft_set *map)
{
	size_t n = strlen(map->chain);

	if (!name)
		return true; /* no name: assume that it is ours */
	if (strncmp(name, map->chain, n) == 0 && (name[n] == '\0' || name[n] == '-'))
		return true;
	n = strlen(map->name);
	return strncmp(name, map->name, n) == 0 && (name[n] == '\0' || name[n] == '-');
}

static bool list_has(struct sbx_span list, uint64_t cgroup_id)
{
	struct sbx_span element, key, value;
	struct nlattr header;
	bool bad = false;

	while (sbx_nlattr_next(&list, &header, &element, &bad))
		if (sbx_nft_attr_find(element, NFTA_SET_ELEM_KEY, &key) &&
		    sbx_nft_attr_find(key, NFTA_DATA_VALUE, &value) &&
		    value.n == sizeof(cgroup_id) &&
		    memcmp(value.p, &cgroup_id, sizeof(cgroup_id)) == 0)
			return true;
	return bad;
}

/* Elements: only those of the level's map matter. Floors never change, and pins come and go. */
static bool elements_matter(struct sbx_span attrs, const struct sbx_nft_set *map)
{
	const char *set = sbx_nft_attr_str(attrs, NFTA_SET_ELEM_LIST_SET);
	struct sbx_span list;

	if (!is_ours(set, map) || (set && (strstr(set, "-pins") || strstr(set, "-old"))))
		return false;
	if (!set || strcmp(set, map->name) != 0)
		return true;
	return !sbx_nft_attr_find(attrs, NFTA_SET_ELEM_LIST_ELEMENTS, &list) ||
	       list_has(list, map->cgroup_id);
}

static bool matters(const struct nlmsghdr *nlh, const struct sbx_nft_set *map)
{
	static const struct {
		/* the attribute that has the name; 0: only the table is named */
		uint16_t type, name;
	} kinds[] = {
		{ NFT_MSG_NEWTABLE, 0 },
		{ NFT_MSG_DELTABLE, 0 },
		{ NFT_MSG_NEWCHAIN, NFTA_CHAIN_NAME },
		{ NFT_MSG_DELCHAIN, NFTA_CHAIN_NAME },
		{ NFT_MSG_NEWRULE, NFTA_RULE_CHAIN },
		{ NFT_MSG_DELRULE, NFTA_RULE_CHAIN },
		{ NFT_MSG_DELSET, NFTA_SET_NAME },
	};
	struct sbx_span attrs;

	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++) {
		const char *table;

		if (!sbx_nft_message_attrs(nlh, kinds[i].type, &attrs))
			continue;
		table = sbx_nft_attr_str(attrs, NFTA_TABLE_NAME); /* 1 in all of them */
		if (table && strcmp(table, SBX_NFT_TABLE) != 0)
			return false;
		return !kinds[i].name || is_ours(sbx_nft_attr_str(attrs, kinds[i].name), map);
	}
	if (sbx_nft_message_attrs(nlh, NFT_MSG_DELSETELEM, &attrs) ||
	    sbx_nft_message_attrs(nlh, NFT_MSG_NEWSETELEM, &attrs)) {
		const char *table = sbx_nft_attr_str(attrs, NFTA_SET_ELEM_LIST_TABLE);

		return (!table || strcmp(table, SBX_NFT_TABLE) == 0) && elements_matter(attrs, map);
	}
	return false;
}

int sbx_attach_watch_read(int fd, const struct sbx_nft_ruleset *rs)
{
	const struct sbx_nft_set *map = sbx_attach_map(rs);
	_Alignas(struct nlmsghdr) uint8_t buf[DATAGRAM_MAX];
	int found = 0;

	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC);
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)(const void *)buf;
		size_t left;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return found;
		/* messages were lost, or are too long to read */
		if (n <= 0 || (size_t)n > sizeof(buf)) {
			found = 1;
			if (n == 0 || (n < 0 && errno != ENOBUFS))
				return found;
			continue;
		}
		for (left = (size_t)n; left >= sizeof(*nlh) && nlh->nlmsg_len >= sizeof(*nlh) &&
				       nlh->nlmsg_len <= left;) {
			size_t step = NLMSG_ALIGN(nlh->nlmsg_len);

			if (matters(nlh, map))
				found = 1;
			if (step >= left)
				break;
			left -= step;
			nlh = (const struct nlmsghdr *)(const void *)((const char *)nlh + step);
		}
	}
}
