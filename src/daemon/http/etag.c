/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/http/etag.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

/* FNV-1a */
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

static void print_tag(uint64_t h, char ret_tag[SBX_ETAG_MAX])
{
	sbx_text_fit(ret_tag, SBX_ETAG_MAX, "\"%016llx\"", (unsigned long long)h);
}

int sbx_etag(const json_t *value, char ret_tag[SBX_ETAG_MAX])
{
	SBX_AUTO_FREE char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);

	if (!text)
		return -ENOMEM;
	print_tag(hash(HASH_BEGIN, text, strlen(text)), ret_tag);
	return 0;
}

int sbx_etag_file(int fd, char ret_tag[SBX_ETAG_MAX])
{
	uint64_t h = HASH_BEGIN;
	char part[16384];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, part, sizeof(part), at)) > 0) {
		h = hash(h, part, (size_t)n);
		at += n;
	}
	if (n < 0)
		return -errno;
	print_tag(h, ret_tag);
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
