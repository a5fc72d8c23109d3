/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLEANUP_GC_REPORT_H
#define SBX_LAUNCHER_CLEANUP_GC_REPORT_H

#include <stddef.h>

#include "launcher/host/facts.h"

/* The report of a sweep (sbx-run --gc, sbxctl gc). The sweepers (gc.h) add the things that they
 * remove. */

struct sbx_gc {
	/* of sbx_facts_gather_places(): the caller and the directories, nothing else */
	const struct sbx_facts *facts;
	size_t n; /* things removed so far */
	/* Called with a line for each removed thing; NULL: only count. */
	void (*say)(const char *line, void *userdata);
	/* Called for each sweeper that failed. */
	void (*failed)(const char *sweeper, const char *why, void *userdata);
	void *userdata;
};

/* Count one removed thing, and say so. */
void sbx_gc_say(struct sbx_gc *gc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
