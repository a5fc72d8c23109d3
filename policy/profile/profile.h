/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_PROFILE_PROFILE_H
#define SBX_POLICY_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/probe.h"
#include "base/reason.h"

/*
 * A profile as a checked tree: what the YAML says, after `extends` is merged, with defaults filled
 * in. Lists keep their order. All strings are NUL-terminated, UTF-8 without control bytes, and
 * owned by the profile. PURE: the text of a file (and of those it extends) comes from the caller.
 */

struct sbx_port_range {
	uint16_t first, last;
};

#define SBX_PORTS_MAX 16

/* The network that the sandbox is attached to (docs/architecture/flow.md and attach.md). */
enum sbx_net_attach { SBX_NET_ATTACH_NETNS = 0, SBX_NET_ATTACH_CGROUP, SBX_N_NET_ATTACHES };
#define SBX_REPIN_INTERVAL_MS (300 * 1000)
#define SBX_LOOPBACK_PORTS_MAX 64
#define SBX_ATTACH_ENTRY_PORTS_MAX 64 /* of one name with attach cgroup: each is a pin of its own */

struct sbx_str_list {
	size_t n;
	char **v; /* NULL: not said anywhere (where a default list stands in for that) */
};
void sbx_str_list_fini(struct sbx_str_list *list);
/* Append a copy of @s. 0, -ENOMEM. */
int sbx_str_list_add(struct sbx_str_list *list, const char *s);
/* Append copies of @from's strings to @list. 0, -ENOMEM: some of them may be there. */
int sbx_str_list_copy(const struct sbx_str_list *from, struct sbx_str_list *list);

/* The requests that an allow entry admits. */
enum sbx_access {
	SBX_ACCESS_ANY = 0,
	SBX_ACCESS_READ_ONLY, /* GET, HEAD, OPTIONS, git's fetch */
	SBX_ACCESS_LISTED,    /* by methods and paths */
	SBX_N_ACCESSES,
};

/* One allow or deny entry of the network lists. */
struct sbx_net_entry {
	char *text; /* as written, canonical: "*.example.org:443", "10.1.2.0/24:5432" */
	char *host; /* normalised, IDNA-encoded, without the "*." ; NULL for a cidr */
	/* 0: the default. To allow: 443 and 80 (host) or every port (cidr); to deny: every port. */
	size_t n_ports;
	struct sbx_str_list methods, paths; /* access LISTED; empty: all */
	struct sbx_str_list headers;	    /* "Name: value", set on every request */
	uint64_t max_request_bytes;	    /* 0: no limit */
	char *cert, *key;		    /* mtls: paths on the host; both or neither */
	enum sbx_proto proto;		    /* tcp or udp */
	enum sbx_check check;
	enum sbx_access access;
	char *file; /* of line; a flag ("--allow") with line 0; NULL: not known */
	int line, column;
	struct sbx_port_range ports[SBX_PORTS_MAX];
	struct sbx_cidr cidr;
	bool is_cidr;
	bool wildcard;	 /* "*.": any depth below, not the apex */
	bool proto_set;	 /* a protocol was written; otherwise tcp to allow, any to deny */
	bool private_ok; /* private: true */
	bool check_set;	 /* check: given; otherwise by port: 443 tls, 80 http, else none */
	/* The rest, with access, methods to headers, max_request_bytes, cert and key, only in an
	 * allow entry with a host. Any of them but passthrough makes sbx-tls terminate the entry's
	 * flows (sbx_profile_settle_secrets() sets terminate). */
	bool terminate;
	bool by_default;  /* made by settling of default: allow, for a secret's host */
	/* allows nothing by itself: a live list does, and a secret's host must be terminated */
	bool asks_only;
	bool any_said;	  /* access: any, which lifts that of an earlier entry for the names */
	bool inspect;	  /* terminated for its own sake */
	bool passthrough; /* never terminated */
	bool websocket;
};

struct sbx_net_list {
	size_t n;
	struct sbx_net_entry *v;
	bool deny; /* a deny list: a wildcard over a public suffix is harmless there */
};

/* The source of a secret's value. */
enum sbx_secret_from {
	SBX_SECRET_ENV = 0,    /* a variable of the launcher's environment */
	SBX_SECRET_FILE,       /* an absolute path, or "~/..." */
	SBX_SECRET_CREDENTIAL, /* a name in $CREDENTIALS_DIRECTORY (systemd.exec(5)) */
	SBX_SECRET_COMMAND,    /* the first line of a command's output */
	SBX_N_SECRET_FROMS,
};

