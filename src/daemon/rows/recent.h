/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ROWS_RECENT_H
#define SBX_DAEMON_ROWS_RECENT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Answers that took long to make: the same request gets them again for a moment, so that many who
 * look at a list cost no more than one. Times are microseconds of CLOCK_MONOTONIC.
 */
#define SBX_RECENT_LONG_US 10000   /* processor time; an answer that took less is not kept */
#define SBX_RECENT_KEPT_US 1000000 /* how long one is given again */
#define SBX_RECENT_MAX	   8	   /* answers; a new one takes the place of the oldest */

struct sbx_recent {
	struct sbx_recent_answer {
		char *key; /* NULL: none */
		json_t *answer;
		uint64_t until_us;
	} v[SBX_RECENT_MAX];
	size_t next;
};

/* The answer of the request @key, which has all that it depends on; NULL: there is none. The caller
 * gets a reference. */
json_t *sbx_recent_get(const struct sbx_recent *r, const char *key, uint64_t now_us);
/* Keep @answer, which must not be changed any more, if making it took @took_us of processor time
 * and that is long. Without memory it is not kept. */
void sbx_recent_put(struct sbx_recent *r, const char *key, json_t *answer, uint64_t took_us,
		    uint64_t now_us);
void sbx_recent_fini(struct sbx_recent *r);

#endif
