/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_MAIN_LISTEN_H
#define SBX_DAEMON_MAIN_LISTEN_H

#include <stdbool.h>

#include "base/err.h"

/* Listening sockets: nonblocking and close-on-exec. Each gives the descriptor or -errno with
 * @err. */

/* A socket at @path with @mode. The socket of a service that has ended is removed; if a service
 * answers there, -EADDRINUSE. */
int sbx_listen_unix(const char *path, unsigned mode, struct sbx_err *err);

/* "127.0.0.1:8484", "[::1]:8484". Other addresses than loopback only if @any. */
int sbx_listen_tcp(const char *text, bool any, struct sbx_err *err);

/* Those that systemd passed (sd_listen_fds(3)): their number; 0: none. The environment forgets
 * them. */
#define SBX_LISTEN_PASSED 3 /* the first one, SD_LISTEN_FDS_START */
int sbx_listen_passed(void);
/* Is it a unix socket? */
bool sbx_listen_is_unix(int fd);
/* May a passed TCP socket be served without TLS? 0, or -EINVAL with @err: other machines reach
 * it. */
int sbx_listen_judge(int fd, struct sbx_err *err);

#endif