enum sbx_secret_inject {
	SBX_SECRET_PLACEHOLDER = 0,
	SBX_SECRET_HEADER,
	SBX_SECRET_AWS_SIGV4, /* signing: aws-sigv4 */
	SBX_N_SECRET_INJECTS,
};

enum { SBX_SECRET_IN_HEADER = 1, SBX_SECRET_IN_QUERY = 2, SBX_SECRET_IN_BODY = 4 };

#define SBX_SECRETS_MAX 62 /* the self-test adds two; requests have a bit for each */

/* A secret: its value never enters the sandbox. */
struct sbx_secret {
	char *name; /* of the variable inside */
	enum sbx_secret_from from;
	char *source;		     /* the variable, path or name; NULL for a command */
	struct sbx_str_list command; /* argv */
	struct sbx_net_list hosts;   /* names and wildcards, without ports; at least one */
	enum sbx_secret_inject inject;
	char *header, *template_text; /* HEADER: "Authorization", "Bearer ${secret}" */
	char *prefix;		      /* of the placeholder; NULL: "sbx_secret_" */
	unsigned in;		      /* SBX_SECRET_IN_*; default IN_HEADER */
	bool keep_present;	      /* override: false: a header that is there stays */
	bool detect;		      /* refuse requests with the real value in them */
	struct sbx_str_list methods, paths; /* where it is used; empty: everywhere */
	int line, column;
};

struct sbx_mount_entry {
	char *source; /* as written: absolute, or "~/..." expanded by the planner */
	char *target; /* NULL: same as source */
	bool writable;
	bool optional; /* missing source: skip silently */
	bool idmap_or_read_only; /* a source that cannot be id-mapped is mounted read-only */
};

struct sbx_env_entry {
	char *name;
	char *value; /* NULL: pass the caller's */
};

struct sbx_limit_values {
	uint64_t memory_bytes; /* 0: not set, as in every member */
	uint32_t cpus_milli;   /* 1500 = 1.5 cpus */
	uint32_t pids;
	uint32_t io_weight; /* each cgroup beside it has 100 unless said */
	uint64_t disk_bytes;
	uint64_t tmp_bytes;  /* size of /tmp's tmpfs */
	uint64_t home_bytes; /* size of the scratch home's tmpfs */
	uint32_t open_files;
	uint64_t wall_time_ms;
	bool strict; /* limits.enforce: strict; default best-effort */
};

/* Writes of the command to the granted current directory. */
enum sbx_workspace {
	SBX_WORKSPACE_DIRECT = 0, /* it is written */
	/* it goes to a layer of its own, which is dropped or kept elsewhere */
	SBX_WORKSPACE_OVERLAY,
	SBX_N_WORKSPACES,
};

/* The treatment of a protected path that the command makes and that did not exist at the start. The
 * strictest first. */
enum sbx_new_protected {
	/* it cannot be made where it is covered; elsewhere as CHECK */
	SBX_NEW_PROTECTED_REFUSE = 0,
	/* it is looked at, and moved aside where a tool would act on it unasked */
	SBX_NEW_PROTECTED_CHECK,
	SBX_NEW_PROTECTED_KEEP,	      /* nothing */
	SBX_N_NEW_PROTECTED,
};

const char *sbx_new_protected_str(enum sbx_new_protected n);

#define SBX_MASK_DEPTH 3

/* A sandbox with too many refusals is cut off. */
enum sbx_breaker {
	SBX_BREAKER_AIR_GAP = 0,
	SBX_BREAKER_KILL,
	SBX_N_BREAKERS,
};

#define SBX_REVIEW_WINDOW_MS (60 * 1000)

