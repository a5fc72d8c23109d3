/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lists the sandboxes in the shared table, and removes those whose cgroup is gone.
 *
 * The list is read from the maps: a sandbox's chains exist exactly as long as its element, because
 * one transaction makes or removes both. A cgroup is looked up by its id, as a file handle of
 * kernfs: no path is needed, and an id is not used twice. A cgroup that is gone may still have
 * sockets that were passed to other processes. They are judged by that cgroup as long as they live,
 * and without the rules nothing would refuse them.
 */
#include "sys/nft/nft_attach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sys/cgroup/cgroup.h"
#include "sys/net/netlink.h"
#include "sys/net/nlmsg.h"
#include "sys/nft/nft_attach_internal.h"

#define DUMP_TRIES  16
#define GONE_WAIT_MS 10
#define FILEID_KERNFS 0xfe /* linux/exportfs.h: the handle is the 64-bit id */

/* --- reading --- */

bool sbx_nft_attr_find(struct sbx_span attrs, uint16_t type, struct sbx_span *ret_value)
{
	struct nlattr header;
	bool bad = false;

	while (sbx_nlattr_next(&attrs, &header, ret_value, &bad))
		if ((header.nla_type & NLA_TYPE_MASK) == type)
			return true;
	return false;
}

const char *sbx_nft_attr_str(struct sbx_span attrs, uint16_t type)
{
	struct sbx_span value;

	if (!sbx_nft_attr_find(attrs, type, &value) || value.n == 0 || value.p[value.n - 1] != '\0')
		return NULL;
	return (const char *)value.p;
}

bool sbx_nft_message_attrs(const struct nlmsghdr *nlh, uint16_t type, struct sbx_span *ret_attrs)
{
	size_t n_head = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nfgenmsg));

	if (nlh->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | type) || nlh->nlmsg_len < n_head)
		return false;
	*ret_attrs = sbx_span((const char *)nlh + n_head, nlh->nlmsg_len - n_head);
	return true;
}

/* "levelN", as sbx_attach_ruleset_new() writes it; 0: another name. */
static uint32_t parse_level(const char *name)
{
	char again[SBX_NFT_NAME_MAX];
	unsigned level = 0;

	if (!name || sscanf(name, "level%3u", &level) != 1 || level > SBX_ATTACH_LEVEL_MAX)
		return 0;
	snprintf(again, sizeof(again), "level%u", level);
	return strcmp(again, name) == 0 ? level : 0;
}

/* "sb-ID"; NULL: another name. */
static const char *parse_chain(const char *name)
{
	size_t n;

	if (!name || strncmp(name, "sb-", 3) != 0)
		return NULL;
	n = strspn(name + 3, "0123456789abcdef");
	return n >= 1 && n <= SBX_ATTACH_ID_MAX && name[3 + n] == '\0' ? name + 3 : NULL;
}

struct levels {
	size_t n, n_max;
	uint32_t *v;
};

static int on_set(const struct nlmsghdr *nlh, void *userdata)
{
	struct levels *levels = userdata;
	struct sbx_span attrs;
	uint32_t level;

	if (sbx_netlink_error(nlh) < 0)
		return sbx_netlink_error(nlh);
	if (!sbx_nft_message_attrs(nlh, NFT_MSG_NEWSET, &attrs))
		return 0;
	level = parse_level(sbx_nft_attr_str(attrs, NFTA_SET_NAME));
	if (level && levels->n < levels->n_max)
		levels->v[levels->n++] = level;
	return 0;
}

typedef void (*element_fn)(void *userdata, uint64_t cgroup_id, const char *chain);

struct elements {
	element_fn fn;
	void *userdata;
};

