/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_H
#define SBX_LAUNCHER_PLAN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "ipc/messages.h"
#include "launcher/options.h"
#include "launcher/plan_attach.h"
#include "launcher/uid_pool.h"
#include "policy/policy.h"
#include "policy/profile.h"
#include "sys/cgroup.h"
#include "sys/nft.h"
#include "sys/path.h"

/*
 * The plan of one run: pure data, made from the options, the profile, the system policy and facts
 * of the host. Nothing is created by planning; --dry-run prints it. The steps carry it out.
 */

/* A name that only the broker serves (SBX_PROBE_CONNECT_NAME): .invalid is never delegated
 * (RFC 6761 section 6.4). */
#define SBX_SELFTEST_NAME "selftest.sbx.invalid"
#define SBX_SELFTEST_PORT 7

/* The nflog group of the sandbox's ruleset; groups are per network namespace: one number does. */
#define SBX_PLAN_NFLOG_GROUP 1

#define SBX_PLAN_MOUNTS_MAX 128	 /* of all kinds; those the profile and the flags ask for: half */
#define SBX_PLAN_ENV_MAX    1024 /* variables */
#define SBX_PLAN_NOTES_MAX  32

/* Facts of the host and the caller, gathered once by sbx_facts_gather() (facts.h). */
struct sbx_facts {
	char id[SBX_ID_LEN + 1]; /* of this run: --id, or random */
	uid_t caller_uid;	 /* real uid of sbx-run */
	gid_t caller_gid;
	bool privileged; /* uid 0, or the capabilities of rights.h */
	uid_t uid;	 /* who the sandbox runs as; never 0 */
	gid_t gid;
	/* Of the pool: an unprivileged uid with no rights to anything, leased until sbx_facts_fini(). */
	bool throwaway_user;
	struct sbx_uid_pool *uid_pool; /* NULL: not privileged */
	bool may_attach;     /* has what attach cgroup needs (rights.h) */
	int landlock_abi;    /* 0: none */
	uid_t broker_uid;    /* own user when privileged */
	gid_t broker_gid;
	/* Of uid; a throwaway user's home exists only in the sandbox. */
	char *user_name, *home, *shell;
	char *cwd; /* the caller's; NULL when it cannot be told */
	char *state_dir, *runtime_dir;
	char *config_dir, *user_config_dir; /* may not exist */
	char *libexec_dir, *data_dir;	    /* sbx-broker, sbx-init; profiles/, migrations/ */
	char *bwrap;			    /* absolute path of bwrap */
	/* Text of the host's files; "" when absent; at most 64 KiB and 1 MiB. */
	char *resolv_conf, *hosts;
	size_t n_hosts;
	struct sbx_cgroup_facts cgroup;
	struct sbx_cgroup_place cgroup_place; /* where a cgroup can be made without asking; NONE: nowhere */
	char *scope_helper;		      /* sbx-scope, where systemd can be asked; NULL: it cannot */
	uint64_t machine_memory_bytes; /* the ceilings where system.yaml sets none; 0: unknown */
	uint32_t machine_cpus_milli;
	char *root;	/* in front of the host's /usr and /etc: "", or a directory in tests */
	char **environ; /* borrowed */
};

enum sbx_mount_op_kind {
	SBX_MOUNT_BIND,	      /* source, dest, writable */
	SBX_MOUNT_ETC,	      /* dest; source.fd is -1 until sbx_etc_prepare() */
	SBX_MOUNT_OVERLAY,    /* source, dest: writes go to the scratch space */
	SBX_MOUNT_SCRATCH,    /* dest, mode: a directory of the scratch space */
	SBX_MOUNT_TMPFS,      /* dest, size, mode */
	SBX_MOUNT_SYMLINK,    /* text, dest */
	SBX_MOUNT_DIR,	      /* dest, mode */
	SBX_MOUNT_PROC,	      /* dest */
	SBX_MOUNT_DEV,	      /* dest */
	SBX_MOUNT_FILE,	      /* text -> a file at dest */
	SBX_MOUNT_REMOUNT_RO, /* dest: what was mounted there is read-only from here on */
	SBX_N_MOUNT_OP_KINDS,
};
const char *sbx_mount_op_kind_str(enum sbx_mount_op_kind k);

