/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/core/core_resolve_result.h"

void sbx_resolve_result_merge(const struct sbx_resolve_answer *v4,
			      const struct sbx_resolve_answer *v6,
			      struct sbx_resolve_result *ret_result)
{
	const struct sbx_resolve_answer *const answers[] = { v6, v4 };
	struct sbx_resolve_result *r = ret_result;
	size_t at[2] = { 0, 0 };

	*r = (struct sbx_resolve_result){
		.first_family = 6, .status4 = v4->status, .status6 = v6->status, .ttl_s = UINT32_MAX
	};
	for (int turn = 0; at[0] < v6->n || at[1] < v4->n; turn ^= 1) {
		if (at[turn] == answers[turn]->n)
			continue;
		if (r->n == SBX_RESOLVE_ADDRS_MAX) {
			r->partial = true;
			break;
		}
		r->v[r->n++] = answers[turn]->v[at[turn]++];
	}
	for (int i = 0; i < 2; i++) {
		r->partial |= answers[i]->partial || answers[i]->status == SBX_RESOLVE_FAILED;
		if (answers[i]->n && answers[i]->ttl_s < r->ttl_s)
			r->ttl_s = answers[i]->ttl_s;
	}
	if (r->n == 0)
		r->ttl_s = 0;
}
