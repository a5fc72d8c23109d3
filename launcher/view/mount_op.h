/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_VIEW_MOUNT_OP_H
#define SBX_LAUNCHER_VIEW_MOUNT_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/fs/path.h"

/* One mount of the sandbox's file system: data, made by planning and carried out by the stage. */

#define SBX_GRANTS_MAX 64   /* mounts the profile and the flags ask for */
#define SBX_MOUNTS_MAX 2048 /* of all kinds, masks among them */

enum sbx_mount_op_kind {
	SBX_MOUNT_BIND,	   /* source, dest, writable */
	SBX_MOUNT_ETC,	   /* dest; its source is made later (sbx_etc_prepare()) */
	SBX_MOUNT_MERGE,   /* source, dest: what dest has already, and the source's entries beneath;
			      read-only */
	SBX_MOUNT_OVERLAY, /* source, dest: writes go to the scratch space */
	SBX_MOUNT_SCRATCH, /* dest, mode: a directory of the scratch space */
	SBX_MOUNT_TMPFS,   /* dest, size, mode */
	SBX_MOUNT_SYMLINK, /* text, dest */
	SBX_MOUNT_DIR,	   /* dest, mode */
	SBX_MOUNT_PROC,	   /* dest */
	SBX_MOUNT_DEV,	   /* dest */
	SBX_MOUNT_DEVICE,  /* source, a character device of the host's, dest in /dev */
	SBX_MOUNT_FILE,	   /* text -> a file at dest; with fill also over a file that is there */
	SBX_MOUNT_REMOUNT_RO, /* dest: what was mounted there is read-only from here on */
	SBX_MOUNT_MASK, /* dest, source.st; text: an empty file or directory over what is there
			   (tree_overmount.h) */
	SBX_MOUNT_SELF_BIND, /* dest, source.st, writable: mounts dest over itself, so that it
				cannot be renamed */
	SBX_N_MOUNT_OP_KINDS,
};
const char *sbx_mount_op_kind_str(enum sbx_mount_op_kind k);

/* The origin of a mount: the flag, key or rule that asked for it. */
enum sbx_mount_origin {
	SBX_ORIGIN_VIEW = 0, /* every sandbox has it */
	SBX_ORIGIN_PROFILE,
	SBX_ORIGIN_CWD,
	SBX_ORIGIN_FLAG,
	SBX_ORIGIN_MASK,    /* hides sbx's own state, blocked segments, denied commands */
	SBX_ORIGIN_PROTECT, /* protected paths: files that the host's tools would execute later */
	SBX_ORIGIN_CACHE,   /* --cache */
	SBX_N_ORIGINS,
};
const char *sbx_mount_origin_str(enum sbx_mount_origin o);

/* A FILE whose text only the run knows (setup.h). */
enum sbx_mount_fill {
	SBX_FILL_NONE = 0,
	SBX_FILL_TRUST, /* the trust store, with the sandbox's own authority */
	SBX_FILL_JAVA,	/* the same as PKCS#12 */
	SBX_N_FILLS,
};

struct sbx_mount_op {
	enum sbx_mount_op_kind kind;
	enum sbx_mount_origin origin;
	bool writable;
	bool noexec;  /* BIND, OVERLAY, SCRATCH, TMPFS: nothing there executes */
	bool is_home; /* BIND: a home that stays. A place to mount on that is missing there is made
			 in it */
	bool idmap;   /* BIND, OVERLAY: the source's owner appears as the sandbox's user, and the
			 other way round */
	/* with idmap: the mount, made and not put at a place yet (owned by the plan); else -1 */
	int mount_fd;
	/* BIND, MERGE, OVERLAY, DEVICE: the judged object (fd owned by the plan); MASK, SELF_BIND:
	 * only its st */
	struct sbx_path source;
	char *text; /* SYMLINK target, FILE content; MASK: what the file says instead of nothing */
	size_t n_text;
	enum sbx_mount_fill fill; /* FILE */
	char *dest;
	uint64_t size_bytes;
	mode_t mode;
};

#endif
