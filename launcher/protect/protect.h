/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_PROTECT_H
#define SBX_LAUNCHER_PROTECT_PROTECT_H

#include "launcher/protect/protections.h"
#include "launcher/view/draft.h"

/*
 * Protected paths of writable grants: existing ones become read-only, absent ones are covered. Call
 * for each grant: _begin(), _found() for each name that the scan finds, _end(). -errno is an error
 * everywhere; -ECANCELED is a refusal, with a line in @errs.
 */
struct sbx_protect;

struct sbx_protect *sbx_protect_new(const struct sbx_draft *d); /* NULL: out of memory */
struct sbx_protect *sbx_protect_free(struct sbx_protect *x);

/* Fill @names with the names that a scan looks for: first parts of protected paths, borrowed from
 * the plan. Returns how many. */
size_t sbx_protect_names(const struct sbx_protect *x, const char **names, size_t n_max);

/* The grant is mount @grant of the plan. 0 or -errno. */
int sbx_protect_begin(struct sbx_protect *x, size_t grant);
/* The scan found @name at @path below the grant. Positive: do not scan below it; 0; -errno. */
int sbx_protect_found(struct sbx_protect *x, const char *path, const char *name);
/* @path below the mount @op is a `.git` that the command cannot write. Protect the git directory
 * that it leads to, which may be in a writable grant. 0 or -errno. */
int sbx_protect_led(struct sbx_protect *x, const struct sbx_mount_op *op, const char *path);
/* Self-bind the directories above @path, below the grant. 0 or -errno. */
int sbx_protect_way(struct sbx_protect *x, const char *path);
/* Hold the files that configure this run, where they lie below the grant. 0 or -errno. */
int sbx_protect_sources(struct sbx_protect *x);
/* Append the overmounts of the grant. @r is the result of the calls before: -E2BIG becomes a
 * refusal. 0 or -errno. */
int sbx_protect_end(struct sbx_protect *x, int r, struct sbx_err_list *errs);

#endif
