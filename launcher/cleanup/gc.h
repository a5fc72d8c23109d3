/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLEANUP_GC_H
#define SBX_LAUNCHER_CLEANUP_GC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "launcher/plan/plan.h"

/*
 * sbx-run --gc: what each start sweeps of its own kind, for all kinds and without bound.
 *
 * A kind of thing that outlives a SIGKILL has a row in the table of gc.c. A sweeper goes over all there are of its
 * kind, removes those whose launcher is dead, tells sbx_gc_say() of each, and leaves what it cannot judge: live
 * sandboxes start and end beside it. Rows are in the order they are swept: first the runtime directories, so that
 * from then on sbx_runtime_exists() says who is alive. What a launcher makes before its directory (steps.c) needs
 * another proof of its death.
 */

struct sbx_gc {
	const struct sbx_facts *facts; /* only who calls and the directories: sbx_facts_gather_places() */
	bool verbose;
	size_t n; /* of things removed so far */
};

struct sbx_sweeper {
	const char *name;
	int (*sweep)(struct sbx_gc *gc, struct sbx_err *err); /* 0, or -errno with @err: others go on */
};

/* One more thing was removed; a line on stderr where those are asked for. */
void sbx_gc_say(struct sbx_gc *gc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Run all sweepers. Exit status: 0; 125 when one of them could not, with a line on stderr for each. */
int sbx_gc_run(bool verbose);

#endif
