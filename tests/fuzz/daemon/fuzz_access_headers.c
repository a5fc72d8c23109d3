/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Header fields that access is judged by, from any client. The first byte says which one. A host
 * that is taken has one form: printed, it is read as the same. Nothing outside of the form of
 * a name, and no other cookie's value, gets through.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/access/headers.h"
#include "tests/fuzz/fuzz.h"

static void check_authority(const char *s)
{
	char printed[SBX_HOST_NAME_MAX + 16];
	struct sbx_authority a, again;

	if (sbx_authority_parse(s, &a) != 0)
		return;
	CHECK(a.name[0] && strlen(a.name) < sizeof(a.name));
	CHECK(strspn(a.name, "abcdefghijklmnopqrstuvwxyz0123456789-_.:") == strlen(a.name));
	CHECK((strchr(a.name, ':') != NULL) <= (a.addr.family == 6));
	snprintf(printed, sizeof(printed), a.addr.family == 6 ? "[%s]" : "%s", a.name);
	if (a.port)
		snprintf(printed + strlen(printed), 16, ":%u", a.port);
	CHECK(sbx_authority_parse(printed, &again) == 0);
	CHECK(again.port == a.port && strcmp(again.name, a.name) == 0);
	CHECK(sbx_addr_equal(&again.addr, &a.addr));
}

static void check_origin(const char *s)
{
	struct sbx_authority host;
	struct sbx_origin o;

	if (sbx_origin_parse(s, &o) != 0)
		return;
	CHECK(strncmp(s, o.is_https ? "https://" : "http://", o.is_https ? 8 : 7) == 0);
	CHECK(sbx_origin_is_at(&o, &o.at));
	CHECK(sbx_authority_parse("localhost:1", &host) == 0);
	CHECK(sbx_origin_is_at(&o, &host) ==
	      (o.at.port == 1 && strcmp(o.at.name, "localhost") == 0));
}

static void check_bearer(const char *s)
{
	const char *token;

	if (sbx_bearer_parse(s, &token) != 0)
		return;
	CHECK(token >= s + 7 && token[0]);
	for (; *token; token++)
		CHECK(*token > ' ' && *token < 0x7f);
}

static void check_cookie(const char *s)
{
	char out[16];

	if (sbx_cookie_find(s, "sbx", out, sizeof(out)) != 0)
		return;
	CHECK(strlen(out) < sizeof(out) && !strchr(out, ';'));
	CHECK(strstr(s, "sbx="));
	if (out[0])
		CHECK(strstr(s, out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(const char *s) = { check_authority, check_origin,
							 check_bearer, check_cookie };
	char *s;

	if (size == 0)
		return 0;
	s = malloc(size);
	CHECK(s);
	memcpy(s, data + 1, size - 1);
	s[size - 1] = '\0';
	checks[data[0] % 4](s);
	free(s);
	return 0;
}
