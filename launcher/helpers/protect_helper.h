/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_PROTECT_HELPER_H
#define SBX_LAUNCHER_HELPERS_PROTECT_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/event.h"
#include "launcher/helpers/new_protected_list.h"
#include "launcher/plan/plan.h"
#include "launcher/protect/placeholders.h"

/*
 * Work in writable grants: make and remove placeholders, report blocked names that appeared, check
 * new protected paths. It needs the ids of the users who may write there, so there is a helper
 * process for each of them.
 */

/* Gets an event for the record; @e is borrowed. */
typedef void (*sbx_protect_tell)(void *userdata, const struct sbx_event *e);

struct sbx_protect_helper {
	pid_t pid;
	int fd; /* the channel to it */
	uid_t writer;
	bool ready;  /* it has started */
	bool gone;   /* it ended by itself */
	bool looked; /* its answer at the end is complete */
};

#define SBX_N_PROTECT_NOTICES 6 /* kinds of notices, notices[] in the .c file */

/* Zero, or after _init(): nothing was started. */
struct sbx_protect_helpers {
	const struct sbx_plan *plan; /* borrowed */
	sbx_protect_tell tell;
	void *userdata;
	struct sbx_placeholders placeholders;
	struct sbx_new *new_protected; /* the data of the check; NULL: nothing is checked */
	struct sbx_protect_helper v[SBX_GRANTS_MAX];
	size_t n;
	uint64_t watch_at_us; /* monotonic: when sbx_protect_helpers_watch() is due; 0: it is not */
	unsigned int n_notices[SBX_N_PROTECT_NOTICES]; /* of each kind, printed or not */
	bool helper_gone;	/* one of them, while the command ran */
	/* not empty: end the sandbox for this reason, because the command does not give up */
	struct sbx_err planted;
};

void sbx_protect_helpers_init(struct sbx_protect_helpers *h);
/* Close channels and locks, and free memory. In a fork of the launcher too: the helpers must see
 * the launcher's end. */
void sbx_protect_helpers_fini(struct sbx_protect_helpers *h);

/* Make placeholders. Start the helpers of a privileged launcher, which will have dropped its
 * privileges when there is something to do. Lists for sweeps go to the runtime directory. @h is
 * zero. 0 or -errno with @err; the caller calls _end() in any case. */
int sbx_protect_helpers_start(struct sbx_protect_helpers *h, const struct sbx_plan *p,
			      int runtime_fd, sbx_protect_tell tell, void *userdata,
			      struct sbx_err *err);
/* Before the release: wait until all have started, and set watch_at_us. 0 or -errno with @err. */
int sbx_protect_helpers_ready(struct sbx_protect_helpers *h, struct sbx_err *err);
/* At watch_at_us: start the helpers of an unprivileged launcher. A failure counts as a helper that
 * is gone, with @err. */
void sbx_protect_helpers_watch(struct sbx_protect_helpers *h, int runtime_fd, struct sbx_err *err);
/* The channel of v[@i] is readable: take in a packet. Sets helper_gone when that helper ended, and
 * planted. */
void sbx_protect_helpers_hear(struct sbx_protect_helpers *h, size_t i);
/* The command ran and everything in the sandbox has ended: report new blocked names and check new
 * protected paths, as events and lines on stderr. */
void sbx_protect_helpers_look(struct sbx_protect_helpers *h);
/* Everything in the sandbox has ended: remove placeholders and end the helpers. @ran: the command
 * ran. False: something is left for a sweep, which needs the runtime directory. */
bool sbx_protect_helpers_end(struct sbx_protect_helpers *h, bool ran, int runtime_fd);

#endif
