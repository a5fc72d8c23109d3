/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_DOCTOR_DOCTOR_FACTS_H
#define SBX_CTL_DOCTOR_DOCTOR_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "sys/cgroup/cgroup_find.h"
#include "sys/process/userns.h"

/* The facts that the checks of `sbxctl doctor` judge. */

/* One thing that was tried. */
struct sbx_doctor_try {
	bool tried;
	int error;		   /* 0: it worked; a positive errno otherwise */
	char why[SBX_ERR_MSG_MAX]; /* cause and remedy where the code that failed knew them */
};

enum { SBX_DOCTOR_PROGRAMS_MAX = 6 };

struct sbx_doctor_program {
	const char *name; /* static */
	bool optional;
	int error;	  /* a positive errno: it cannot be read or executed */
	char version[32]; /* "": it has no mark (base/version.h) */
};

struct sbx_doctor_dir {
	char path[512]; /* "": unknown */
	bool exists;
	int error; /* a positive errno: it cannot be used or made */
	char why[SBX_ERR_MSG_MAX];
};

struct sbx_doctor_bwrap {
	char path[512];		   /* "": none was found */
	char why[SBX_ERR_MSG_MAX]; /* why none was found */
	bool set_id;
	char version[32];  /* as it says it: "0.8.0"; "": it said none */
	char missing[256]; /* options that its help does not list, with spaces between */
};

struct sbx_doctor_database {
	bool exists;
	int error; /* a positive errno: it cannot be read, or is damaged */
	char why[SBX_ERR_MSG_MAX];
	int64_t version;
	bool others_read; /* its mode lets other users read or write it */
};

/* inotify instances, which the kernel counts by user. */
struct sbx_doctor_inotify {
	int64_t n_max;	     /* -1: unknown */
	const char *setting; /* static: the sysctl with this limit */
	uint32_t n_live;     /* sandboxes whose launchers live in the runtime directory */
};

/* A unit of systemd's, as systemctl tells it: "loaded", "not-found"; "active", "inactive". */
struct sbx_doctor_unit {
	char load[16], active[16];
};

struct sbx_doctor_facts {
	bool root;
	char kernel[72]; /* uname's release */
	struct sbx_doctor_try openat2;
	struct sbx_userns_facts userns;
	/* Tried as the user of a sandbox would be, each where the one before worked: user, pid and
	 * mount namespace; a fresh /proc; a network namespace; the sandbox's network (loopback,
	 * listeners, ruleset, NFLOG); rules by cgroup; bwrap with the options of a sandbox. */
	struct sbx_doctor_try namespaces, proc, netns, network, attach, bwrap_run;
	enum { SBX_APPARMOR_ABSENT, SBX_APPARMOR_OFF, SBX_APPARMOR_ON } apparmor;
	char apparmor_label[128]; /* of this process; "": unknown */
	struct sbx_cgroup_facts cgroup;
	struct sbx_cgroup_place place;
	bool scope; /* systemd can be asked for a scope */
	struct sbx_doctor_bwrap bwrap;
	int landlock_abi;
	int seccomp_error;	/* of asking for the filter's actions; 0: all are there */
	char trust_store[128];	/* "": none */
	char trust_looked[128]; /* the first place that was looked at */
	struct sbx_doctor_dir state, runtime;
	char places_why[SBX_ERR_MSG_MAX]; /* the directories cannot be told; "": they can */
	struct sbx_doctor_database database;
	size_t n_programs;
	struct sbx_doctor_program programs[SBX_DOCTOR_PROGRAMS_MAX];
	char libexec_dir[512];
	bool systemd, user_bus, lingers;
	struct sbx_doctor_try systemctl; /* the two units are known where it worked */
	struct sbx_doctor_unit service, start_socket; /* sbxd.service, sbx-sandbox.socket */
	struct sbx_doctor_inotify inotify;
	uint64_t n_files, n_locked; /* hard limits; UINT64_MAX: none */
	bool may_lock;		    /* CAP_IPC_LOCK: n_locked does not matter */
};

#endif