static void read_element(struct sbx_span attrs, void *userdata)
{
	const struct elements *e = userdata;
	struct sbx_span key, value, data, verdict;
	uint64_t id;

	if (!sbx_nft_attr_find(attrs, NFTA_SET_ELEM_KEY, &key) ||
	    !sbx_nft_attr_find(key, NFTA_DATA_VALUE, &value) || value.n != sizeof(id) ||
	    !sbx_nft_attr_find(attrs, NFTA_SET_ELEM_DATA, &data) ||
	    !sbx_nft_attr_find(data, NFTA_DATA_VERDICT, &verdict))
		return;
	memcpy(&id, value.p, sizeof(id));
	e->fn(e->userdata, id, sbx_nft_attr_str(verdict, NFTA_VERDICT_CHAIN));
}

/* Call @fn with the attributes of each element of a message. */
static int each_element(const struct nlmsghdr *nlh,
			void (*fn)(struct sbx_span attrs, void *userdata), void *userdata)
{
	struct sbx_span attrs, list, element;
	struct nlattr header;
	bool bad = false;

	if (sbx_netlink_error(nlh) < 0)
		return sbx_netlink_error(nlh);
	if (!sbx_nft_message_attrs(nlh, NFT_MSG_NEWSETELEM, &attrs) ||
	    !sbx_nft_attr_find(attrs, NFTA_SET_ELEM_LIST_ELEMENTS, &list))
		return 0;
	while (sbx_nlattr_next(&list, &header, &element, &bad))
		fn(element, userdata);
	return bad ? -EBADMSG : 0;
}

static int on_elements(const struct nlmsghdr *nlh, void *userdata)
{
	return each_element(nlh, read_element, userdata);
}

/* --- asking --- */

/* Ask for the sets of the table (@set NULL), or for a set's elements: all, or the one of
 * @cgroup_id. */
static int ask(int fd, uint16_t type, uint16_t flags, const char *set, const uint64_t *cgroup_id,
	       sbx_netlink_cb cb, void *userdata)
{
	const struct nlmsghdr nlh = {
		.nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type),
		.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
		.nlmsg_seq = 1,
	};
	const struct nfgenmsg nfg = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };
	_Alignas(struct nlmsghdr) uint8_t buf[256];
	struct sbx_writer w = sbx_writer(buf, sizeof(buf));
	size_t begin = sbx_nlmsg_begin(&w, &nlh, &nfg, sizeof(nfg)), list, element, key;
	int r;

	/* In both messages the table is attribute 1 and the set attribute 2. */
	sbx_nlattr_put(&w, NFTA_SET_TABLE, SBX_NFT_TABLE, sizeof(SBX_NFT_TABLE));
	if (set)
		sbx_nlattr_put(&w, NFTA_SET_NAME, set, strlen(set) + 1);
	if (cgroup_id) {
		list = sbx_nlattr_begin(&w, NLA_F_NESTED | NFTA_SET_ELEM_LIST_ELEMENTS);
		element = sbx_nlattr_begin(&w, NLA_F_NESTED | NFTA_LIST_ELEM);
		key = sbx_nlattr_begin(&w, NLA_F_NESTED | NFTA_SET_ELEM_KEY);
		sbx_nlattr_put(&w, NFTA_DATA_VALUE, cgroup_id, sizeof(*cgroup_id));
		sbx_nlattr_end(&w, key);
		sbx_nlattr_end(&w, element);
		sbx_nlattr_end(&w, list);
	}
	sbx_nlmsg_end(&w, begin);
	r = w.failed ? -EMSGSIZE : sbx_netlink_send(fd, buf, w.pos);
	return r < 0 ? r : sbx_netlink_read(fd, nlh.nlmsg_seq, cb, userdata);
}

struct wanted {
	const char *chain;
	bool found;
};

static void on_wanted(void *userdata, uint64_t cgroup_id, const char *chain)
{
	struct wanted *w = userdata;

	(void)cgroup_id; /* it is the one that was asked for */
	w->found = chain && strcmp(chain, w->chain) == 0;
}

int sbx_attach_has(const char *map, uint64_t cgroup_id, const char *chain, int nl_fd)
{
	struct wanted w = { .chain = chain };
	struct elements e = { on_wanted, &w };
	int r = ask(nl_fd, NFT_MSG_GETSETELEM, NLM_F_ACK, map, &cgroup_id, on_elements, &e);

	return r < 0 ? r : w.found ? 0 : -EPROTO;
}

