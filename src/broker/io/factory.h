/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_IO_FACTORY_H
#define SBX_BROKER_IO_FACTORY_H

#include <stdint.h>

#include "broker/io/broker.h"

/* The socket factory: b->factory, NULL with attach cgroup. */

int sbx_factory_new(struct sbx_broker *b); /* 0 or -errno */
void sbx_factory_free(struct sbx_factory *f);

/* Ask for a socket; what is asked first is answered first, by the function below of that kind. The cookie is filled in
 * and returned, never 0; 0: it cannot be asked for now. @f may be NULL. */
uint32_t sbx_factory_ask_udp(struct sbx_factory *f, struct sbx_msg_udp_socket *m);
uint32_t sbx_factory_ask_tcp(struct sbx_factory *f, struct sbx_msg_tcp_socket *m);

/* An answer: a socket (@fd_take, taken over) or -1, and the cookie of the request. */
void sbx_udp_made(struct sbx_broker *b, uint32_t cookie, int fd_take); /* udp_flow.c */
void sbx_tcp_made(struct sbx_broker *b, uint32_t cookie, int fd_take); /* tcp_publish.c */

#endif
