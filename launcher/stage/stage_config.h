/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_STAGE_STAGE_CONFIG_H
#define SBX_LAUNCHER_STAGE_STAGE_CONFIG_H

#include <stdbool.h>

#include "launcher/plan/plan.h"
#include "launcher/protect/placeholders.h"
#include "launcher/setup/setup.h"

/*
 * The parts of the plan that the stage needs, as a deep copy in memory that launcher and stage
 * share: the plan did not exist yet when the stage was started. The launcher writes the config
 * once, then sends STAGE_CONFIG on the channel. The stage only reads; the launcher reads nothing
 * back. Pointers lead into the same mapping, which is at the same address in both processes.
 */
struct sbx_stage_config {
	bool may_carry;	     /* flows leave through the broker, now or later */
	bool host_network;   /* attach cgroup: there is no network namespace to furnish */
	uint32_t open_files; /* RLIMIT_NOFILE of the command; 0: as it is */
	uint32_t processes;  /* RLIMIT_NPROC, where no cgroup holds limits.pids; 0: as it is */
	uint64_t wall_ms;    /* 0: no limit */
	uint64_t scratch_bytes; /* 0: none */
	bool keep;		/* send the launcher the overlay's upper layer */
	/* send the launcher this directory, to count its files; NULL: none */
	const char *scratch_home;
	struct sbx_nft_input nft;
	size_t n_publish;
	/* ports of the sandbox that the factory may connect to */
	uint16_t publish[SBX_PUBLISH_MAX];
	size_t n_mounts;
	/* source.fd is -1; id-mapped ones come as fds, in this order, with STAGE_CONFIG */
	struct sbx_mount_op *mounts;
	const char *args;	     /* of bwrap, NUL-separated (bwrap_argv.h) */
	size_t n_args;
};

struct sbx_stage_config *sbx_stage_config_new(void); /* empty; NULL: errno */
struct sbx_stage_config *sbx_stage_config_free(struct sbx_stage_config *o);
/* 0, or -E2BIG: more than the mapping holds (64 MiB). */
int sbx_stage_config_fill(struct sbx_stage_config *o, const struct sbx_plan *p,
			  const struct sbx_setup *s, const struct sbx_placeholders *placeholders,
			  const char *args, size_t n_args);

#endif
