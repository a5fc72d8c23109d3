/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_CGROUP_CGROUP_FIND_H
#define SBX_SYS_CGROUP_CGROUP_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/cgroup/cgroup_plan.h"

/* Finds the place where a sandbox's cgroup can be made. */

enum sbx_cgroup_source {
	SBX_CGROUP_NONE = 0,
	/* our own or one above: a unit with Delegate=yes, a container's own */
	SBX_CGROUP_DELEGATED,
	SBX_CGROUP_SCOPE,     /* a transient scope that systemd makes for us */
	SBX_CGROUP_DIRECT,    /* root without systemd: below SBX_CGROUP_SLICE */
	SBX_N_CGROUP_SOURCES,
};
const char *sbx_cgroup_source_str(enum sbx_cgroup_source s);

#define SBX_CGROUP_PATH_MAX 2048
#define SBX_CGROUP_SLICE    "sbx.slice"

struct sbx_cgroup_place {
	enum sbx_cgroup_source source;
	char path[SBX_CGROUP_PATH_MAX]; /* of the directory; SCOPE: "" until systemd made it */
	uint32_t controllers;		/* bits: the controllers that a child can be given */
	/* this process is alone in it, and has to leave it before a child can have controllers */
	bool inside;
	bool bare;   /* also look for a place without any controller */
	/* other processes are in it: turn on no controller (a threaded one would move ours out) */
	bool shared;
};

/* This machine's facts: read once by sbx_cgroup_facts_read(), or filled in by a test. */
struct sbx_cgroup_facts {
	char mount[64];		       /* mount point of cgroup2; "": none */
	/* our cgroup, relative to the mount ("/": the mount itself); "": unknown */
	char own[SBX_CGROUP_PATH_MAX];
	bool systemd;		       /* systemd is pid 1 of this machine */
};

/* 0 or -errno; a missing mount or file is no error. @bare: read our cgroup also where no cgroup
 * has a controller. */
int sbx_cgroup_facts_read(struct sbx_cgroup_facts *ret_f, bool bare);

/* The controllers that a file of a cgroup names, as bits; 0 where it cannot be read. */
uint32_t sbx_cgroup_controllers(int dir_fd, const char *file);
/* Find where a sandbox's cgroup can be made without asking systemd: the first cgroup, from our own
 * up to the unit that was delegated to us, that may be changed and can give controllers to its
 * children. Root, where systemd does not run, gets sbx.slice. NONE: there is no such place. @bare:
 * accept a cgroup without controllers. Changes nothing. */
void sbx_cgroup_find(const struct sbx_cgroup_facts *f, bool bare,
		     struct sbx_cgroup_place *ret_place);
/* The scope that systemd has just made and moved us into, as a place. 0 or -errno. */
int sbx_cgroup_place_scope(const struct sbx_cgroup_facts *f, const char *control_group,
			   struct sbx_cgroup_place *ret_place);
/* Call @fn for each directory where a sandbox's cgroup may have been made: from our own cgroup up
 * to the delegated unit, and sbx.slice. Scopes are left out: systemd removes them. */
void sbx_cgroup_each_place(const struct sbx_cgroup_facts *f,
			   void (*fn)(const char *place, void *userdata), void *userdata);

#endif
