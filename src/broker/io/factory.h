/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_IO_FACTORY_H
#define SBX_BROKER_IO_FACTORY_H

#include <stdint.h>

#include "broker/io/context.h"

/* The socket factory. There is none with attach cgroup: all functions accept NULL. */

struct sbx_factory;

enum sbx_factory_kind {
	SBX_FACTORY_UDP = 0,
	SBX_FACTORY_TCP,
	SBX_N_FACTORY_KINDS,
};

/* An answer: a socket (@fd_take, taken over) or -1, and the cookie of the request. */
typedef void (*sbx_factory_fn)(void *userdata, uint32_t cookie, int fd_take);

/* *ret_factory is half made after an error, and to be freed all the same. 0 or -errno. */
int sbx_factory_new(struct sbx_context *ctx, struct sbx_factory **ret_factory);
void sbx_factory_free(struct sbx_factory *f);
/* Sets the function that gets the answers of one kind. Both are set before the loop runs. */
void sbx_factory_on(struct sbx_factory *f, enum sbx_factory_kind kind, sbx_factory_fn made,
		    void *userdata);

/* Ask for a socket; answers come in the order of the requests. The cookie is filled in and
 * returned; 0: the factory cannot be asked now. */
uint32_t sbx_factory_ask_udp(struct sbx_factory *f, struct sbx_msg_udp_socket *m);
uint32_t sbx_factory_ask_tcp(struct sbx_factory *f, struct sbx_msg_tcp_socket *m);

#endif
