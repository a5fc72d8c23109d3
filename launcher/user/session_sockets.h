/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_USER_SESSION_SOCKETS_H
#define SBX_LAUNCHER_USER_SESSION_SOCKETS_H

#include <stddef.h>

#include "launcher/view/draft.h"
#include "sys/fs/path.h"

/*
 * The control sockets that the caller's environment names (SSH_AUTH_SOCK, DBUS_SESSION_BUS_ADDRESS,
 * DOCKER_HOST, ...). A directory that holds one of them is not granted.
 */

#define SBX_SESSION_SOCKETS_MAX 64

struct sbx_session_sockets {
	struct sbx_path_socket v[SBX_SESSION_SOCKETS_MAX];
	size_t n;
};

/* Read the environment of @f. Paths in /run/user are left out, because nothing there is granted. 0,
 * -ENOMEM, -E2BIG (too many). The caller calls sbx_session_sockets_fini(@ret_s) after
 * every result. */
int sbx_session_sockets_find(const struct sbx_facts *f, struct sbx_session_sockets *ret_s);
void sbx_session_sockets_fini(struct sbx_session_sockets *s);

#endif
