/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_START_START_H
#define SBX_DAEMON_START_START_H

#include <event2/event.h>
#include <stddef.h>

#include "base/err.h"
#include "base/sandbox_id.h"
#include "daemon/hub/dir_watch.h"
#include "daemon/output/start_line.h"
#include "launcher/host/facts.h"

/*
 * Starts of sandboxes. Each has a directory, STATE/api/ID, with its job and the log of its output,
 * and a process, sbx-output, whose child is sbx-run: neither is the service's to end. sbx-output
 * says that the log has begun (start_line.h). A start has ended when the log says that the command
 * was released, or that sbx-run has ended.
 *
 * If the service ends meanwhile, the sandbox starts or does not; nothing waits for it.
 */
#define SBX_STARTS_MAX	       16  /* at once */
#define SBX_STARTS_WAITING_MAX 256 /* for one of those */

struct sbx_starts;

struct sbx_start_places {
	const struct sbx_facts *facts; /* borrowed */
	struct event_base *base;
	struct sbx_dir_watches *watches;
	const char *start_socket; /* borrowed; of systemd's, NULL: the service runs sbx-output */
};

/* 0 or -errno. */
int sbx_starts_new(const struct sbx_start_places *places, struct sbx_starts **ret_starts);
/* Accepts NULL; returns NULL. Starts under way go on, and nobody is told. */
struct sbx_starts *sbx_starts_free(struct sbx_starts *s);

enum sbx_start_end {
	SBX_START_RUNS = 0,
	SBX_START_REFUSED, /* sbx-run ended: `status` and `said` */
	SBX_START_LATE,	   /* SBX_START_S have passed, and it is being ended */
	SBX_START_FULL,	   /* too many wait: nothing was made */
	SBX_START_FAILED,  /* `error`: nothing runs */
	SBX_START_NO_UNIT, /* the same: systemd starts no unit for it, or the unit failed */
};

#define SBX_START_SAID_MAX 4096

struct sbx_start_result {
	enum sbx_start_end end;
	int status, error;
	const char *said; /* RUNS: sbx-run's warnings, a line each; REFUSED: the first bytes of its
			   * standard error; borrowed */
	size_t n_said;
};
typedef void (*sbx_start_fn)(void *userdata, const struct sbx_start_result *result);

/* The directory of sandbox @id. 0 or -ENAMETOOLONG. */
int sbx_start_dir(const struct sbx_facts *facts, const char *id, char *out, size_t n_out);

/* Starts sandbox @id with the job @text. @fn is called exactly once, maybe from inside the call.
 * Nothing of a start that failed is left. */
void sbx_start(struct sbx_starts *s, const char id[SBX_ID_LEN + 1], const char *text,
	       sbx_start_fn fn, void *userdata);

#endif
