/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/http/etag.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

int sbx_etag(const json_t *value, char ret_tag[SBX_ETAG_MAX])
{
	SBX_AUTO_FREE char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	if (!text)
		return -ENOMEM;
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		h = (h ^ *p) * UINT64_C(0x100000001b3);
	sbx_text_fit(ret_tag, SBX_ETAG_MAX, "\"%016llx\"", (unsigned long long)h);
	return 0;
}

bool sbx_etag_listed(const char *list, const char *tag, bool weakly)
{
	size_t n = strlen(tag);

	if (!list)
		return false;
	if (strcmp(list, "*") == 0)
		return true;
	for (const char *p = list; (p = strstr(p, tag)); p += n) {
		bool begins = p == list || p[-1] == ' ' || p[-1] == ',' || (weakly && p[-1] == '/');

		if (begins && (!p[n] || p[n] == ',' || p[n] == ' '))
			return true;
	}
	return false;
}

void sbx_reply_tagged(struct sbx_call *call, json_t *value_take)
{
	char tag[SBX_ETAG_MAX];

	if (value_take && sbx_etag(value_take, tag) == 0) {
		sbx_reply_header(call, "ETag", tag);
		if (sbx_etag_listed(call->if_none_match, tag, true)) {
			json_decref(value_take);
			sbx_reply_empty(call, 304);
			return;
		}
	}
	sbx_reply_json(call, 200, value_take);
}

bool sbx_call_matches(struct sbx_call *call, const json_t *now)
{
	char tag[SBX_ETAG_MAX];

	if (!call->if_match)
		return true;
	if (sbx_etag(now, tag) == 0 && sbx_etag_listed(call->if_match, tag, false))
		return true;
	sbx_reply_problem(call, 412, "changed", NULL, "it was changed meanwhile: read it again");
	return false;
}
