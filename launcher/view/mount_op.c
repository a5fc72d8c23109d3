/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/view/mount_op.h"

#include "base/cleanup.h"

const char *sbx_mount_op_kind_str(enum sbx_mount_op_kind k)
{
	static const char *const names[] = {
		"bind", "etc", "merge",	 "overlay", "scratch",	  "tmpfs", "symlink", "dir",
		"proc", "dev", "device", "file",    "remount_ro", "mask",  "self_bind",
	};

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_MOUNT_OP_KINDS, "every kind has its name");
	return k < SBX_N_MOUNT_OP_KINDS ? names[k] : "?";
}

const char *sbx_mount_origin_str(enum sbx_mount_origin o)
{
	static const char *const names[] = { "view", "profile", "cwd",	"flag",
					     "mask", "protect", "cache" };

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_ORIGINS, "every origin has its name");
	return o < SBX_N_ORIGINS ? names[o] : "?";
}
