/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_IO_OWN_H
#define SBX_BROKER_IO_OWN_H

#include "broker/io/context.h"

/* The host's own addresses, kept up to date in ctx->core. */

struct sbx_own;

/* Before seccomp. *ret_own is half made after an error, and to be freed all the same. 0 or
 * -errno. */
int sbx_own_new(struct sbx_context *ctx, struct sbx_own **ret_own);
void sbx_own_free(struct sbx_own *o);

#endif
