/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RECORD_REFUSALS_H
#define SBX_LAUNCHER_RECORD_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/event.h"
#include "store/store_list.h"

/*
 * The different refusals of a run, each with its count, for people: on stderr at the end, in the
 * receipt, and by --refusals. Names and rules are untrusted text.
 */
#define SBX_REFUSALS_MAX 256 /* different ones; the rest is a count */
#define SBX_REFUSALS_TOLD 10 /* lines on stderr at the end */

/* PURE. */
struct sbx_refusals;

/* Add an event whose action is deny. The first event makes *list; without memory nothing is
 * added. */
void sbx_refusals_add(struct sbx_refusals **list, const struct sbx_event *e);
/* Accepts NULL; returns NULL. */
struct sbx_refusals *sbx_refusals_free(struct sbx_refusals *list);

/* Sort: the most frequent first, then in the order of their first events. Call this before the next
 * two, which take a NULL list too. */
void sbx_refusals_sort(struct sbx_refusals *list);
size_t sbx_refusals_n(const struct sbx_refusals *list);
/* The number of refusals that did not fit and are only counted. */
uint64_t sbx_refusals_n_others(const struct sbx_refusals *list);

#define SBX_REFUSAL_ALLOW_MAX 320

struct sbx_refusal {
	const struct sbx_event *event; /* borrowed */
	bool failed;	/* nothing was refused: the server or the network outside failed */
	char where[320]; /* "example.org:443" */
	char request[320]; /* "PUT /p", to a terminated host; "" for others */
	char why[1024];	 /* "not in profile 'default'" */
	char allow[SBX_REFUSAL_ALLOW_MAX]; /* of --allow, and would admit it; "": nothing would */
};
/* @i < sbx_refusals_n(). @profile: the profile as the caller named it. */
void sbx_refusals_at(const struct sbx_refusals *list, size_t i, const char *profile,
		     struct sbx_refusal *ret_refusal);
/* "refused 14x example.org:443 (not in profile 'default'); allow with --allow example.org",
 * escaped. A request comes behind the place: "refused 1x example.org:443 PUT /p (...)". Returns
 * @buf. */
#define SBX_REFUSAL_LINE_MAX 2048
const char *sbx_refusal_line(const struct sbx_refusal *r, char *buf, size_t n_buf);

/* PURE. The entry that would admit the newest refusal of row @d of the database, as --allow takes
 * it; "" if none would. */
void sbx_refusal_row_allow(const struct sbx_store_denies_row *d, char out[SBX_REFUSAL_ALLOW_MAX]);

#endif