/* Who asked for a mount. */
enum sbx_mount_origin {
	SBX_ORIGIN_VIEW = 0, /* every sandbox has it */
	SBX_ORIGIN_PROFILE,
	SBX_ORIGIN_CWD,
	SBX_ORIGIN_FLAG,
	SBX_ORIGIN_MASK, /* hides our own state below a grant */
	SBX_N_ORIGINS,
};
const char *sbx_mount_origin_str(enum sbx_mount_origin o);

struct sbx_mount_op {
	enum sbx_mount_op_kind kind;
	enum sbx_mount_origin origin;
	bool writable;
	bool idmap;  /* BIND, OVERLAY: the source's owner appears as the sandbox's user, and the other way round */
	int mount_fd; /* with idmap: the mount, made and not attached yet (owned by the plan); else -1 */
	struct sbx_path source; /* BIND, OVERLAY: the judged object (fd owned by the plan) */
	char *text;		/* SYMLINK target, FILE content */
	size_t n_text;
	char *dest;
	uint64_t size_bytes;
	mode_t mode;
};

enum sbx_env_origin {
	SBX_ENV_SBX = 0, /* set by us; may be shown */
	SBX_ENV_PROFILE, /* environment.set; may be shown */
	SBX_ENV_PASSED,	 /* the caller's: a value is never shown */
	SBX_ENV_FLAG,	 /* --env NAME=VALUE: never shown either */
	SBX_N_ENV_ORIGINS,
};

/* Where --keep goes. */
struct sbx_keep_target {
	char *path; /* resolved; NULL: nothing is kept */
	int fd;	    /* O_PATH: the empty directory itself, or the one that it will be made in */
	char *name; /* to be made in fd; NULL: it is there */
};

/* attach cgroup */
struct sbx_plan_attach {
	bool on;
	struct sbx_attach_lists lists;
	struct sbx_addr stub; /* an address of 127/8; another where somebody has it */
};

struct sbx_plan {
	char id[SBX_ID_LEN + 1];
	const struct sbx_options *options; /* borrowed */
	const struct sbx_facts *facts;	   /* borrowed */
	struct sbx_profile *profile;	   /* owned, with the flags merged in */
	char *profile_file;		   /* where it was read from */
	struct sbx_system_policy *system;
	char *system_file; /* NULL: the built-in one */
	void *policy_blob;
	size_t n_policy_blob;
	struct sbx_policy *policy;
	bool air_gap;
	bool carries;		  /* flows leave through the broker: not offline, no air gap */
	struct sbx_plan_attach attach;
	struct sbx_nft_input nft; /* attach netns; ports are 0 until the stage has its listeners; cidrs owned */
	size_t n_mounts;
	struct sbx_mount_op *mounts; /* in the order they are made */
	uint64_t scratch_bytes; /* of the scratch space (overlay.h); 0: no mount needs it */
	bool tmp_shared, home_shared; /* in it: limits.tmp and limits.home bound nothing by themselves */
	struct sbx_keep_target keep;
	int host_etc_fd; /* O_PATH of the host's /etc, where sbx_etc_prepare() copies from */
	size_t n_env;
	char **env;	     /* "NAME=VALUE" for the command, NULL-terminated */
	uint8_t *env_origin; /* enum sbx_env_origin of each */
	char *chdir;	     /* in the sandbox */
	char *hostname;
	char *command_path; /* what argv[0] resolved to in the sandbox */
	char **argv;	    /* borrowed from options */
	struct sbx_msg_probes *probes;
	uint32_t n_resolvers;
	struct sbx_resolver resolvers[SBX_RESOLVERS_MAX];
	bool dns_real;
	struct sbx_as_user *eyes; /* while planning looks as the sandbox's user (facts.h); else NULL */
	size_t n_notes; /* one line each for stderr ("started in ... because ...") */
	char **notes;
};

/* Make the plan. 0; or 125, 126, 127 (an exit status) with @errs telling why: policy and usage
 * problems are 125, a refused command is 126, a command that is nowhere is 127. -errno otherwise.
 * @o and @f must outlive the plan. Paths are judged with the effective ids of the sandbox's
 * user. */
int sbx_plan_new(const struct sbx_options *o, const struct sbx_facts *f, struct sbx_err_list *errs,
		 struct sbx_plan **ret_plan);
struct sbx_plan *sbx_plan_free(struct sbx_plan *p);

/* The plan as JSON (jansson), also the first part of the receipt. malloc'ed text; NULL: out of
 * memory. Values of passed variables are left out. Ports the stage has not chosen yet are shown as
 * examples. */
char *sbx_plan_json(const struct sbx_plan *p);

#endif
