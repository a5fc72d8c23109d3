/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NFT_NFT_ATTACH_H
#define SBX_SYS_NFT_NFT_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/reason.h"
#include "sys/nft/nft.h"
#include "sys/nft/nft_pin.h"

/*
 * Attach `cgroup` (DESIGN section 7): a table `inet sbx` in the host's network namespace, shared by all
 * sandboxes, that judges what the sockets of a sandbox's cgroup send. nft_attach.c says how.
 *
 * Every operation is one transaction over an nfnetlink socket (sbx_net_netlink_open(NETLINK_NETFILTER))
 * and needs CAP_NET_ADMIN over the network namespace. The rules belong to no process: they stay, closed,
 * until they are removed. Keep one socket open: closing one after a removal waits some 10 ms.
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
	enum sbx_proto proto;		/* tcp, udp; other: every protocol, and ports do not matter */
	bool refuse;
};

struct sbx_attach_input {
	const char *id;
	uint32_t level; /* the cgroup's depth below the root of our cgroup namespace, from 1 */
	uint64_t cgroup_id; /* 0: not known yet; text alone can be made of it */
	const char *cgroup_path; /* below /sys/fs/cgroup ("unified/..." in a hybrid), for the text alone; NULL */
	uint16_t nflog_group;
	struct sbx_addr dns_addr; /* the stub, an address of 127/8; family 0: no DNS */
	uint16_t dns_port;
	size_t n_floors; /* never, whatever else says */
	const struct sbx_cidr *floors;
	size_t n_loopback_ports; /* of 127/8 and ::1, TCP and UDP */
	const uint16_t *loopback_ports;
	/* Judged in order, the first that matches decides. What the system policy admits may be on this
	 * host; the sandbox's own entries come after its pins and never lead to an address of the host. */
	size_t n_admitted, n_cidrs;
	const struct sbx_attach_cidr *admitted, *cidrs;
	bool all_destinations; /* mode full: what no entry refuses passes, TCP and UDP */
};

/* PURE. 0, -ENOMEM, -E2BIG, -EINVAL: what is beyond the limits or no id, network, port. */
int sbx_attach_ruleset_new(const struct sbx_attach_input *in, struct sbx_nft_ruleset **ret_rs);

/*
 * Add a sandbox: its sets, chains and element of the level's map, and the table, map and base chain
 * where they are not there (whoever else adds or removes at the same time). Then read back: what the
 * kernel has is what was sent. From here on what the cgroup and those below it send is refused, until
 * there are pins. A kernel without room, the right or an expression says so in @err: 0 or -errno
 * (-EEXIST: there is a sandbox of that id, or with that cgroup). After an error nothing was added;
 * after -EPROTO (read back) what was is removed again.
 */
int sbx_attach_add(const struct sbx_nft_ruleset *rs, int nl_fd, struct sbx_err *err);

/* Is all of it there as it was added, and does the cgroup lead to it? 0, or -errno with @err. */
int sbx_attach_verify(const struct sbx_nft_ruleset *rs, int nl_fd, struct sbx_err *err);

/* A host's firewall is its owner's, who may flush it: then nothing is refused any more. A socket (non-blocking) that
 * becomes readable when the kernel's rulesets change. fd or -errno. Needs CAP_NET_ADMIN. */
int sbx_attach_watch_open(void);
/* Read it empty. 1: something that @rs stands on may have changed, sbx_attach_verify() tells; 0: nothing has. */
int sbx_attach_watch_read(int fd, const struct sbx_nft_ruleset *rs);

/* Change pins: those of @v are put with their time to live, or taken; the others stay as they are. One
 * transaction, so there is no moment without. 0, -EINVAL, -ENOENT (no such sandbox), -errno. */
int sbx_attach_pin(const char *id, const struct sbx_attach_pin *v, size_t n, int nl_fd,
		   struct sbx_err *err);

/* How many pins there may be: the kernel's memory is not the sandbox's, and who asks for pins may be hostile. */
struct sbx_attach_room {
	size_t n_max;
	size_t n; /* there are at most so many; 0 at first */
};

/* Before sbx_attach_pin() with @v: they are counted as put. Only when those put since the kernel was asked would be too
 * many it is asked again. 0, -ENOSPC, -errno. */
int sbx_attach_take_room(struct sbx_attach_room *room, const char *id, const struct sbx_attach_pin *v, size_t n,
			 int nl_fd);

/* Remove a sandbox's rules, once its cgroup is empty; then the level's map and base chain and the table
 * if nobody has any there. 0, also when they were gone already; or -errno. */
int sbx_attach_remove(const char *id, uint32_t level, uint64_t cgroup_id, int nl_fd,
		      struct sbx_err *err);

struct sbx_attach_entry {
	char id[SBX_ATTACH_ID_MAX + 1];
	uint32_t level;
	uint64_t cgroup_id;
};

/* Every sandbox in the table: at most n_max are written, the number there are is returned; or -errno.
 * No table: 0. */
int sbx_attach_list(int nl_fd, struct sbx_attach_entry *v, size_t n_max);

/* Does the cgroup exist? @cgroup2_fd: any directory of the cgroup2 file system. 1, 0, or -errno (-EPERM:
 * needs CAP_DAC_READ_SEARCH). */
int sbx_attach_cgroup_exists(int cgroup2_fd, uint64_t cgroup_id);

/* Remove the rules of one, which nothing is left of (sbx_cgroup_settle). 0, also when there are none; or -errno. */
int sbx_attach_release(uint64_t cgroup_id, int nl_fd, struct sbx_err *err);

/* Remove the rules of cgroups that somebody else removed, once nothing is left of any removed cgroup of the host: a
 * socket of theirs may live on, and would be free. A cgroup that is there, or that cannot be asked about,
 * keeps its own. The number removed, or -errno of the first that failed, after trying the rest. */
int sbx_attach_gc(int nl_fd, int cgroup2_fd, struct sbx_err *err);

/* A group of NFLOG for a sandbox, with its socket (sbx_net_nflog_open): one that nobody else has bound.
 * @seed spreads the search (the cgroup's id). fd or -errno: -EPERM without CAP_NET_ADMIN. */
int sbx_attach_nflog_open(uint64_t seed, uint32_t copy_range, uint16_t *ret_group);

#endif
