/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Blocks of memory that are wiped; see memory.h. */

#include "http/memory.h"

#include <stdlib.h>
#include <string.h>

uint8_t *sbx_http_memory_take(struct sbx_http_block **list, size_t n)
{
	struct sbx_http_block *b;

	if (n > SIZE_MAX - sizeof(*b))
		return NULL;
	b = calloc(1, sizeof(*b) + n);
	if (!b)
		return NULL;
	b->next = *list;
	b->n = n;
	*list = b;
	return b->p;
}

void sbx_http_memory_free(struct sbx_http_block **list)
{
	while (*list) {
		struct sbx_http_block *b = *list;

		*list = b->next;
		explicit_bzero(b->p, b->n);
		free(b);
	}
}
