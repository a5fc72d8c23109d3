/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two answers, one result. PURE. */

#include "broker/core/core_resolved.h"

void sbx_resolved_merge(const struct sbx_resolve_answer *v4, const struct sbx_resolve_answer *v6,
			struct sbx_resolved *ret_result)
{
	const struct sbx_resolve_answer *const answers[] = { v6, v4 };
	struct sbx_resolved *r = ret_result;
	size_t at[2] = { 0, 0 };

	*r = (struct sbx_resolved){
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
