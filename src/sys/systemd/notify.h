/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_SYSTEMD_NOTIFY_H
#define SBX_SYS_SYSTEMD_NOTIFY_H

/* The protocol of sd_notify(3), without its library: sbx-run is static. */

#define SBX_NOTIFY_STATE_MAX 1024 /* bytes of one message */
/* systemd kills a service whose READY=1 is lost at the start timeout, so a manager with a full
 * queue gets this long to make room. */
#define SBX_NOTIFY_WAIT_MS 100

/* Send @state ("READY=1\nSTATUS=...") to @address, the value of $NOTIFY_SOCKET: a path, or "@"
 * and an abstract name. 0; SBX_NOTIFY_E_ABSENT: @address is NULL or empty, so no manager
 * listens; -EMSGSIZE: @state is empty or longer than SBX_NOTIFY_STATE_MAX; or -errno of
 * sbx_datagram_send(). Waits SBX_NOTIFY_WAIT_MS at most. */
enum { SBX_NOTIFY_E_ABSENT = 1 };
int sbx_notify_send(const char *address, const char *state);

#endif
