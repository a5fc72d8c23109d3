/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ROOTFS_VIEW_DEVICES_H
#define SBX_LAUNCHER_ROOTFS_VIEW_DEVICES_H

#include "base/err.h"
#include "launcher/view/draft.h"

/* Append the requested device nodes that may be granted, each at its own path. Called after /dev is
 * made and before it turns read-only. 0; SBX_EXIT_REFUSED with @errs; -errno. */
int sbx_view_add_devices(const struct sbx_draft *d, struct sbx_err_list *errs);

#endif
