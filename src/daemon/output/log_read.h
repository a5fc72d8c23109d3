/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_OUTPUT_LOG_READ_H
#define SBX_DAEMON_OUTPUT_LOG_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/output/frame.h"

/*
 * A reader of a log that its writer may still extend. It holds two descriptors and no memory: the
 * bytes pass through a buffer that all readers share.
 */
struct sbx_log_reader {
	int dir_fd, fd;
	uint64_t segment; /* the offset of the file's first byte */
	uint64_t offset;  /* of the next frame */
};

/* The log in @dir from @offset on; inside of a frame means from that frame on. 0 or -errno
 * (-ENOENT). */
int sbx_log_reader_open(struct sbx_log_reader *r, const char *dir, uint64_t offset);
/* Accepts one that is zero but for descriptors of -1. */
void sbx_log_reader_close(struct sbx_log_reader *r);

/* Called with a frame, and the offset behind it. False: no more for now. */
typedef bool (*sbx_log_fn)(const struct sbx_frame *f, uint64_t next, void *userdata);

/*
 * Calls @fn for the frames that are there. *ret_lost: bytes that were removed in front of them, and
 * that were not told before; @fn is not called then. 0: all of them, or @fn had enough; 1: there
 * may be more; -errno (-EINVAL: the file is broken).
 */
int sbx_log_read(struct sbx_log_reader *r, sbx_log_fn fn, void *userdata, uint64_t *ret_lost);

/* Has the writer gone? Then all is there that will ever be. */
bool sbx_log_is_over(const struct sbx_log_reader *r);

#endif
