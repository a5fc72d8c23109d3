/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of refused requests, for HTTP/1 and HTTP/2. */
#include "tls/conn/refusal.h"

#include <string.h>

#include "base/text.h"

const char *sbx_refusal_phrase(int status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 405:
		return "Method Not Allowed";
	case 413:
		return "Content Too Large";
	case 421:
		return "Misdirected Request";
	case 431:
		return "Request Header Fields Too Large";
	case 502:
		return "Bad Gateway";
	default:
		return "Forbidden";
	}
}

size_t sbx_refusal_body(const struct sbx_http_verdict *v, char *out)
{
	sbx_text_cut(out, SBX_REFUSAL_MAX, "sbx: %s\n",
		     v->text[0] ? v->text : sbx_reason_help(v->reason));
	return strlen(out);
}