int sbx_attach_level_exists(const char *map, int nl_fd)
{
	struct levels none = { 0 };

	return ask(nl_fd, NFT_MSG_GETSET, NLM_F_ACK, map, NULL, on_set, &none);
}

static int on_generation(const struct nlmsghdr *nlh, void *userdata)
{
	struct sbx_span attrs, value;

	if (sbx_netlink_error(nlh) < 0)
		return sbx_netlink_error(nlh);
	if (sbx_nft_message_attrs(nlh, NFT_MSG_NEWGEN, &attrs) &&
	    sbx_nft_attr_find(attrs, NFTA_GEN_ID, &value) && value.n == sizeof(uint32_t))
		memcpy(userdata, value.p, sizeof(uint32_t));
	return 0;
}

int sbx_attach_generation(int nl_fd, uint32_t *ret_generation)
{
	uint32_t value = 0;
	int r = ask(nl_fd, NFT_MSG_GETGEN, NLM_F_ACK, NULL, NULL, on_generation, &value);

	*ret_generation = ntohl(value);
	return r < 0 ? r : value ? 0 : -EPROTO;
}

static int on_table(const struct nlmsghdr *nlh, void *userdata)
{
	struct sbx_span attrs, value;
	uint32_t flags;

	if (sbx_netlink_error(nlh) < 0)
		return sbx_netlink_error(nlh);
	if (!sbx_nft_message_attrs(nlh, NFT_MSG_NEWTABLE, &attrs) ||
	    !sbx_nft_attr_find(attrs, NFTA_TABLE_FLAGS, &value) || value.n != sizeof(flags))
		return 0;
	memcpy(&flags, value.p, sizeof(flags));
	*(bool *)userdata = (ntohl(flags) & NFT_TABLE_F_DORMANT) == 0;
	return 0;
}

int sbx_attach_is_awake(int nl_fd)
{
	bool awake = false;
	int r = ask(nl_fd, NFT_MSG_GETTABLE, NLM_F_ACK, NULL, NULL, on_table, &awake);

	return r < 0 ? r : awake ? 0 : -EPROTO;
}

static void on_any(void *userdata, uint64_t cgroup_id, const char *chain)
{
	(void)cgroup_id;
	(void)chain;
	*(bool *)userdata = true;
}

int sbx_attach_level_is_used(const char *map, int nl_fd)
{
	bool used = false;
	struct elements e = { on_any, &used };
	int r = ask(nl_fd, NFT_MSG_GETSETELEM, NLM_F_DUMP, map, NULL, on_elements, &e);

	/* A disturbed dump does not matter: the element was seen. */
	return used ? 1 : r;
}

int sbx_attach_levels(int nl_fd, uint32_t *v, size_t n_max)
{
	int r = -EINTR;

	for (int i = 0; r == -EINTR && i < DUMP_TRIES; i++) {
		struct levels levels = { .v = v, .n_max = n_max };

		r = ask(nl_fd, NFT_MSG_GETSET, NLM_F_DUMP, NULL, NULL, on_set, &levels);
		if (r == 0)
			r = (int)levels.n;
	}
	return r;
}

struct listing {
	struct sbx_attach_entry *v;
	size_t n, n_max;
	uint32_t level;
};

static void on_entry(void *userdata, uint64_t cgroup_id, const char *chain)
{
	struct listing *l = userdata;
	const char *id = parse_chain(chain);

	if (!id)
		return;
	if (l->n < l->n_max) {
		l->v[l->n] = (struct sbx_attach_entry){ .level = l->level, .cgroup_id = cgroup_id };
		sbx_text_fit(l->v[l->n].id, sizeof(l->v[l->n].id), "%s", id);
	}
	l->n++;
}

