/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_CGROUP_CGROUP_PLAN_H
#define SBX_SYS_CGROUP_CGROUP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names, files and values of control groups: no kernel needed. All of it is PURE. */

/* The controllers we use, as bits, and their kernel names. */
enum sbx_cgroup_controller {
	SBX_CGROUP_CPU,
	SBX_CGROUP_MEMORY,
	SBX_CGROUP_PIDS,
	SBX_CGROUP_IO,
	SBX_N_CGROUP_CONTROLLERS,
};
#define SBX_CGROUP_BIT(c) (1u << (c))
const char *sbx_cgroup_controller_str(enum sbx_cgroup_controller c);

/* PURE. The "0::" line of /proc/PID/cgroup (cgroups(7)). False: none, or not below the mount
 * ("/../"). */
bool sbx_cgroup_parse_own(const char *text, char *ret_own, size_t n);
/* PURE. The words of cgroup.controllers as bits; controllers that we do not use are left out. */
uint32_t sbx_cgroup_parse_controllers(const char *text);
/* PURE. Is this the name of a systemd unit's cgroup? */
bool sbx_cgroup_is_unit(const char *name);

/* PURE. The number after @key in a flat-keyed or PSI file. @key is a word, or two with a space
 * between ("some total"). -1: @key is not there. */
int64_t sbx_cgroup_parse_value(const char *text, const char *key);

/* Our own processes in the sandbox's cgroup: the stage, bwrap and sbx-init. */
#define SBX_CGROUP_PIDS_OURS 3

struct sbx_cgroup_limits { /* 0: not asked */
	uint64_t memory_bytes;
	uint32_t cpus_milli, pids, io_weight;
};

/* One value to write to one file. */
struct sbx_cgroup_write {
	const char *file;
	enum sbx_cgroup_controller controller;
	bool optional; /* a kernel may lack the file */
	bool done;     /* it was written */
	char value[48];
};
#define SBX_CGROUP_WRITES_MAX 8

/* PURE. The writes for the limits @l in a cgroup with @controllers; limits without their
 * controller are left out. */
size_t sbx_cgroup_plan(const struct sbx_cgroup_limits *l, uint32_t controllers,
		       struct sbx_cgroup_write v[SBX_CGROUP_WRITES_MAX]);

#endif
