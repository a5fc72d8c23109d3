/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_IO_NFLOG_H
#define SBX_BROKER_IO_NFLOG_H

#include "broker/io/context.h"

/* The refusals of the sandbox's packet filter. All functions accept NULL. */

struct sbx_nflog;

/* *ret_nflog stays NULL where CONFIG brought no packet log. 0 or -errno. */
int sbx_nflog_new(struct sbx_context *ctx, struct sbx_nflog **ret_nflog);
void sbx_nflog_free(struct sbx_nflog *n);
/* From now on packets are read as they come. 0 or -ENOMEM. */
int sbx_nflog_start(struct sbx_nflog *n);
/* Reads all packets that are there now. */
void sbx_nflog_drain(struct sbx_nflog *n);
/* Reads all packets when nothing more can come, and counts those that were lost at the end. */
void sbx_nflog_finish(struct sbx_nflog *n);

#endif
