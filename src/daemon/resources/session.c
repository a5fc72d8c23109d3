/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The caller, as the service sees it. */
#include "daemon/resources/resources.h"

void sbx_get_session(struct sbx_call *call)
{
	const struct sbx_principal *p = &call->principal;

	sbx_reply_json(call, 200,
		       json_pack("{s:s, s:s, s:s?, s:b}", "name", p->name, "role",
				 sbx_role_str(p->role), "workspace",
				 p->workspace[0] ? p->workspace : NULL, "own_only", p->own_only));
}
