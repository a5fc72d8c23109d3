/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_CGROUP_H
#define SBX_LAUNCHER_RUN_CGROUP_H

#include "launcher/cleanup/gc.h"
#include "launcher/run/run.h"

/* The sandbox's control group: made before anything that runs in it, ended with it. */

/* Will there be one, as far as can be told before the plan? Then the stage must wait for it. */
bool sbx_cgroup_expected(const struct sbx_facts *f);

/* The step. Where there is no place for one, or it lacks a controller: with limits.enforce strict an error,
 * else a warning on stderr. 0 or -errno with r->err. */
int sbx_cgroup_begin(struct sbx_run *r);
/* Kill what is in it, read what it used, and say so where it was killed for its memory. */
void sbx_cgroup_end(struct sbx_run *r);

/* A sweeper of --gc, and what a guard does. */
int sbx_cgroup_gc(struct sbx_gc *gc, struct sbx_err *err);
/* In the scope that was made for sandbox @id of attach cgroup: sweep, until its rules are gone or @timeout_ms are over.
 * Where we are elsewhere, or have no right over rules: nothing. */
void sbx_cgroup_gc_scope(const char *id, uint32_t timeout_ms);

#endif
