/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_H
#define SBX_LAUNCHER_PLAN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/seccomp_lift.h"
#include "ipc/messages.h"
#include "launcher/options.h"
#include "launcher/plan_attach.h"
#include "launcher/plan_sources.h"
#include "launcher/uid_pool.h"
#include "policy/policy.h"
#include "policy/profile.h"
#include "policy/publish.h"
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

#define SBX_PLAN_GRANTS_MAX 64	 /* mounts the profile and the flags ask for */
#define SBX_PLAN_MOUNTS_MAX 2048 /* of all kinds, masks among them */
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

/* What the sandbox's root is (view_root.h). */
enum sbx_root_kind { SBX_ROOT_HOST = 0, SBX_ROOT_MINIMAL, SBX_ROOT_DIR, SBX_N_ROOT_KINDS };

struct sbx_plan_root {
	enum sbx_root_kind kind;
	struct sbx_path dir; /* DIR: the judged directory (fd owned by the plan) */
	size_t n_parts;	     /* DIR: entries of it that are mounted one by one */
};

enum sbx_mount_op_kind {
	SBX_MOUNT_BIND,	      /* source, dest, writable */
	SBX_MOUNT_ETC,	      /* dest; source.fd is -1 until sbx_etc_prepare() */
	SBX_MOUNT_MERGE,      /* source, dest: what dest has already, and the source's entries beneath; read-only */
	SBX_MOUNT_OVERLAY,    /* source, dest: writes go to the scratch space */
	SBX_MOUNT_SCRATCH,    /* dest, mode: a directory of the scratch space */
	SBX_MOUNT_TMPFS,      /* dest, size, mode */
	SBX_MOUNT_SYMLINK,    /* text, dest */
	SBX_MOUNT_DIR,	      /* dest, mode */
	SBX_MOUNT_PROC,	      /* dest */
	SBX_MOUNT_DEV,	      /* dest */
	SBX_MOUNT_DEVICE,     /* source, a character device of the host's, dest in /dev */
	SBX_MOUNT_FILE,	      /* text -> a file at dest */
	SBX_MOUNT_REMOUNT_RO, /* dest: what was mounted there is read-only from here on */
	SBX_MOUNT_MASK,	      /* dest, source.st; text: an empty file or directory over what is there (tree_cover.h) */
	SBX_MOUNT_PIN,	      /* dest, source.st, writable: what is there, mounted over itself: it cannot be renamed */
	SBX_N_MOUNT_OP_KINDS,
};
const char *sbx_mount_op_kind_str(enum sbx_mount_op_kind k);

/* Who asked for a mount. */
enum sbx_mount_origin {
	SBX_ORIGIN_VIEW = 0, /* every sandbox has it */
	SBX_ORIGIN_PROFILE,
	SBX_ORIGIN_CWD,
	SBX_ORIGIN_FLAG,
	SBX_ORIGIN_MASK, /* hides what nobody is granted: our own state, blocked segments, denied commands */
	SBX_ORIGIN_PROTECT, /* what the host's tools would execute later */
	SBX_ORIGIN_CACHE,   /* --cache */
	SBX_N_ORIGINS,
};
const char *sbx_mount_origin_str(enum sbx_mount_origin o);

