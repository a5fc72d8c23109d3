/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NET_DNS_CAPTURE_H
#define SBX_SYS_NET_DNS_CAPTURE_H

#include "base/addr.h"

/*
 * From now on whatever server the sockets of this cgroup, and of those below it, ask on port 53 over IPv4, by UDP or
 * TCP, they ask @stub (IPv4). An answer to a datagram comes from the server that was asked. Ends with the cgroup.
 *
 * By programs that the kernel runs at connect(2), sendmsg(2) and recvmsg(2) (bpf(2), BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
 * Linux 5.2): no packet is touched, and no connection tracked. Needs CAP_NET_ADMIN and CAP_BPF or CAP_SYS_ADMIN. 0 or
 * -errno: -EINVAL, -EPERM, -ENOSYS where the kernel has no CONFIG_CGROUP_BPF or keeps it to itself. After an error
 * nothing, or some of it, is captured.
 */
int sbx_dns_capture(int cgroup_fd, const struct sbx_addr *stub);

#endif
