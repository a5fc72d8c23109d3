/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_VIEW_PROTECT_H
#define SBX_LAUNCHER_PROTECT_VIEW_PROTECT_H

#include "launcher/protect/protections.h"
#include "launcher/rootfs/draft.h"

/*
 * Protected paths of writable grants: read-only where they are there, covered where they are not. For one grant
 * after the other: begin, what the walk finds, end. -errno is an error everywhere; -ECANCELED, with a line in @errs,
 * a refusal.
 */
struct sbx_protect;

struct sbx_protect *sbx_protect_new(const struct sbx_draft *d); /* NULL: out of memory */
struct sbx_protect *sbx_protect_free(struct sbx_protect *x);

/* What to look for: the first parts of protected paths, borrowed from the plan. How many were put into @names. */
size_t sbx_protect_names(const struct sbx_protect *x, const char **names, size_t n_max);

/* The grant is mount @grant of the plan. 0 or -errno. */
int sbx_protect_begin(struct sbx_protect *x, size_t grant);
/* @name was found at @path below it. Positive: there is nothing to look for below. */
int sbx_protect_found(struct sbx_protect *x, const char *path, const char *name);
/* @path below the mount @op is a `.git` that the command cannot write: what it leads to may be in a writable grant. 0 or
 * -errno. */
int sbx_protect_led(struct sbx_protect *x, const struct sbx_mount_op *op, const char *path);
/* Pin what is above @path, below the grant. 0 or -errno. */
int sbx_protect_way(struct sbx_protect *x, const char *path);
/* Hold what the run is configured by, where it lies below the grant. 0 or -errno. */
int sbx_protect_sources(struct sbx_protect *x);
/* Append what protects it, unless @r, of what was before, is -E2BIG. 0 or -errno. */
int sbx_protect_end(struct sbx_protect *x, int r, struct sbx_err_list *errs);

#endif
