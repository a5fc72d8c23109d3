/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RESOURCES_ATTACH_H
#define SBX_LAUNCHER_RESOURCES_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "ipc/messages.h"
#include "launcher/plan/plan.h"
#include "launcher/resources/cgroup.h"
#include "launcher/setup/setup.h"
#include "sys/cgroup/cgroup.h"
#include "sys/nft/nft_attach.h"

#define SBX_ATTACH_RULESET_FILE "ruleset.nft" /* in the run's directory */

/* Attach cgroup (docs/architecture/attach.md): the run's part in the host's network namespace.
 * Every function accepts a run with attach netns. */
struct sbx_attach_flow; /* attach_live.c */
struct sbx_attach_run {
	int nl_fd;		   /* nfnetlink; kept open: closing one after a removal waits */
	int watch_fd;		   /* the kernel reports changes of rulesets here */
	int probe_fds[2];	   /* listeners that the self-test must not reach */
	int fds[SBX_N_BROKER_FDS]; /* for the broker, until the stage has its own */
	int command_fd, runtime_fd;    /* borrowed: the cgroup's directory, the run's */
	struct sbx_nft_ruleset *rules; /* that the kernel must have now */
	/* attach_live.c: the lists of the rules, if they are not the plan's any more; those of a
	 * change under way, and its ruleset */
	bool has_lists;
	struct sbx_attach_lists lists, next;
	struct sbx_nft_ruleset *to;
	struct sbx_attach_flow *flows; /* open when the change began; sorted by cookie */
	size_t n_flows, n_flows_max;
	char cgroup_path[SBX_CGROUP_PATH_MAX + 96];
	uint16_t group;
	uint32_t level;
	uint64_t cgroup_id;
	struct sbx_attach_room room; /* for pins */
	bool added;		     /* the rules may be in the kernel */
	bool changed;		     /* the host's owner changed them: the sandbox was ended */
	bool complained;	     /* about pins, once */
};

void sbx_attach_run_init(struct sbx_attach_run *a);
/* Closes only the descriptors: enough in a child, which has copies of them. */
void sbx_attach_run_fini(struct sbx_attach_run *a);

/* The step `attach`, before any process of the sandbox: opens the sockets of the stub and of the
 * self-test, writes their address and ports into @s, and leads the cgroup's DNS to the stub if the
 * kernel can. 0 or -errno with @err. */
int sbx_attach_run_begin(struct sbx_attach_run *a, const struct sbx_plan *p,
			 const struct sbx_cgroup_run *c, struct sbx_setup *s, struct sbx_err *err);
/* When the stage is ready: adds the rules, and puts the broker's sockets into @ret_fds. 0 or -errno
 * with @err. */
int sbx_attach_run_install(struct sbx_attach_run *a, const struct sbx_plan *p,
			   const struct sbx_cgroup_run *c, const struct sbx_setup *s,
			   int runtime_fd, int ret_fds[SBX_N_BROKER_FDS], struct sbx_err *err);
/* The input of the host's ruleset with these lists; borrows all of its parameters. */
void sbx_attach_run_input(const struct sbx_attach_run *a, const struct sbx_plan *p,
			  const struct sbx_setup *s, const struct sbx_attach_lists *lists,
			  struct sbx_attach_input *ret_in);
/* Frees the parts of a change of the policy that is under way (attach_live.h). */
void sbx_attach_run_forget(struct sbx_attach_run *a);
/* The self-test is over: closes its listeners. */
void sbx_attach_run_tested(struct sbx_attach_run *a);
/* Adds the pins that the broker asks for, and answers on @broker_fd. 0, or -errno: the broker
 * cannot be answered. */
int sbx_attach_run_pins(struct sbx_attach_run *a, const char *id, const struct sbx_msg_pins *m,
			int broker_fd);
/* Called when the host's rulesets changed. If the sandbox's rules are changed, its processes are
 * killed at once, and @a->changed is set. */
void sbx_attach_run_check(struct sbx_attach_run *a, const struct sbx_cgroup_run *c);
/* The undo of `attach`, when the cgroup is empty: removes the rules, unless a socket that they
 * judge may be left. True: the rules stay, and only the cleanup process can look again. */
bool sbx_attach_run_end(struct sbx_attach_run *a, const struct sbx_plan *p,
			const struct sbx_cgroup_run *c);

/* The capabilities that are needed for as long as there are rules. */
uint64_t sbx_run_attach_caps(const struct sbx_plan *p);
#endif
