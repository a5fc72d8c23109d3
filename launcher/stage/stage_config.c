/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stage's config: an arena that is mapped shared before the stage is cloned. The kernel takes a
 * page when it is first written, so the mapping may be large. A privileged launcher shares the
 * mapping with a process of the sandbox's user: the launcher writes to it and never reads a size or
 * a pointer back.
 */
#include "launcher/stage/stage_config.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES (64u << 20)

struct sbx_stage_config *sbx_stage_config_new(void)
{
	struct sbx_stage_config *o = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return o == MAP_FAILED ? NULL : o;
}

struct sbx_stage_config *sbx_stage_config_free(struct sbx_stage_config *o)
{
	if (o)
		munmap(o, ARENA_BYTES);
	return NULL;
}

/* The bytes of the mapping that are taken. Kept outside the mapping, because the stage may change
 * it. */
struct arena {
	uint8_t *base;
	size_t used;
};

/* @n bytes, aligned for anything; NULL when there is no room left. */
static void *take(struct arena *a, size_t n)
{
	size_t at = (a->used + 15) & ~(size_t)15;

	if (at > ARENA_BYTES || n > ARENA_BYTES - at)
		return NULL;
	a->used = at + n;
	return a->base + at;
}

/* NULL, with *ok cleared, when there is no room left. */
static void *copy(struct arena *a, const void *from, size_t n, bool *ok)
{
	void *to = take(a, n);

	if (!to)
		*ok = false;
	else if (n > 0)
		memcpy(to, from, n);
	return to;
}

static char *copy_text(struct arena *a, const char *text, size_t n, bool *ok)
{
	return text ? copy(a, text, n, ok) : NULL;
}

static void copy_op(struct arena *a, const struct sbx_mount_op *from, const struct stat *st,
		    void *to, bool *ok)
{
	const char *resolved = from->source.resolved;
	struct sbx_mount_op op = *from;

	op.source.fd = op.mount_fd = -1;
	op.source.st = *st;
	op.dest = copy_text(a, from->dest, strlen(from->dest) + 1, ok);
	op.text = copy_text(a, from->text, from->n_text + 1, ok);
	op.source.resolved = copy_text(a, resolved, resolved ? strlen(resolved) + 1 : 0, ok);
	memcpy(to, &op, sizeof(op));
}

int sbx_stage_config_fill(struct sbx_stage_config *o, const struct sbx_plan *p,
			  const struct sbx_setup *s, const struct sbx_placeholders *placeholders,
			  const char *args, size_t n_args)
{
	struct arena a = { (uint8_t *)o, sizeof(*o) };
	uint8_t *mounts = take(&a, p->view.n_mounts * sizeof(*p->view.mounts));
	bool ok = mounts;
	struct sbx_stage_config all = {
		.may_carry = p->may_carry,
		.host_network = p->attach.on,
		.open_files = p->profile->limits.open_files,
		.wall_ms = p->profile->limits.wall_time_ms,
		.scratch_bytes = p->view.scratch_bytes,
		.keep = p->keep.path != NULL,
		.scratch_home = p->options->scratch ? copy_text(&a, p->facts->home,
								strlen(p->facts->home) + 1, &ok) :
						      NULL,
		.nft = p->nft,
		.n_mounts = p->view.n_mounts,
		.mounts = (struct sbx_mount_op *)(void *)mounts,
		.args = copy(&a, args, n_args, &ok),
		.n_args = n_args,
	};

	for (size_t i = 0; i < p->n_publish; i++)
		all.publish[all.n_publish++] = p->publish[i].inside;
	all.nft.cidrs = copy(&a, p->nft.cidrs, p->nft.n_cidrs * sizeof(*p->nft.cidrs), &ok);
	for (size_t i = 0; i < p->view.n_mounts && ok; i++) {
		const struct sbx_mount_op op = sbx_setup_mount(s, &p->view.mounts[i]);
		const struct stat *st = op.kind == SBX_MOUNT_ETC ?
						&op.source.st :
						sbx_placeholders_stat(placeholders, &p->view, i);

		copy_op(&a, &op, st, mounts + i * sizeof(*p->view.mounts), &ok);
	}
	if (!ok)
		return -E2BIG;
	memcpy(o, &all, sizeof(all));
	return 0;
}
