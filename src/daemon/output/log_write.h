/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_OUTPUT_LOG_WRITE_H
#define SBX_DAEMON_OUTPUT_LOG_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/output/frame.h"

/*
 * The log's writer. The log is a directory with at most two segments, "output.OFFSET" (16 hex
 * digits), each of at most half the bound. When the second is full the first is removed.
 *
 * Output for which the disk has no room is counted, and told by a LOST frame when there is room.
 * The first segment has room for some frames in advance.
 */
#define SBX_LOG_NAME	"output."
#define SBX_LOG_MIN_MAX (4 * (SBX_FRAME_HEADER + SBX_FRAME_MAX)) /* the least bound */

struct sbx_log_writer {
	int dir_fd, fd;
	uint64_t max;		/* bytes of both segments */
	uint64_t start, n;	/* the offset of the present segment, and its bytes */
	uint64_t older;		/* the offset of the other one */
	int has_older;
	uint64_t n_lost;	/* bytes that are not told yet */
};

/* Begins a log in the directory, whose descriptor is taken, also on failure. 0 or -errno. */
int sbx_log_writer_open(struct sbx_log_writer *w, int dir_fd_take, uint64_t max);
/* Appends a frame, or counts its payload as lost. */
void sbx_log_write(struct sbx_log_writer *w, const struct sbx_frame *f);
void sbx_log_writer_close(struct sbx_log_writer *w);

#endif