static int list_once(int fd, struct listing *l)
{
	struct elements e = { on_entry, l };
	uint32_t levels[SBX_ATTACH_LEVEL_MAX];
	int n = sbx_attach_levels(fd, levels, SBX_N_ELEMENTS(levels)), r = n < 0 ? n : 0;

	for (int i = 0; r == 0 && i < n; i++) {
		char map[SBX_NFT_NAME_MAX];

		l->level = levels[i];
		snprintf(map, sizeof(map), "level%u", (unsigned)levels[i]);
		r = ask(fd, NFT_MSG_GETSETELEM, NLM_F_DUMP, map, NULL, on_elements, &e);
		if (r == -ENOENT)
			r = 0; /* removed since */
	}
	return r;
}

int sbx_attach_list(int nl_fd, struct sbx_attach_entry *v, size_t n_max)
{
	struct listing l = { .v = v, .n_max = n_max };
	int r = -EINTR;

	for (int i = 0; r == -EINTR && i < DUMP_TRIES; i++) {
		l.n = 0;
		r = list_once(nl_fd, &l);
	}
	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : (int)l.n;
}

/* --- pins --- */

struct pins_reading {
	sbx_attach_pin_fn fn;
	void *userdata;
	struct sbx_attach_pin pin; /* family and age: of the set */
};

static void read_pin(struct sbx_span attrs, void *userdata)
{
	struct pins_reading *p = userdata;
	size_t n_addr = p->pin.addr.family == 4 ? 4 : 16;
	struct sbx_span key, value;
	uint16_t port;

	if (!sbx_nft_attr_find(attrs, NFTA_SET_ELEM_KEY, &key) ||
	    !sbx_nft_attr_find(key, NFTA_DATA_VALUE, &value) || value.n != n_addr + 8)
		return;
	memcpy(p->pin.addr.b, value.p, n_addr);
	p->pin.proto = value.p[n_addr] == IPPROTO_TCP ? SBX_PROTO_TCP : SBX_PROTO_UDP;
	memcpy(&port, value.p + n_addr + 4, sizeof(port));
	p->pin.port = ntohs(port);
	p->fn(p->userdata, &p->pin);
}

static int on_pin(const struct nlmsghdr *nlh, void *userdata)
{
	return each_element(nlh, read_pin, userdata);
}

int sbx_attach_pins_each(const char *id, int nl_fd, sbx_attach_pin_fn fn, void *userdata)
{
	static const struct {
		const char *name;
		uint8_t family;
		enum sbx_attach_age age;
	} sets[] = { { "pins4", 4, SBX_ATTACH_CURRENT },
		     { "old4", 4, SBX_ATTACH_OLD },
		     { "pins6", 6, SBX_ATTACH_CURRENT },
		     { "old6", 6, SBX_ATTACH_OLD } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(sets); i++) {
		struct pins_reading p = { fn,
					  userdata,
					  { .addr.family = sets[i].family, .age = sets[i].age } };
		char set[SBX_NFT_NAME_MAX];

		sbx_text_fit(set, sizeof(set), "sb-%s-%s", id, sets[i].name);
		r = -EINTR;
		for (int k = 0; r == -EINTR && k < DUMP_TRIES; k++)
			r = ask(nl_fd, NFT_MSG_GETSETELEM, NLM_F_DUMP, set, NULL, on_pin, &p);
	}
	return r;
}

static void count_element(struct sbx_span attrs, void *userdata)
{
	(void)attrs;
	++*(size_t *)userdata;
}

static int on_pins(const struct nlmsghdr *nlh, void *userdata)
{
	return each_element(nlh, count_element, userdata);
}

static int count_pins(const char *id, int fd, size_t *ret_n)
{
	static const char *const sets[] = { "pins4", "old4", "pins6", "old6" };
	size_t n_all = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(sets); i++) {
		char set[SBX_NFT_NAME_MAX];
		size_t n = 0;
		int r = -EINTR;

		sbx_text_fit(set, sizeof(set), "sb-%s-%s", id, sets[i]);
		for (int k = 0; r == -EINTR && k < DUMP_TRIES; k++) {
			n = 0;
			r = ask(fd, NFT_MSG_GETSETELEM, NLM_F_DUMP, set, NULL, on_pins, &n);
		}
		if (r < 0)
			return r;
		n_all += n;
	}
	*ret_n = n_all;
	return 0;
}

