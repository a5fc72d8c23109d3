/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HUB_SAMPLE_H
#define SBX_DAEMON_HUB_SAMPLE_H

#include <event2/event.h>
#include <jansson.h>

/*
 * Usage of live sandboxes, for lists: their launchers are asked in the background, as long as
 * somebody looks. A sandbox that nobody asked about for SBX_SAMPLE_WANTED_MS is forgotten.
 */
#define SBX_SAMPLE_WANTED_MS 15000
#define SBX_SAMPLE_EVERY_MS  2000  /* a sandbox is not asked more often */
#define SBX_SAMPLE_FAILED_MS 10000 /* nor, if its launcher did not answer, than this */
#define SBX_SAMPLE_TICK_MS   50
#define SBX_SAMPLE_AT_ONCE   32	  /* launchers that are being asked */
#define SBX_SAMPLE_MAX	     4096 /* sandboxes; others have no sample */

struct sbx_sampler;

/* @runtime_dir is borrowed. 0 or -ENOMEM. */
int sbx_sampler_new(struct event_base *base, const char *runtime_dir,
		    struct sbx_sampler **ret_sampler);
/* Asks under way are given up by their timeouts, so this is for the end of the process. Accepts
 * NULL; returns NULL. */
struct sbx_sampler *sbx_sampler_free(struct sbx_sampler *s);

/* The last sample of sandbox @id (the member `usage` of the control socket's answer), borrowed
 * until the loop runs again. NULL: there is none yet. It is asked for from now on. */
json_t *sbx_sampler_get(struct sbx_sampler *s, const char *id);

#endif
