/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RESOURCES_CGROUP_H
#define SBX_LAUNCHER_RESOURCES_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/plan/plan.h"
#include "sys/cgroup/cgroup.h"

/* The sandbox's control group: made before any process of the sandbox, removed after the last
 * one. */
struct sbx_cgroup_run {
	struct sbx_cgroup dirs;	      /* command_fd is -1 where there is no cgroup */
	struct sbx_cgroup_usage usage; /* from sbx_cgroup_end() on */
	enum sbx_cgroup_source source;
	bool shared; /* other processes are in the place, so it gives no controller */
	char path[SBX_CGROUP_PATH_MAX + 64];
	uint32_t limited; /* SBX_CGROUP_BITs of the limits that the cgroup holds */
	uint32_t unheld;  /* of those that were asked for, and that nothing holds */
};

void sbx_cgroup_run_init(struct sbx_cgroup_run *c);
/* The undo of `cgroup`: removes the directories, which must be empty. Does nothing where none was
 * made. */
void sbx_cgroup_run_fini(struct sbx_cgroup_run *c);

/* From facts alone, before there is a plan: will the run have a cgroup? Then the stage must be
 * started after it. */
bool sbx_cgroup_expected(const struct sbx_facts *f);

/* The step `cgroup`. No place for a cgroup is an error only for attach cgroup. 0 or -errno with
 * @err. */
int sbx_cgroup_begin(struct sbx_cgroup_run *c, const struct sbx_plan *p, struct sbx_err *err);
/* The step `limits`. A limit that nothing holds is an error with limits.enforce strict, else a
 * warning on stderr. 0 or -errno with @err. */
int sbx_cgroup_limit(struct sbx_cgroup_run *c, const struct sbx_plan *p, struct sbx_err *err);
/* The warning for the @i-th limit in @unheld, without the program's name. False: there are no
 * more. */
#define SBX_CGROUP_WARNING_MAX 512
bool sbx_cgroup_warning(const struct sbx_cgroup_run *c, const struct sbx_facts *f, size_t i,
			char out[SBX_CGROUP_WARNING_MAX]);
/* The undo of `limits`: kills the processes in the cgroup and reads what the sandbox used. */
void sbx_cgroup_end(struct sbx_cgroup_run *c);

#endif
