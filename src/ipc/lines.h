/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_IPC_LINES_H
#define SBX_IPC_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/*
 * Lines of a byte stream, however it is cut. PURE. The reader asks for room, reads into it, says
 * how much came, and takes whole lines. The bytes are not trusted: any byte but the newline may be
 * part of a line.
 */
struct sbx_lines {
	uint8_t *p;	  /* heap; NULL: nothing was read yet */
	size_t n, n_room; /* bytes that are held, and the room for them */
	size_t taken;	  /* bytes at the beginning that were given out as lines */
	size_t looked;	  /* bytes after @taken in which there is no newline */
	size_t n_max;	  /* of a line, its newline included */
};

void sbx_lines_init(struct sbx_lines *l, size_t n_max);
void sbx_lines_fini(struct sbx_lines *l);

/* Room for at least one byte. 0; -EMSGSIZE: the line that has begun is as long as a line may be;
 * -ENOMEM. Ends the life of the last line. */
int sbx_lines_room(struct sbx_lines *l, uint8_t **ret_p, size_t *ret_n);
/* @n bytes were written to the room. */
void sbx_lines_added(struct sbx_lines *l, size_t n);
/* The next line without its newline, borrowed until more room is asked for. 1; 0: it is not whole
 * yet. */
int sbx_lines_next(struct sbx_lines *l, struct sbx_span *ret_line);
/* Bytes of the line that has begun. */
size_t sbx_lines_n_begun(const struct sbx_lines *l);

#endif
