/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Verdicts and the texts in them; see verdict.h. */

#include "http/verdict.h"

#include <stdarg.h>
#include <string.h>

#include "base/text.h"

int sbx_http_precision(struct sbx_span s)
{
	return (int)(s.n < SBX_HTTP_TEXT_MAX ? s.n : SBX_HTTP_TEXT_MAX);
}

bool sbx_http_refuse(struct sbx_http_verdict *v, enum sbx_reason reason, int status,
		     const char *fmt, ...)
{
	va_list ap;

	v->reason = reason;
	v->status = status;
	v->secret[0] = '\0';
	va_start(ap, fmt);
	sbx_text_vcut(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
	for (char *p = v->text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	return false;
}

bool sbx_http_allow(struct sbx_http_verdict *v)
{
	v->reason = SBX_REASON_LIST_ALLOW;
	v->status = 200;
	v->text[0] = v->secret[0] = '\0';
	return true;
}

bool sbx_http_list_has(const struct sbx_http_list *l, struct sbx_span s)
{
	for (size_t i = 0; i < l->n; i++)
		if (sbx_http_same(l->v[i], s))
			return true;
	return false;
}

void sbx_http_list_text(const struct sbx_http_list *l, char *out, size_t n_out)
{
	size_t pos = 0;

	out[0] = '\0';
	for (size_t i = 0; i < l->n && pos < n_out; i++) {
		sbx_text_cut(out + pos, n_out - pos, "%s%.*s", i ? ", " : "",
			     SBX_HTTP_SPAN_ARGS(l->v[i]));
		pos += strlen(out + pos);
		if (pos + 1 >= n_out)
			break;
	}
}
