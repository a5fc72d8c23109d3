/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/http/stats.h"

#include <errno.h>
#include <stdlib.h>

const double sbx_stats_bounds[SBX_STATS_BUCKETS] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
						     0.1,   0.25,   0.5,   1,	 10 };

int sbx_http_stats_init(struct sbx_http_stats *s, const struct sbx_route_table *routes)
{
	*s = (struct sbx_http_stats){ .routes = routes, .v = calloc(routes->n + 1, sizeof(*s->v)) };
	return s->v ? 0 : -ENOMEM;
}

void sbx_http_stats_fini(struct sbx_http_stats *s)
{
	free(s->v);
	*s = (struct sbx_http_stats){ 0 };
}

void sbx_http_stats_add(struct sbx_http_stats *s, const struct sbx_route *route, int status,
			double seconds)
{
	struct sbx_route_stats *r = &s->v[route ? (size_t)(route - s->routes->v) : s->routes->n];
	size_t bucket = 0;

	if (status < 100 || status >= 600)
		return;
	while (bucket < SBX_STATS_BUCKETS && seconds > sbx_stats_bounds[bucket])
		bucket++;
	r->by_class[status / 100 - 1]++;
	r->buckets[bucket]++;
	r->sum_s += seconds;
}
