/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ipc/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 4096

void sbx_lines_init(struct sbx_lines *l, size_t n_max)
{
	*l = (struct sbx_lines){ .n_max = n_max };
}

void sbx_lines_fini(struct sbx_lines *l)
{
	free(l->p);
	*l = (struct sbx_lines){ .n_max = l->n_max };
}

size_t sbx_lines_n_begun(const struct sbx_lines *l)
{
	return l->n - l->taken;
}

/* Moves the line that has begun to the front. */
static void forget_taken(struct sbx_lines *l)
{
	if (l->taken == 0)
		return;
	memmove(l->p, l->p + l->taken, l->n - l->taken);
	l->n -= l->taken;
	l->taken = 0;
}

int sbx_lines_room(struct sbx_lines *l, uint8_t **ret_p, size_t *ret_n)
{
	size_t n_room = l->n_room ? l->n_room * 2 : ROOM_FIRST;
	uint8_t *p;

	forget_taken(l);
	if (l->n >= l->n_max)
		return -EMSGSIZE;
	if (l->n == l->n_room) {
		if (n_room > l->n_max)
			n_room = l->n_max;
		p = realloc(l->p, n_room);
		if (!p)
			return -ENOMEM;
		l->p = p;
		l->n_room = n_room;
	}
	*ret_p = l->p + l->n;
	*ret_n = l->n_room - l->n;
	return 0;
}

void sbx_lines_added(struct sbx_lines *l, size_t n)
{
	l->n += n;
}

int sbx_lines_next(struct sbx_lines *l, struct sbx_span *ret_line)
{
	size_t n = l->n - l->taken;
	const uint8_t *begin, *end;

	if (n == l->looked)
		return 0;
	begin = l->p + l->taken;
	end = memchr(begin + l->looked, '\n', n - l->looked);
	if (!end) {
		l->looked = n;
		return 0;
	}
	*ret_line = sbx_span(begin, (size_t)(end - begin));
	l->taken += ret_line->n + 1;
	l->looked = 0;
	return 1;
}
