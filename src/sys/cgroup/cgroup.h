/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_CGROUP_CGROUP_H
#define SBX_SYS_CGROUP_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Control groups, version 2 (Documentation/admin-guide/cgroup-v2.rst). A sandbox has a directory of its
 * own, sbx-ID, in the place that sbx_cgroup_find() found:
 *
 *	sbx-ID/			locked (flock) for the launcher's life: a directory that is not is a leftover
 *	sbx-ID/command/		the stage and all that the sandbox is; has the limits
 *	sbx-ID/command/run/	with attach cgroup they are here (sbx_cgroup_settle)
 *	sbx-ID/broker/		sbx-broker, in small limits of its own
 *	sbx-ID/launcher/	the launcher, only where it had to leave the place: a cgroup that gives
 *				controllers to its children may hold no process
 */

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

/* --- finding a place --- */

/* What the machine says; read once by sbx_cgroup_facts_read(), filled in by tests. */
struct sbx_cgroup_facts {
	char mount[64];		       /* of cgroup2; "": none */
	char own[SBX_CGROUP_PATH_MAX]; /* our cgroup below it ("/" is the mount itself); "": unknown */
	bool systemd;		       /* runs the machine */
};

/* 0 or -errno; nothing that is missing is an error. @bare: also where no cgroup can have a controller. */
int sbx_cgroup_facts_read(struct sbx_cgroup_facts *ret_f, bool bare);

/* PURE. The "0::" line of /proc/PID/cgroup (cgroups(7)). False: none, or not below the mount ("/../"). */
bool sbx_cgroup_parse_own(const char *text, char *ret_own, size_t n);
/* PURE. Words of cgroup.controllers as bits; what we do not use is left out. */
uint32_t sbx_cgroup_parse_controllers(const char *text);
/* PURE. Is this the name of a systemd unit's cgroup? */
bool sbx_cgroup_is_unit(const char *name);

/* The controllers that a file of a cgroup names, as bits; 0 where it cannot be read. */
uint32_t sbx_cgroup_controllers(int dir_fd, const char *file);
/* Where a sandbox's cgroup can be made without asking anybody: from our own cgroup up to the unit that was
 * delegated to us, the first that may be changed and can give its children controllers; root where no
 * systemd runs: below sbx.slice. NONE: nowhere. @bare: one without controllers will do. Looks, changes nothing. */
void sbx_cgroup_find(const struct sbx_cgroup_facts *f, bool bare, struct sbx_cgroup_place *ret_place);
/* The same for a scope that systemd has just made and put us in. 0 or -errno. */
int sbx_cgroup_place_scope(const struct sbx_cgroup_facts *f, const char *control_group,
			   struct sbx_cgroup_place *ret_place);

/* --- limits --- */

/* The stage, bwrap and sbx-init are counted too, wherever processes are. */
#define SBX_CGROUP_PIDS_OURS 3

struct sbx_cgroup_limits { /* 0: not asked */
	uint64_t memory_bytes;
	uint32_t cpus_milli, pids, io_weight;
};

/* What is written to which file. */
struct sbx_cgroup_write {
	const char *file;
	enum sbx_cgroup_controller controller;
	bool optional; /* a kernel may lack the file */
	bool done;     /* it was written */
	char value[48];
};
#define SBX_CGROUP_WRITES_MAX 8

/* PURE. The writes for @l in a cgroup with these controllers; what has no controller is left out. */
size_t sbx_cgroup_plan(const struct sbx_cgroup_limits *l, uint32_t controllers,
		       struct sbx_cgroup_write v[SBX_CGROUP_WRITES_MAX]);

/* --- a sandbox's own --- */

struct sbx_cgroup {
	int place_fd, dir_fd; /* the directories; dir_fd has the lock */
	int command_fd, broker_fd;
	int run_fd; /* command/run; -1: processes are in command itself */
	char name[32];
	uint32_t controllers; /* that the command's cgroup has */
	uint32_t opened;      /* that we turned on in the place */
	bool moved;	      /* we went from the place to launcher/ */
};
#define SBX_CGROUP_INIT                                                                             \
	((struct sbx_cgroup){ .place_fd = -1, .dir_fd = -1, .command_fd = -1, .broker_fd = -1, .run_fd = -1 })

