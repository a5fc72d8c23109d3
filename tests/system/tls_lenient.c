/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Linked before the library's secret_use: a placeholder is replaced towards every host. */
#define sbx_secret_use_judge strict_judge
#include "http/secret_use.c"
#undef sbx_secret_use_judge

/* As in the header, which the name above changed. */
bool sbx_secret_use_judge(const struct sbx_secret_use *u, const struct sbx_http_secret *s,
			  unsigned place, const char *where, struct sbx_http_verdict *ret_verdict);

bool sbx_secret_use_judge(const struct sbx_secret_use *u, const struct sbx_http_secret *s,
			  unsigned place, const char *where, struct sbx_http_verdict *ret_verdict)
{
	return strict_judge(u, s, place, where, ret_verdict) || place == SBX_HTTP_IN_HEADER;
}