int sbx_attach_take_room(struct sbx_attach_room *room, const char *id,
			 const struct sbx_attach_pin *v, size_t n, int nl_fd)
{
	size_t n_put = 0;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		n_put += v[i].timeout_ms > 0;
	if (n_put > 0 && room->n + n_put > room->n_max)
		r = count_pins(id, nl_fd, &room->n);
	if (r == 0 && n_put > 0 && room->n + n_put > room->n_max)
		r = -ENOSPC;
	if (r == 0)
		room->n += n_put;
	return r;
}

/* --- sweeping --- */

int sbx_attach_cgroup_exists(int cgroup2_fd, uint64_t cgroup_id)
{
	_Alignas(struct file_handle) char buf[sizeof(struct file_handle) + sizeof(cgroup_id)];
	struct file_handle *handle = (struct file_handle *)(void *)buf;
	SBX_AUTO_CLOSE int fd = -1;

	handle->handle_bytes = sizeof(cgroup_id);
	handle->handle_type = FILEID_KERNFS;
	memcpy(buf + offsetof(struct file_handle, f_handle), &cgroup_id, sizeof(cgroup_id));
	fd = open_by_handle_at(cgroup2_fd, handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return 1;
	return errno == ESTALE || errno == ENOENT ? 0 : -errno;
}

/* May a removed cgroup still have a socket? The kernel counts cgroups that were removed and
 * still exist, but does not name them. A cgroup that was removed just now is counted a moment
 * later. */
static bool may_be_held(int cgroup2_fd)
{
	SBX_AUTO_CLOSE int root = openat(cgroup2_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	poll(NULL, 0, GONE_WAIT_MS);
	return root < 0 || sbx_cgroup_dying(root) != 0;
}

int sbx_attach_release(uint64_t cgroup_id, int nl_fd, struct sbx_err *err)
{
	SBX_AUTO_FREE struct sbx_attach_entry *v = NULL;
	int n = sbx_attach_list(nl_fd, NULL, 0), r = 0;
	size_t n_max = n < 0 ? 0 : (size_t)n;

	if (n <= 0)
		return n;
	v = calloc(n_max, sizeof(*v));
	if (!v)
		return -ENOMEM;
	n = sbx_attach_list(nl_fd, v, n_max);
	for (size_t i = 0; r == 0 && n > 0 && i < (size_t)n && i < n_max; i++)
		if (v[i].cgroup_id == cgroup_id)
			r = sbx_attach_remove(v[i].id, v[i].level, cgroup_id, nl_fd, err);
	return n < 0 ? n : r;
}

int sbx_attach_gc(int nl_fd, int cgroup2_fd, struct sbx_err *err)
{
	SBX_AUTO_FREE struct sbx_attach_entry *v = NULL;
	int n = sbx_attach_list(nl_fd, NULL, 0), n_removed = 0, failed = 0;
	size_t n_max, n_gone = 0;

	if (n < 0)
		return n;
	if (n == 0)
		/* a process may have been killed before it removed the shared parts */
		return sbx_attach_remove_unused(nl_fd);
	/* room for sandboxes added meanwhile; the next call sees any further ones */
	n_max = (size_t)n + 64;
	v = calloc(n_max, sizeof(*v));
	if (!v)
		return -ENOMEM;
	n = sbx_attach_list(nl_fd, v, n_max);
	if (n < 0)
		return n;
	for (size_t i = 0; i < (size_t)n && i < n_max; i++)
		if (sbx_attach_cgroup_exists(cgroup2_fd, v[i].cgroup_id) == 0)
			v[n_gone++] = v[i];
	if (n_gone > 0 && may_be_held(cgroup2_fd))
		return 0;
	for (size_t i = 0; i < n_gone; i++) {
		int r = sbx_attach_remove(v[i].id, v[i].level, v[i].cgroup_id, nl_fd, err);

		if (r == 0)
			n_removed++;
		else if (failed == 0)
			failed = r;
	}
	return failed ? failed : n_removed;
}
