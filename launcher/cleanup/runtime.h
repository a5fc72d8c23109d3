/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLEANUP_RUNTIME_H
#define SBX_LAUNCHER_CLEANUP_RUNTIME_H

#include "base/err.h"
#include "launcher/host/facts.h"

/* The runtime directory of one sandbox. */
struct sbx_runtime {
	char path[512]; /* "" before it exists */
	int fd;		/* the directory, locked */
};
#define SBX_RUNTIME_INIT ((struct sbx_runtime){ .fd = -1 })

/* Unlocks the directory and leaves it in place. A fork of the launcher calls this as well: it
 * closes the copy, and the launcher keeps the lock. */
void sbx_runtime_fini(struct sbx_runtime *r);

/* Make the directory of sandbox @id, mode 0700, locked; and the directory above it, if that is
 * missing. 0 or -errno with @err (-EEXIST, -EWOULDBLOCK, -ESTALE: another sandbox has this id). */
int sbx_runtime_make(struct sbx_runtime *r, const struct sbx_facts *f, const char *id,
		     struct sbx_err *err);
/* Remove the directory. The sandbox's row must have its final state: sweeps go by the directory. */
void sbx_runtime_remove(struct sbx_runtime *r);

#endif
