/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLEANUP_CGROUP_GC_H
#define SBX_LAUNCHER_CLEANUP_CGROUP_GC_H

#include <stdint.h>

#include "base/err.h"
#include "launcher/cleanup/gc_report.h"
#include "sys/cgroup/cgroup.h"

/* The sweeper of --gc for cgroups; the cleanup process calls it as well. 0 or -errno. */
int sbx_cgroup_gc(struct sbx_gc *gc, struct sbx_err *err);
/* The sweeper of --gc for rules of cgroups that somebody else removed. 0, or -errno with @err. */
int sbx_cgroup_gc_rules(struct sbx_gc *gc, struct sbx_err *err);
/* In the scope of sandbox @id with attach cgroup: sweep until its rules are gone or @timeout_ms
 * are over. Does nothing if this process is not in that scope, or may not change rules. */
void sbx_cgroup_gc_scope(const char *id, uint32_t timeout_ms);

/* How sbx_cgroup_sweep() removes the rules of a dead launcher's cgroup. NULL: this process may
 * not change rules. */
const struct sbx_cgroup_release *sbx_cgroup_gc_release(void);

#endif
