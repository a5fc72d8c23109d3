/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_STAGE_STAGE_CONFIG_H
#define SBX_LAUNCHER_STAGE_STAGE_CONFIG_H

#include <stdbool.h>

#include "launcher/plan/plan.h"
#include "launcher/plan/setup.h"

/*
 * What the stage does with a plan that did not exist yet when the stage was started: a deep copy of the
 * parts it needs, in memory that launcher and stage share. The launcher writes it once, then says ORDERS
 * on the channel; the stage only reads, and the launcher reads nothing of it. Pointers lead into the same
 * mapping, which is at the same address in both.
 */
struct sbx_orders {
	bool carries;	     /* flows leave through the broker */
	bool host_network;   /* attach cgroup: there is no network namespace to furnish */
	uint32_t open_files; /* RLIMIT_NOFILE of the command; 0: as it is */
	uint32_t processes;  /* RLIMIT_NPROC, where no cgroup holds limits.pids; 0: as it is */
	uint64_t wall_ms;    /* 0: no limit */
	uint64_t scratch_bytes; /* 0: none */
	bool keep;		/* the launcher wants to see the overlay's upper layer */
	const char *scratch_home; /* the launcher wants to know how full it becomes; NULL: not */
	struct sbx_nft_input nft;
	size_t n_publish;
	uint16_t publish[SBX_PUBLISH_MAX]; /* ports of the sandbox that the factory may connect to */
	size_t n_mounts;
	struct sbx_mount_op *mounts; /* source.fd is -1; id-mapped ones come as fds, in this order, with ORDERS */
	const char *args;	     /* of bwrap, NUL-separated (bwrap_argv.h) */
	size_t n_args;
};

struct sbx_orders *sbx_orders_new(void); /* empty; NULL: errno */
struct sbx_orders *sbx_orders_free(struct sbx_orders *o);
/* 0, or -E2BIG: more than the mapping holds (64 MiB). */
int sbx_orders_fill(struct sbx_orders *o, const struct sbx_plan *p, const struct sbx_setup *s, const char *args,
		    size_t n_args);

#endif