/* Make sbx-ID in the place, and move this process if it must leave. No limits yet. 0 or -errno with @err;
 * what was made is for sbx_cgroup_remove() whatever the result. */
int sbx_cgroup_make(const struct sbx_cgroup_place *place, const char *id, struct sbx_cgroup *cg,
		    struct sbx_err *err);
/* Let what is born in it be born in command/run. 0 or -errno. */
int sbx_cgroup_add_run(struct sbx_cgroup *cg);
/* Where the sandbox's processes are to be born; -1: there is no cgroup. */
int sbx_cgroup_birthplace(const struct sbx_cgroup *cg);
/*
 * Is nothing left that belongs to command/run? Not only no process: a socket is its cgroup's for life, also in the
 * hands of somebody else whom it was passed to, and is judged by it (attach cgroup). Such a socket keeps the removed
 * cgroup from going away, which its parent counts as dying. Memory does not: it is charged to `command`, for `run`
 * has no controllers. Removes command/run; with -EBUSY (something is left after @timeout_ms; an empty cgroup takes
 * the kernel some 50 ms) it is there again. 0, -EBUSY, -errno. Accepts one without.
 */
int sbx_cgroup_settle(int command_fd, uint32_t timeout_ms);
/* Not yet, then: command/run is there again, so that a sweep asks once more. */
int sbx_cgroup_unsettle(int command_fd);
/* Cgroups that were removed and are still there in the kernel, below a directory; -1: unknown. */
int64_t sbx_cgroup_dying(int dir_fd);
/* Write a plan into one of its directories. A write that fails is an error unless it is optional. */
int sbx_cgroup_apply(int dir_fd, struct sbx_cgroup_write *v, size_t n, struct sbx_err *err);
/* SIGKILL to all in it and below, and wait until nothing lives. 0, -ETIMEDOUT or -errno. */
int sbx_cgroup_kill(int dir_fd, uint32_t timeout_ms);
/* Remove all of it that is empty, but not command/run; go back to where we came from. Accepts any state, gives
 * back all fds. */
void sbx_cgroup_remove(struct sbx_cgroup *cg);
/* Only give back the fds: in a child, which has copies of them. */
void sbx_cgroup_forget(struct sbx_cgroup *cg);
/* Who removes what a sandbox of attach cgroup has beside its cgroup, by the id (inode) of `command`. */
struct sbx_cgroup_release {
	int (*fn)(void *userdata, uint64_t cgroup_id); /* below 0: it stays, and so does the cgroup */
	void *userdata;
};
/* Remove what dead launchers left in a place, by its path: kill, then remove. A command/run that does not settle
 * stays, and all do where @release is NULL. The number of sandboxes, or -errno. */
int sbx_cgroup_sweep(const char *place, const struct sbx_cgroup_release *release);

/* The same wherever we may have made one: from our own cgroup up to the delegated unit, and below sbx.slice. Those
 * in scopes are systemd's to remove. */
int sbx_cgroup_sweep_all(const struct sbx_cgroup_facts *f, const struct sbx_cgroup_release *release);

/* What it used; -1: the kernel does not tell. */
struct sbx_cgroup_usage {
	int64_t cpu_us, memory_peak_bytes, pids_peak;
	int64_t oom_kills, pids_refused;
	int64_t cpu_pressure_us, memory_pressure_us, io_pressure_us; /* `some total` of PSI */
};
#define SBX_CGROUP_USAGE_UNKNOWN ((struct sbx_cgroup_usage){ -1, -1, -1, -1, -1, -1, -1, -1 })
void sbx_cgroup_usage_read(int dir_fd, struct sbx_cgroup_usage *ret_u);
/* PURE. The number after @key (a word, or two with a space between: "some total") in a flat-keyed or PSI file;
 * -1: not there. */
int64_t sbx_cgroup_parse_value(const char *text, const char *key);

#endif
