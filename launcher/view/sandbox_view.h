/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_VIEW_SANDBOX_VIEW_H
#define SBX_LAUNCHER_VIEW_SANDBOX_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/view/mount_op.h"

/* The sandbox's file system as planned: the list of mounts and what belongs to it. */

/* The kinds of root (view_root.h). */
enum sbx_root_kind { SBX_ROOT_HOST = 0, SBX_ROOT_MINIMAL, SBX_ROOT_DIR, SBX_N_ROOT_KINDS };

struct sbx_plan_root {
	enum sbx_root_kind kind;
	struct sbx_path dir; /* DIR: the judged directory (fd owned by the plan) */
	size_t n_parts;	     /* DIR: entries of it that are mounted one by one */
};

struct sbx_view {
	struct sbx_plan_root root;
	size_t n_mounts;
	struct sbx_mount_op *mounts; /* in the order they are made; room for SBX_MOUNTS_MAX */
	uint64_t scratch_bytes;	     /* of the scratch space (overlay.h); 0: no mount needs it */
	bool tmp_shared,
		home_shared; /* in it: limits.tmp and limits.home bound nothing by themselves */
	bool tmpfs_shared;   /* directories of --tmpfs are in it: the sizes asked for did not fit */
	int host_etc_fd;     /* O_PATH of the host's /etc, where sbx_etc_prepare() copies from */
	char *chdir;	     /* in the sandbox */
	char *hostname;
};

void sbx_view_init(struct sbx_view *v);
void sbx_view_fini(struct sbx_view *v);

#endif
