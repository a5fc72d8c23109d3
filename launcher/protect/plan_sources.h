/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_PLAN_SOURCES_H
#define SBX_LAUNCHER_PROTECT_PLAN_SOURCES_H

#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"

/*
 * The files that a run is configured by: profile, what it extends, job, system.yaml, and bwrap where it is not the
 * distribution's. What the command could write there would decide how the next run is held, so below writable grants
 * they and the way to them are protected paths (view_protect.c).
 */

struct sbx_draft;
struct sbx_facts;
struct sbx_options;

/* One of them, or a symlink on the way to one. */
struct sbx_plan_source {
	char *path;	/* absolute, without symlinks on the way */
	struct stat st; /* of a symlink: its own */
};

struct sbx_plan_sources {
	size_t n;
	struct sbx_plan_source *v;
};

/* @path, relative to the caller's directory perhaps, was read. Nothing is noted of what no grant can reach: what lies in
 * sbx's own directories. 0 or -errno with @err. */
int sbx_plan_sources_add(struct sbx_plan_sources *s, const struct sbx_facts *f, const char *path, struct sbx_err *err);
/* The job's file and bwrap. 0 or -errno with @err. */
int sbx_plan_sources_add_rest(struct sbx_plan_sources *s, const struct sbx_options *o, const struct sbx_facts *f,
			      struct sbx_err *err);
void sbx_plan_sources_fini(struct sbx_plan_sources *s);

/* Refuse grants that would let the command write one of them past its path: a mount of the file itself, a hard link. 0,
 * or SBX_EXIT_REFUSED with @errs. */
int sbx_plan_sources_check(const struct sbx_draft *d, struct sbx_err_list *errs);

#endif
