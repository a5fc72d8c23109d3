/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/rows/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/resources/print.h"
#include "policy/forms/option_form.h"
#include "policy/forms/units.h"

bool sbx_call_scope(struct sbx_call *call, struct sbx_scope *ret)
{
	const struct sbx_principal *p = &call->principal;
	const char *wanted = sbx_call_text(call, "workspace");

	if (wanted && p->workspace[0] && strcmp(wanted, p->workspace) != 0) {
		sbx_reply_unknown(call, "workspace");
		return false;
	}
	*ret = (struct sbx_scope){
		.workspace = p->workspace[0] ? p->workspace : wanted,
		.by_owner = p->own_only,
		.owner_uid = p->uid,
	};
	return true;
}

int64_t sbx_call_id(const struct sbx_call *call, size_t i)
{
	const char *text = call->found.params[i];
	char *end;
	long long id;

	errno = 0;
	id = strtoll(text, &end, 10);
	return text[0] >= '1' && text[0] <= '9' && !*end && errno == 0 ? id : 0;
}

int64_t sbx_window_parse(const char *s)
{
	static const uint64_t max = UINT64_C(3660) * 24 * 3600 * 1000; /* ten years */
	uint64_t ms = 0;

	if (sbx_count_parse(s, &ms) == 0 && ms <= max / 1000)
		ms *= 1000;
	else if (sbx_time_parse(s, &ms) < 0)
		return -EINVAL;
	return ms > 0 && ms <= max ? (int64_t)ms : -EINVAL;
}

const char *sbx_workspace_check(const char *s)
{
	const char *why = sbx_form_token(s);

	return why ? why : strchr(s, '/') ? "it must not have a \"/\"" : NULL;
}

const char *sbx_time_check(const char *s)
{
	return sbx_parse_time(s) < 0 ? "it is no time like 2026-11-25T23:41:11Z" : NULL;
}

const char *sbx_window_check(const char *s)
{
	return sbx_window_parse(s) < 0 ? "it is no duration like 15m, 24h or 7d" : NULL;
}
