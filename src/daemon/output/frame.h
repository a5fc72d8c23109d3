/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_OUTPUT_FRAME_H
#define SBX_DAEMON_OUTPUT_FRAME_H

#include <stdint.h>

#include "base/span.h"

/*
 * The log of a sandbox's output: frames, one after the other. PURE.
 *
 * A frame is a header of SBX_FRAME_HEADER bytes (mark, kind, u16 0, u32 length, u64 time; network
 * byte order), and its payload. A place in the log is its offset from the log's beginning; it stays
 * the same when old frames are removed.
 */
#define SBX_FRAME_HEADER 16
#define SBX_FRAME_MAX	 32768 /* bytes of a payload */
#define SBX_FRAME_WARNINGS_MAX 4096 /* bytes of a READY frame's */

enum sbx_frame_kind {
	SBX_FRAME_STDOUT = 1,
	SBX_FRAME_STDERR,
	SBX_FRAME_LOST,	 /* u64: bytes of output for which the disk had no room */
	SBX_FRAME_READY, /* the command was released; sbx-run's warnings, a line each */
	SBX_FRAME_END,	 /* u32 exit status, u32 enum sbx_frame_end; the last one */
};

enum sbx_frame_end {
	SBX_FRAME_ENDED = 0,
	SBX_FRAME_LATE, /* it was not released in time, and ended for that */
};

struct sbx_frame {
	enum sbx_frame_kind kind;
	uint64_t time_ms; /* CLOCK_REALTIME */
	struct sbx_span payload;
};

void sbx_frame_header(const struct sbx_frame *f, uint8_t out[SBX_FRAME_HEADER]);
/* Takes the frame at the beginning of @in. Its bytes; 0: more are needed; -EINVAL: it is none. */
int sbx_frame_parse(struct sbx_span in, struct sbx_frame *ret_frame);

/* The numbers of a LOST and an END frame; 0 if it has none. */
uint64_t sbx_frame_lost(const struct sbx_frame *f);
void sbx_frame_end(const struct sbx_frame *f, uint32_t *ret_status, enum sbx_frame_end *ret_end);

/* The bytes at the end of @text that begin a UTF-8 character and are not all of it: 0 to 3. */
size_t sbx_frame_unfinished(struct sbx_span text);

#endif
