/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/output/frame.h"

#include <errno.h>

#define MARK 0xb5

void sbx_frame_header(const struct sbx_frame *f, uint8_t out[SBX_FRAME_HEADER])
{
	struct sbx_writer w = sbx_writer(out, SBX_FRAME_HEADER);

	sbx_write_u8(&w, MARK);
	sbx_write_u8(&w, (uint8_t)f->kind);
	sbx_write_u16(&w, 0);
	sbx_write_u32(&w, (uint32_t)f->payload.n);
	sbx_write_u64(&w, f->time_ms);
}

int sbx_frame_parse(struct sbx_span in, struct sbx_frame *ret_frame)
{
	struct sbx_reader r = sbx_reader(in);
	uint8_t mark = sbx_read_u8(&r), kind = sbx_read_u8(&r);
	uint16_t zero = sbx_read_u16(&r);
	uint32_t n = sbx_read_u32(&r);
	uint64_t time_ms = sbx_read_u64(&r);

	if (r.failed)
		return 0;
	if (mark != MARK || zero != 0 || kind < SBX_FRAME_STDOUT || kind > SBX_FRAME_END ||
	    n > SBX_FRAME_MAX)
		return -EINVAL;
	if (in.n - r.pos < n)
		return 0;
	ret_frame->kind = (enum sbx_frame_kind)kind;
	ret_frame->time_ms = time_ms;
	ret_frame->payload = sbx_span(in.p + r.pos, n);
	return (int)(SBX_FRAME_HEADER + n);
}

uint64_t sbx_frame_lost(const struct sbx_frame *f)
{
	struct sbx_reader r = sbx_reader(f->payload);

	return sbx_read_u64(&r);
}

void sbx_frame_end(const struct sbx_frame *f, uint32_t *ret_status, enum sbx_frame_end *ret_end)
{
	struct sbx_reader r = sbx_reader(f->payload);

	*ret_status = sbx_read_u32(&r);
	*ret_end = sbx_read_u32(&r) == SBX_FRAME_LATE ? SBX_FRAME_LATE : SBX_FRAME_ENDED;
}

size_t sbx_frame_unfinished(struct sbx_span text)
{
	for (size_t n = 1; n <= 3 && n <= text.n; n++) {
		uint8_t c = text.p[text.n - n];

		if ((c & 0xc0) == 0x80)
			continue; /* inside of a character */
		if ((c & 0xe0) == 0xc0)
			return n < 2 ? n : 0;
		if ((c & 0xf0) == 0xe0)
			return n < 3 ? n : 0;
		return (c & 0xf8) == 0xf0 ? n : 0;
	}
	return 0;
}