struct sbx_profile {
	char *name, *description;
	struct {
		size_t n_mounts;
		struct sbx_mount_entry *mounts;
		struct sbx_str_list allowed_prefixes; /* empty: the system policy's */
		struct sbx_str_list blocked_segments; /* added to the system policy's */
		/* paths that are shown although their last part is blocked */
		struct sbx_str_list unmask;
		struct sbx_str_list protected_paths;  /* added to the system policy's */
		uint32_t mask_depth; /* 0: not set, SBX_MASK_DEPTH */
		enum sbx_new_protected new_protected; /* default check */
		enum sbx_workspace workspace;
		char *root;		   /* "minimal" or a directory; NULL: "host" */
		struct sbx_str_list tmpfs; /* "DIR[:SIZE]" (option_form.h) */
		struct sbx_str_list devices; /* "/dev/nvidia*" (sbx_form_device) */
		char *home;		   /* as a mount's source; NULL: a scratch home */
		struct sbx_str_list home_read; /* relative to the user's home */
	} filesystem;
	struct {
		struct sbx_str_list allow, deny; /* names, absolute paths */
	} commands;
	struct sbx_limit_values limits;
	struct {
		enum sbx_mode mode;		/* default fetch */
		enum sbx_action default_action; /* fetch only: deny unless `default: allow` */
		struct sbx_net_list allow, deny;
		size_t n_resolvers; /* dns.resolvers */
		struct sbx_resolver resolvers[SBX_RESOLVERS_MAX];
		enum sbx_net_attach attach;   /* default netns */
		uint64_t repin_interval_ms;   /* 0: not set, SBX_REPIN_INTERVAL_MS */
		struct sbx_str_list loopback_ports; /* each a port in digits (sbx_port_parse) */
		struct sbx_str_list publish;	    /* each for sbx_publish_parse() */
		char *proxy_host; /* upstream_proxy; NULL none */
		uint16_t proxy_port;
		char *extra_ca; /* a PEM file on the host; NULL none */
	} network;
	size_t n_secrets;
	struct sbx_secret *secrets;
	struct {
		struct sbx_str_list allow; /* names of base/seccomp_lift.h */
	} seccomp;
	struct {
		struct sbx_str_list pass; /* names, a trailing * allowed ("LC_*") */
		size_t n_set;
		struct sbx_env_entry *set;
		bool hide_git_identity; /* environment.git_identity: hide */
	} environment;
	size_t n_probes; /* selftest: the extra ones */
	struct sbx_probe *probes;
	struct {
		uint32_t denies;	  /* 0: not set */
		uint64_t window_ms;	  /* 0: not set, SBX_REVIEW_WINDOW_MS */
		struct sbx_str_list hook; /* argv, run on the host */
	} review;
	struct {
		uint32_t denies;    /* 0: not set */
		uint64_t window_ms; /* 0: not set, SBX_REVIEW_WINDOW_MS */
		enum sbx_breaker action;
	} breaker;
};

/* The addresses on which a sandbox's ports may be published. */
enum sbx_publish_scope {
	SBX_PUBLISH_LOOPBACK = 0, /* on loopback addresses */
	SBX_PUBLISH_NONE,
	SBX_PUBLISH_ANY, /* on any address of the host */
	SBX_N_PUBLISH_SCOPES,
};

/* system.yaml; without the file: sbx_system_policy_default(). */
struct sbx_system_policy {
	struct sbx_limit_values ceilings;     /* max memory, cpus, disk, pids; 0: the machine's */
	struct sbx_str_list allowed_prefixes; /* empty: the planner's default list */
	/* patterns of what may be granted; sbx_shipped_devices unless said */
	struct sbx_str_list devices;
	bool drop_shipped; /* shipped: drop; the next three without the shipped lists */
	struct sbx_str_list blocked_segments;
	/* of those, the file's own, which come first; no profile unmasks them */
	size_t n_own_blocked_segments;
	bool no_unmask;		       /* nor the shipped ones */
	struct sbx_str_list protected_paths;   /* relative to a writable grant */
	size_t n_own_protected_paths; /* of those, the file's own, which come first */
	struct sbx_str_list unprotected_paths; /* left out of the shipped ones */
	/* the least strict that a profile gets; default keep */
	enum sbx_new_protected new_protected;
	struct sbx_str_list commands_deny;
	/* of those, the file's own, which come first; the rest is the shipped list */
	size_t n_own_commands_deny;
	struct sbx_str_list seccomp_allow; /* what profiles may ask for */
	struct sbx_net_list floors; /* denied for everyone, on top of the built-in ones */
	struct sbx_net_list
		/* cidr entries whose addresses may be dialled whatever their class (metadata and
		 * loopback stay refused); where upstream_proxy may be, loopback too */
		admit;
	enum sbx_publish_scope publish;
	/* "FIRST-LAST", checked (sbx_id_range_parse); NULL: the launcher's default */
	char *uid_pool;
	/* of the database; 0: the launcher's default */
	uint32_t events_keep_days, events_max_rows;
};

enum { SBX_PROFILE_E_INVALID = 1 }; /* of functions that say so: @err or @errs says why */

/* "8080"; 0: not a port. */
uint16_t sbx_port_parse(const char *text);
/* Does the network part fit its attach? Parts that need the broker in every flow do not fit cgroup.
 * 0, or SBX_PROFILE_E_INVALID with @err, which names the key or entry and says what to do. */
int sbx_profile_check_attach(const struct sbx_profile *p, struct sbx_err *err);

#endif
