/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_PLAN_SOURCES_H
#define SBX_LAUNCHER_PROTECT_PLAN_SOURCES_H

#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"

/*
 * The files that configure a run: the profile and those it extends, the job, system.yaml, and bwrap
 * where it is not the distribution's. A command that could write them would weaken the next
 * sandbox. So below writable grants they, and the directories above them, are protected paths
 * (protect.c).
 */

struct sbx_draft;
struct sbx_facts;
struct sbx_options;

/* One such file, or a symlink on the way to one. */
struct sbx_plan_source {
	char *path;	/* absolute, without symlinks on the way */
	struct stat st; /* lstat(2) */
};

struct sbx_plan_sources {
	size_t n;
	struct sbx_plan_source *v;
};

/* Add @path, which was read; it may be relative to the caller's directory. Files in sbx's own
 * directories are left out: no grant can reach them. 0 or -errno with @err. */
int sbx_plan_sources_add(struct sbx_plan_sources *s, const struct sbx_facts *f, const char *path,
			 struct sbx_err *err);
/* Add the job's file and bwrap. 0 or -errno with @err. */
int sbx_plan_sources_add_rest(struct sbx_plan_sources *s, const struct sbx_options *o,
			      const struct sbx_facts *f, struct sbx_err *err);
void sbx_plan_sources_fini(struct sbx_plan_sources *s);

/* Refuse grants that would let the command write such a file by another path: a mount of the file
 * itself, or a hard link. 0, or SBX_EXIT_REFUSED with @errs. */
int sbx_plan_sources_check(const struct sbx_draft *d, struct sbx_err_list *errs);

#endif
