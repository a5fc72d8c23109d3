/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_CGROUP_H
#define SBX_LAUNCHER_RUN_CGROUP_H

#include "launcher/run/run.h"

/* The sandbox's control group: made before anything that runs in it, ended with it. */

/* Will there be one, as far as can be told before the plan? Then the stage must wait for it. */
bool sbx_cgroup_expected(const struct sbx_facts *f);

/* The step. Where there is no place for one, or it lacks a controller: with limits.enforce strict an error,
 * else a warning on stderr. 0 or -errno with r->err. */
int sbx_cgroup_begin(struct sbx_run *r);
/* Kill what is in it, read what it used, and say so where it was killed for its memory. */
void sbx_cgroup_end(struct sbx_run *r);

#endif
