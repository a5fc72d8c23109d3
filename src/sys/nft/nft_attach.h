/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NFT_NFT_ATTACH_H
#define SBX_SYS_NFT_NFT_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/reason.h"
#include "sys/net/sock_cut.h"
#include "sys/nft/nft.h"
#include "sys/nft/nft_pin.h"

/*
 * Attach `cgroup` (docs/architecture/attach.md): a table `inet sbx` in the host's network
 * namespace, shared by all sandboxes. It judges the packets of the sockets of a sandbox's cgroup.
 * nft_attach.c describes the rules.
 *
 * Every operation is one transaction over an nfnetlink socket
 * (sbx_net_netlink_open(NETLINK_NETFILTER)) and needs CAP_NET_ADMIN over the network namespace. The
 * rules belong to no process: they stay, closed, until they are removed. Keep one socket open:
 * closing one after a removal waits some 10 ms.
 */

#define SBX_ATTACH_ID_MAX	   12	 /* bytes of a sandbox's id: 1 to 12 hex digits */
#define SBX_ATTACH_FLOORS_MAX	   256	 /* networks */
#define SBX_ATTACH_CIDRS_MAX	   256	 /* of each list */
#define SBX_ATTACH_PORTS_MAX	   64	 /* loopback_ports */
#define SBX_ATTACH_PINS_MAX	   32768 /* of one change */
#define SBX_ATTACH_LEVEL_MAX	   255

/* A cidr entry, as one port range of one protocol. */
struct sbx_attach_cidr {
	struct sbx_cidr cidr;
	uint16_t port_first, port_last; /* 0..65535 */
	/* tcp, udp; other: every protocol, and ports do not matter */
	enum sbx_proto proto;
	bool refuse;
};

struct sbx_attach_input {
	const char *id;
	uint32_t level; /* the cgroup's depth below the root of our cgroup namespace, from 1 */
	uint64_t cgroup_id; /* 0: not known yet; then only text can be made */
	/* below /sys/fs/cgroup ("unified/..." in a hybrid), for the text alone; NULL */
	const char *cgroup_path;
	uint16_t nflog_group;
	struct sbx_addr dns_addr; /* the stub, an address of 127/8; family 0: no DNS */
	uint16_t dns_port;
	size_t n_floors; /* refused, whatever other entries say */
	const struct sbx_cidr *floors;
	size_t n_loopback_ports; /* of 127/8 and ::1, TCP and UDP */
	const uint16_t *loopback_ports;
	/* Judged in order; the first match decides. @admitted comes from the system policy and
	 * may lead to this host; the sandbox's own entries (@cidrs) come after its pins and
	 * never lead to an address of the host. */
	size_t n_admitted, n_cidrs;
	const struct sbx_attach_cidr *admitted, *cidrs;
	bool all_destinations; /* mode full: TCP and UDP that no entry refuses pass */
};

/* PURE. 0, -ENOMEM, -E2BIG, or -EINVAL: the input is beyond a limit, or has an invalid id,
 * network or port. */
int sbx_attach_ruleset_new(const struct sbx_attach_input *in, struct sbx_nft_ruleset **ret_rs);
/* PURE. The ruleset between two policies of one sandbox: a packet passes if both let it pass. The
 * inputs differ in their lists alone, otherwise -EINVAL. Returns as above. */
int sbx_attach_narrow_new(const struct sbx_attach_input *from, const struct sbx_attach_input *to,
			  struct sbx_nft_ruleset **ret_rs);
/* PURE. Do two rulesets have the same rules and networks? 1, 0 or -ENOMEM. */
int sbx_attach_is_same(const struct sbx_nft_ruleset *a, const struct sbx_nft_ruleset *b);

/* PURE. Do the rules of @in let a packet of an open flow pass? @pinned: a pin of any age has the
 * remote end. An address of this host other than loopback is known by being both ends. */
bool sbx_attach_lets_go_on(const struct sbx_attach_input *in, const struct sbx_sock_flow *flow,
			   bool pinned);

/*
 * Add a sandbox: its sets, its chains and its element of the level's map, and the table, map and
 * base chain where they do not exist (other processes may add or remove them at the same time).
 * Then read back and compare with what was sent. From now on every packet of the cgroup and of
 * cgroups below it is refused, until there are pins. 0, or -errno with @err (-EEXIST: there is a
 * sandbox of that id, or with that cgroup; also no memory, no permission, or an expression that the
 * kernel lacks). After an error nothing was added; after -EPROTO (read back) it was removed again.
 */
int sbx_attach_add(const struct sbx_nft_ruleset *rs, int nl_fd, struct sbx_err *err);

