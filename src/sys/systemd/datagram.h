/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_SYSTEMD_DATAGRAM_H
#define SBX_SYS_SYSTEMD_DATAGRAM_H

#include <stddef.h>

/* Send one datagram to the unix socket @address: a path ("/run/...") or an abstract name
 * ("@..."), as in $NOTIFY_SOCKET. Waits at most @wait_ms (0: not at all) for room in the
 * receiver's queue. 0; -EAFNOSUPPORT: @address has neither form; -ENAMETOOLONG; -EAGAIN: no
 * room; or another -errno of socket(2), connect(2), send(2). No SIGPIPE. */
int sbx_datagram_send(const char *address, const void *p, size_t n, int wait_ms);

#endif
