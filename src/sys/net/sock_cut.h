/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NET_SOCK_CUT_H
#define SBX_SYS_NET_SOCK_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/reason.h"

/* Ends open flows of a sandbox of attach cgroup (sock_diag(7), SOCK_DESTROY). */

#define SBX_SOCK_CUT_CGROUPS_MAX 32

struct sbx_sock_flow {
	enum sbx_proto proto; /* tcp or udp */
	struct sbx_addr remote, local;
	uint16_t remote_port, local_port;
	uint64_t cookie; /* the kernel's: no other socket has it */
};

/* May the flow go on? */
typedef bool (*sbx_sock_stays_fn)(void *userdata, const struct sbx_sock_flow *flow);

struct sbx_sock_cut {
	size_t n_ended; /* sockets that were ended */
	/* Sockets that had to end, and that the kernel did not end: rules that refuse their packets
	 * must do it. */
	size_t n_left;
};

/*
 * Asks @stays about every TCP connection and connected UDP socket made in one of the @n cgroups
 * (their ids; not those below), in whichever process it is by now, and ends it unless it stays.
 * Listeners and other UDP sockets are not touched. New flows must be refused before. @destroy
 * false: ends none, as with a kernel without CONFIG_INET_DIAG_DESTROY.
 *
 * @diag_fd: sbx_net_netlink_open(NETLINK_SOCK_DIAG), with CAP_NET_ADMIN over the network namespace.
 * 0; or -errno, and some were not seen: -EOPNOTSUPP: the kernel cannot find sockets by cgroup
 * (Linux 5.9 can); -E2BIG: too many cgroups.
 */
int sbx_sock_cut(int diag_fd, const uint64_t *cgroups, size_t n, bool destroy,
		 sbx_sock_stays_fn stays, void *userdata, struct sbx_sock_cut *ret_cut);

/* PURE. The filter of inet_diag for sockets of any of the @n cgroups, from 1 to
 * SBX_SOCK_CUT_CGROUPS_MAX. Returns its bytes. */
#define SBX_SOCK_CUT_FILTER_MAX (SBX_SOCK_CUT_CGROUPS_MAX * 16)
size_t sbx_sock_cut_filter(const uint64_t *cgroups, size_t n,
			   uint8_t ret_filter[SBX_SOCK_CUT_FILTER_MAX]);

#endif
