/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_PLAN_H
#define SBX_LAUNCHER_PLAN_PLAN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/seccomp_lift.h"
#include "ipc/messages.h"
#include "launcher/attach/plan_attach.h"
#include "launcher/commands/commands.h"
#include "launcher/grants/keep_target.h"
#include "launcher/host/facts.h"
#include "launcher/host/options.h"
#include "launcher/protect/plan_sources.h"
#include "launcher/protect/protections.h"
#include "launcher/rules/tool_rules.h"
#include "launcher/view/draft.h"
#include "launcher/view/environment.h"
#include "launcher/view/sandbox_view.h"
#include "policy/decide/policy.h"
#include "policy/profile/profile.h"
#include "policy/profile/publish.h"
#include "sys/nft/nft.h"

/*
 * The plan of one run: made from the options, the profile, the system policy and facts of the host,
 * and never changed afterwards. Planning creates nothing; --dry-run prints the plan. The steps
 * carry it out, and setup.h holds what they learn.
 */

/* A name that only the broker serves (SBX_PROBE_CONNECT_NAME): .invalid is never delegated (RFC
 * 6761 section 6.4). */
#define SBX_SELFTEST_NAME "selftest.sbx.invalid"
#define SBX_SELFTEST_PORT 7

/* The nflog group of the sandbox's ruleset; groups are per network namespace: one number does. */
#define SBX_PLAN_NFLOG_GROUP 1

#define SBX_PLAN_ENV_MAX 1024 /* variables */

/* attach cgroup */
struct sbx_plan_attach {
	bool on;
	struct sbx_attach_lists lists;
	struct sbx_addr stub; /* the first address of 127/8 to try */
};

/* Terminated hosts: sbx-tls exists where there are any, or a live rule about requests. */
struct sbx_plan_tls {
	bool on;
	size_t n_entries;
	const struct sbx_net_entry **entries; /* of the profile, in the order of its allow list */
	/* PEM: the host's trust store, network.extra_ca, and files that the caller's variables
	 * name */
	char *trust;
	size_t n_trust;
	const char *bundle; /* the trust store's path in the sandbox */
	bool java;	    /* the sandbox has Java's trust store */
};

struct sbx_plan {
	struct sbx_plan *self; /* for sbx_plan_free(): everybody else has a const plan */
	char id[SBX_ID_LEN + 1];
	const struct sbx_options *options; /* borrowed */
	const struct sbx_facts *facts;	   /* borrowed */
	struct sbx_profile *profile;	   /* owned, with the flags merged in */
	char *profile_file;		   /* where it was read from */
	struct sbx_system_policy *system;
	char *system_file; /* NULL: the built-in one */
	struct sbx_rules rules;	     /* of the workspace and the host, as they were at planning */
	struct sbx_tool_rules tools; /* those of them that are about commands */
	struct sbx_plan_sources sources;
	void *policy_blob;
	size_t n_policy_blob;
	struct sbx_policy *policy;
	bool air_gap;
	struct sbx_live live; /* the live lists that the sandbox begins with */
	/* SBX_SECCOMP_BITs: rows of the command's filter that are not there */
	uint32_t seccomp_lifts;
	/* flows leave through the broker: not offline, and no air gap without a live allow */
	bool carries;
	bool may_carry;		  /* or may do so later, when the air gap is gone */
	struct sbx_plan_attach attach;
	struct sbx_plan_tls tls;
	size_t n_publish;
	/* a port of 0 is the kernel's to choose (publish.h) */
	struct sbx_publish publish[SBX_PUBLISH_MAX];
	struct sbx_nft_input nft; /* attach netns; ports are 0; cidrs borrowed from the next */
	struct sbx_nft_cidr *cidrs;
	struct sbx_view view;
	struct sbx_environment env;
	struct sbx_protections protections;
	struct sbx_commands commands;
	struct sbx_keep_target keep;
	struct sbx_msg_probes *probes;
	uint32_t n_resolvers;
	struct sbx_resolver resolvers[SBX_RESOLVERS_MAX];
	bool dns_real;
	struct sbx_notes notes;
};

#endif