/*
 * Replace the rules of a sandbox, @from, by @to, in one transaction. Pins stay. First @from is
 * verified, so that a change by the host's owner is not covered by ours; at last @to. 0, or -errno
 * with @err: nothing was changed. -EPROTO: the kernel does not have, or may not have, the rules of
 * @from before or of @to afterwards: end the sandbox.
 */
int sbx_attach_change(const struct sbx_nft_ruleset *from, const struct sbx_nft_ruleset *to,
		      int nl_fd, struct sbx_err *err);

/* Are the sandbox's rules there as they were added, and does the cgroup lead to them? 0, or
 * -errno with @err. */
int sbx_attach_verify(const struct sbx_nft_ruleset *rs, int nl_fd, struct sbx_err *err);

/* The host's owner may flush its firewall; then nothing is refused any more. Open a non-blocking
 * socket that becomes readable when the kernel's rulesets change. fd or -errno. Needs
 * CAP_NET_ADMIN. */
int sbx_attach_watch_open(void);
/* Read the socket until it is empty. 1: something that @rs needs may have changed;
 * sbx_attach_verify() tells. 0: nothing has. */
int sbx_attach_watch_read(int fd, const struct sbx_nft_ruleset *rs);

/* Change pins: each of @v is set with its time to live, or removed; other pins stay. One
 * transaction, so there is no moment without pins. 0, -EINVAL, -ENOENT (no such sandbox),
 * -errno. */
int sbx_attach_pin(const char *id, const struct sbx_attach_pin *v, size_t n, int nl_fd,
		   struct sbx_err *err);

/* Call @fn for every pin in the kernel (timeout_ms is 0). 0 or -errno, perhaps after some calls, or
 * after a pin was given twice. */
typedef void (*sbx_attach_pin_fn)(void *userdata, const struct sbx_attach_pin *pin);
int sbx_attach_pins_each(const char *id, int nl_fd, sbx_attach_pin_fn fn, void *userdata);

/* The limit of a sandbox's pins: a hostile process may ask for many, and they take the kernel's
 * memory. */
struct sbx_attach_room {
	size_t n_max;
	size_t n; /* an upper bound of the pins in the kernel; 0 at first */
};

/* Call before sbx_attach_pin() with @v: counts @v as set. Asks the kernel for the real number
 * only when the bound would exceed n_max. 0, -ENOSPC, -errno. */
int sbx_attach_take_room(struct sbx_attach_room *room, const char *id,
			 const struct sbx_attach_pin *v, size_t n, int nl_fd);

/* Remove a sandbox's rules, once its cgroup is empty; then the level's map and base chain and
 * the table, if no sandbox uses them. 0, also when they were gone already; or -errno. */
int sbx_attach_remove(const char *id, uint32_t level, uint64_t cgroup_id, int nl_fd,
		      struct sbx_err *err);

struct sbx_attach_entry {
	char id[SBX_ATTACH_ID_MAX + 1];
	uint32_t level;
	uint64_t cgroup_id;
};

/* List every sandbox in the table: writes at most n_max, returns how many there are, or -errno.
 * No table: 0. */
int sbx_attach_list(int nl_fd, struct sbx_attach_entry *v, size_t n_max);

/* Does the cgroup exist? @cgroup2_fd: any directory of the cgroup2 file system. 1, 0, or -errno
 * (-EPERM: needs CAP_DAC_READ_SEARCH). */
int sbx_attach_cgroup_exists(int cgroup2_fd, uint64_t cgroup_id);

/* Remove the rules of the sandbox with this cgroup, of which nothing is left
 * (sbx_cgroup_settle). 0, also when there are none; or -errno. */
int sbx_attach_release(uint64_t cgroup_id, int nl_fd, struct sbx_err *err);

/* Remove the rules of cgroups that other programs removed, but only while the kernel holds no
 * removed cgroup of the host: a socket of such a cgroup may live on, and without the rules nothing
 * would judge it. A cgroup that exists, or that cannot be asked about, keeps its rules. The number
 * of sandboxes whose rules were removed, or -errno of the first that failed, after trying the
 * rest. */
int sbx_attach_gc(int nl_fd, int cgroup2_fd, struct sbx_err *err);

/* Open an NFLOG socket (sbx_net_nflog_open) with a group that no other socket has bound. @seed
 * spreads the search (the cgroup's id). fd or -errno: -EPERM without CAP_NET_ADMIN. */
int sbx_attach_nflog_open(uint64_t seed, uint32_t copy_range, uint16_t *ret_group);

#endif
