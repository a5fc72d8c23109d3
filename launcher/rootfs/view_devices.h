/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ROOTFS_VIEW_DEVICES_H
#define SBX_LAUNCHER_ROOTFS_VIEW_DEVICES_H

#include "base/err.h"
#include "launcher/view/draft.h"

/* Append the host's device nodes that are asked for and may be granted, each at its own path.
 * Behind /dev, before it turns read-only. 0; SBX_EXIT_REFUSED with @errs; -errno. */
int sbx_view_add_devices(const struct sbx_draft *d, struct sbx_err_list *errs);

#endif
