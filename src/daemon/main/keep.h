/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_MAIN_KEEP_H
#define SBX_DAEMON_MAIN_KEEP_H

#include "base/err.h"
#include "launcher/host/facts.h"
#include "store/store_keep.h"

/* Which events stay, by the system policy (events.keep_days, events.max_rows). 0, or -errno with
 * @err: then *ret_keep says that all do. */
int sbx_keep_read(const struct sbx_facts *f, struct sbx_store_keep *ret_keep, struct sbx_err *err);

#endif
