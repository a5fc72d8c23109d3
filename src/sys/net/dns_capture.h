/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NET_DNS_CAPTURE_H
#define SBX_SYS_NET_DNS_CAPTURE_H

#include "base/addr.h"

/*
 * Redirect the DNS of a cgroup: whatever server the sockets of it, and of cgroups below it, ask on
 * port 53 over IPv4, by UDP or TCP, they ask @stub (IPv4). An answer to a datagram seems to come
 * from the server that was asked. Ends when the cgroup is removed.
 *
 * Uses programs that the kernel runs at connect(2), sendmsg(2) and recvmsg(2) (bpf(2),
 * BPF_PROG_TYPE_CGROUP_SOCK_ADDR, Linux 5.2): no packet is changed and no connection tracked. Needs
 * CAP_NET_ADMIN and CAP_BPF or CAP_SYS_ADMIN. 0 or -errno: -EINVAL, -EPERM, -ENOSYS where the
 * kernel lacks CONFIG_CGROUP_BPF or does not allow it. After an error none or some of the DNS is
 * redirected.
 */
int sbx_dns_capture(int cgroup_fd, const struct sbx_addr *stub);

#endif
