/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_MEMORY_H
#define SBX_HTTP_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Internal: memory that holds values, in blocks that are wiped and freed together. PURE. */

struct sbx_http_block {
	struct sbx_http_block *next;
	size_t n;
	uint8_t p[];
};

/* @n bytes, zeroed, owned by the list; NULL: out of memory. */
uint8_t *sbx_http_memory_take(struct sbx_http_block **list, size_t n);
/* Wipes and frees the whole list, and empties it. */
void sbx_http_memory_free(struct sbx_http_block **list);

#endif
