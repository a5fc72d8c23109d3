/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HTTP_STATS_H
#define SBX_DAEMON_HTTP_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/api/route.h"

/* Counts of the server about itself. */

#define SBX_STATS_BUCKETS 11				 /* and the one of all */
extern const double sbx_stats_bounds[SBX_STATS_BUCKETS]; /* seconds */
#define SBX_STATS_CLASSES 5				 /* of statuses: 1xx to 5xx */

/* Of a row of the table; the last one is of requests that have no row. */
struct sbx_route_stats {
	uint64_t by_class[SBX_STATS_CLASSES];
	uint64_t buckets[SBX_STATS_BUCKETS + 1]; /* not cumulative */
	double sum_s;
};

struct sbx_http_stats {
	const struct sbx_route_table *routes; /* borrowed */
	struct sbx_route_stats *v;	      /* routes->n + 1 */
	uint64_t n_connections[2];	      /* open, by enum sbx_listener_kind */
	uint64_t n_streams;		      /* open */
};

/* 0 or -ENOMEM. */
int sbx_http_stats_init(struct sbx_http_stats *s, const struct sbx_route_table *routes);
void sbx_http_stats_fini(struct sbx_http_stats *s);
/* A request was answered, @route NULL: without a row, so long after its head came. */
void sbx_http_stats_add(struct sbx_http_stats *s, const struct sbx_route *route, int status,
			double seconds);

#endif
