/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLEANUP_GC_H
#define SBX_LAUNCHER_CLEANUP_GC_H

#include <stdbool.h>

#include "base/err.h"
#include "launcher/cleanup/gc_report.h"

/*
 * sbx-run --gc and sbxctl gc sweep all that dead launchers left. Each start does the same for some
 * kinds, within a bound.
 *
 * Each kind of thing that outlives a SIGKILL has a row in the table of gc.c. A sweeper looks at all
 * things of its kind, removes those of dead launchers, and calls sbx_gc_say() for each of them.
 * Live sandboxes start and end meanwhile: a sweeper leaves whatever may belong to one.
 *
 * The rows are swept in their order. Runtime directories come first: afterwards a sandbox with a
 * directory (sbx_runtime_dir_may_have()) is alive. A launcher makes some things before its
 * directory (launcher/run/steps.c); for these a sweeper needs another proof that the launcher is
 * dead.
 */

struct sbx_sweeper {
	const char *name;
	/* 0, or -errno with @err; the next sweeper runs in any case */
	int (*sweep)(struct sbx_gc *gc, struct sbx_err *err);
};

/* Run all sweepers, and report by the functions of @gc. Returns how many failed. */
int sbx_gc_sweep(struct sbx_gc *gc);
/* The same for sbx-run --gc, with lines on stderr. Returns the exit status: 0; 125 if a sweeper
 * failed, with a line on stderr for each that did. */
int sbx_gc_run(bool verbose);

#endif
