/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_CGROUP_CGROUP_FIND_H
#define SBX_SYS_CGROUP_CGROUP_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/cgroup/cgroup_plan.h"

/* Where a sandbox's cgroup can be made. */

enum sbx_cgroup_source {
	SBX_CGROUP_NONE = 0,
	SBX_CGROUP_DELEGATED, /* where we run: a unit with Delegate=yes, a container's own */
	SBX_CGROUP_SCOPE,     /* a transient scope that systemd is asked for */
	SBX_CGROUP_DIRECT,    /* root without systemd: below SBX_CGROUP_SLICE */
	SBX_N_CGROUP_SOURCES,
};
const char *sbx_cgroup_source_str(enum sbx_cgroup_source s);

#define SBX_CGROUP_PATH_MAX 2048
#define SBX_CGROUP_SLICE    "sbx.slice"

struct sbx_cgroup_place {
	enum sbx_cgroup_source source;
	char path[SBX_CGROUP_PATH_MAX]; /* directory; SCOPE: "" until systemd made it */
	uint32_t controllers;		/* bits: what a child of it can be given */
	bool inside; /* we are in it ourselves, alone, and have to leave it for a child of it */
	bool bare;   /* one without any controller does too */
	bool shared; /* others are in it: no controller may be turned on (a threaded one would take our processes out) */
};

/* What the machine says; read once by sbx_cgroup_facts_read(), filled in by tests. */
struct sbx_cgroup_facts {
	char mount[64];		       /* of cgroup2; "": none */
	char own[SBX_CGROUP_PATH_MAX]; /* our cgroup below it ("/" is the mount itself); "": unknown */
	bool systemd;		       /* runs the machine */
};

/* 0 or -errno; nothing that is missing is an error. @bare: also where no cgroup can have a controller. */
int sbx_cgroup_facts_read(struct sbx_cgroup_facts *ret_f, bool bare);

/* The controllers that a file of a cgroup names, as bits; 0 where it cannot be read. */
uint32_t sbx_cgroup_controllers(int dir_fd, const char *file);
/* Where a sandbox's cgroup can be made without asking anybody: from our own cgroup up to the unit that was
 * delegated to us, the first that may be changed and can give its children controllers; root where no
 * systemd runs: below sbx.slice. NONE: nowhere. @bare: one without controllers will do. Looks, changes nothing. */
void sbx_cgroup_find(const struct sbx_cgroup_facts *f, bool bare, struct sbx_cgroup_place *ret_place);
/* The same for a scope that systemd has just made and put us in. 0 or -errno. */
int sbx_cgroup_place_scope(const struct sbx_cgroup_facts *f, const char *control_group,
			   struct sbx_cgroup_place *ret_place);
/* Call @fn for each directory where a sandbox's cgroup may have been made: from our own cgroup up to the delegated
 * unit, and sbx.slice. Scopes are left out: systemd removes them. */
void sbx_cgroup_each_place(const struct sbx_cgroup_facts *f, void (*fn)(const char *place, void *userdata),
			   void *userdata);

#endif