struct sbx_mount_op {
	enum sbx_mount_op_kind kind;
	enum sbx_mount_origin origin;
	bool writable;
	bool noexec; /* BIND, OVERLAY, SCRATCH, TMPFS: nothing there executes */
	bool idmap;  /* BIND, OVERLAY: the source's owner appears as the sandbox's user, and the other way round */
	int mount_fd; /* with idmap: the mount, made and not attached yet (owned by the plan); else -1 */
	/* BIND, MERGE, OVERLAY, DEVICE: the judged object (fd owned by the plan); MASK, PIN: only its st */
	struct sbx_path source;
	char *text; /* SYMLINK target, FILE content; MASK: what the file says instead of nothing */
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

/* Of a commondir that leads to its own directory. libgit2, and so cargo, finds no repository beside a bare ".". */
#define SBX_PLACEHOLDER_DOT_TEXT "./\n"

/* Made for a mask where there is nothing to mount it on (placeholders.h). */
enum sbx_placeholder_kind {
	SBX_PLACEHOLDER_SOCKET = 0, /* git does not see one, opening it fails at once, and it holds nothing */
	SBX_PLACEHOLDER_FILE,	    /* empty */
	SBX_PLACEHOLDER_DOT,	    /* a file with "./\n": a git directory's commondir that says what its absence says */
	SBX_N_PLACEHOLDER_KINDS,
};

/* A directory that placeholders are in. */
struct sbx_placeholder_dir {
	int fd;	      /* O_PATH, owned */
	int lock_fd;  /* shared lock on it; -1: not yet */
	int model_fd; /* O_PATH of a socket that others are hard links of; -1 */
	struct stat model_st;
	bool lock_is_others;  /* somebody locked it exclusively, and does not let go; lock_fd has the mark of use alone */
	bool links_by_path;   /* the kernel wants a path of the model, and no descriptor */
	bool links_are_alike; /* the first link had the model's number, as not in every FUSE */
	char *path;   /* on the host, for messages and sweeps */
	size_t grant; /* in the plan's mounts: who may write there */
};

struct sbx_placeholder {
	enum sbx_placeholder_kind kind;
	size_t dir; /* in the plan's placeholder_dirs */
	char *name;
	size_t op; /* in the plan's mounts: the mask */
	bool made;
	struct stat st;
};
#define SBX_PLAN_PLACEHOLDERS_MAX 1536

/* Their modes are their mark: write permission for nobody, and a sticky bit that means nothing. */
#define SBX_PLACEHOLDER_SOCKET_MODE (S_IFSOCK | S_ISVTX | 0444)
#define SBX_PLACEHOLDER_FILE_MODE   (S_IFREG | S_ISVTX | 0444)
/* PURE. What stat(2) says of one, whoever made it: a sandbox next door, or one that a power cut ended. */
bool sbx_placeholder_is_one(const struct stat *st);

/* A file that executes where there is an allow list. */
enum sbx_program_why {
	SBX_PROGRAM_ENTRY = 0, /* for_what is the entry, or the command as it was asked for */
	SBX_PROGRAM_INTERPRETER, /* for_what is the script */
	SBX_PROGRAM_LOADER,	 /* for_what is one of the ELF files */
	SBX_N_PROGRAM_WHYS,
};
const char *sbx_program_why_str(enum sbx_program_why w);

struct sbx_program {
	char *path, *for_what;
	enum sbx_program_why why;
	dev_t dev;
	ino_t ino;
};

/* A file that a deny list covers. */
enum sbx_masked_why {
	SBX_MASKED_NAME = 0, /* the entry means it */
	SBX_MASKED_LINK,     /* another name of one that is covered */
	SBX_MASKED_COPY,
	SBX_N_MASKED_WHYS,
};
const char *sbx_masked_why_str(enum sbx_masked_why w);

struct sbx_masked {
	char *path;  /* in the sandbox, without symlinks */
	char *below; /* from the fd of op */
	char *entry;
	char *of; /* LINK, COPY: the other one's path; else NULL */
	enum sbx_masked_why why;
	bool by_system; /* system.yaml's entry, not the profile's */
	struct stat st;
	const struct sbx_mount_op *op; /* that it is in, borrowed */
};
void sbx_masked_fini(struct sbx_masked *m);

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
	struct sbx_plan_sources sources;
	void *policy_blob;
	size_t n_policy_blob;
	struct sbx_policy *policy;
	bool air_gap;
	uint32_t seccomp_lifts;	  /* SBX_SECCOMP_BITs: rows of the command's filter that are not there */
	bool carries;		  /* flows leave through the broker: not offline, no air gap */
	enum sbx_new_protected new_protected; /* the stricter of the profile's and the system policy's */
	struct sbx_plan_attach attach;
	size_t n_publish;
	struct sbx_publish publish[SBX_PUBLISH_MAX]; /* a port of 0 is the kernel's to choose (publish.h) */
	struct sbx_nft_input nft; /* attach netns; ports are 0 until the stage has its listeners; cidrs owned */
	struct sbx_plan_root root;
	size_t n_mounts;
	struct sbx_mount_op *mounts; /* in the order they are made */
	uint64_t n_walked; /* entries looked at below grants */
	int64_t walked_s;  /* when that began, real time */
	int walked_fd;	   /* the file of walk_cache, in the runtime directory; -1: none */
	struct sbx_dir_cache *walk_cache; /* what is known of large trees (sys/dir_cache.h) */
	size_t n_placeholders, n_placeholder_dirs;
	struct sbx_placeholder *placeholders;
	struct sbx_placeholder_dir *placeholder_dirs;
	uint64_t scratch_bytes; /* of the scratch space (overlay.h); 0: no mount needs it */
	bool tmp_shared, home_shared; /* in it: limits.tmp and limits.home bound nothing by themselves */
	bool tmpfs_shared; /* what --tmpfs made is in it: the sizes asked for did not fit */
	struct sbx_keep_target keep;
	bool etc_guessed; /* the SBX_MOUNT_ETC op has what the last start had */
	int host_etc_fd; /* O_PATH of the host's /etc, where sbx_etc_prepare() copies from */
	size_t n_env;
	char **env;	     /* "NAME=VALUE" for the command, NULL-terminated */
	uint8_t *env_origin; /* enum sbx_env_origin of each */
	char *chdir;	     /* in the sandbox */
	char *hostname;
	char *command_path; /* what argv[0] resolved to in the sandbox */
	size_t n_masked;
	struct sbx_masked *masked;
	size_t n_programs;  /* 0: there is no allow list */
	struct sbx_program *programs; /* by path */
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
