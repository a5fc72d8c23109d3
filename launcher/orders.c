/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stage's orders: an arena that is mapped shared before the stage is cloned. Its pages are taken as
 * they are written, so the mapping may be large.
 */
#include "launcher/orders.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES (64u << 20)

struct sbx_orders *sbx_orders_new(void)
{
	struct sbx_orders *o = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (o == MAP_FAILED)
		return NULL;
	o->used = sizeof(*o);
	return o;
}

struct sbx_orders *sbx_orders_free(struct sbx_orders *o)
{
	if (o)
		munmap(o, ARENA_BYTES);
	return NULL;
}

/* @n bytes, aligned for anything; NULL when there is no room left. */
static void *take(struct sbx_orders *o, size_t n)
{
	size_t at = (o->used + 15) & ~(size_t)15;

	if (n > ARENA_BYTES - at)
		return NULL;
	o->used = at + n;
	return (uint8_t *)o + at;
}

static bool copy(struct sbx_orders *o, const void *from, size_t n, void *ret_to)
{
	void *to = take(o, n);

	if (to && n > 0)
		memcpy(to, from, n);
	memcpy(ret_to, &to, sizeof(to));
	return to;
}

static bool copy_text(struct sbx_orders *o, const char *text, size_t n, char **ret_to)
{
	*ret_to = NULL;
	return !text || copy(o, text, n, ret_to);
}

static bool copy_op(struct sbx_orders *o, const struct sbx_mount_op *from, struct sbx_mount_op *to)
{
	const char *resolved = from->source.resolved;

	*to = *from;
	to->source.fd = -1;
	return copy_text(o, from->dest, strlen(from->dest) + 1, &to->dest) &&
	       copy_text(o, from->text, from->n_text + 1, &to->text) &&
	       copy_text(o, resolved, resolved ? strlen(resolved) + 1 : 0, &to->source.resolved);
}

int sbx_orders_fill(struct sbx_orders *o, const struct sbx_plan *p, const char *args, size_t n_args)
{
	o->carries = p->carries;
	o->open_files = p->profile->limits.open_files;
	o->wall_ms = p->profile->limits.wall_time_ms;
	o->nft = p->nft;
	o->n_mounts = p->n_mounts;
	o->n_args = n_args;
	o->mounts = take(o, p->n_mounts * sizeof(*o->mounts));
	if (!o->mounts || !copy(o, args, n_args, &o->args) ||
	    !copy(o, p->nft.cidrs, p->nft.n_cidrs * sizeof(*p->nft.cidrs), &o->nft.cidrs))
		return -E2BIG;
	for (size_t i = 0; i < p->n_mounts; i++)
		if (!copy_op(o, &p->mounts[i], &o->mounts[i]))
			return -E2BIG;
	return 0;
}
