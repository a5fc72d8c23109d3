/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_VERDICT_H
#define SBX_HTTP_VERDICT_H

#include <stdbool.h>

#include "base/reason.h"
#include "base/span.h"
#include "http/rules.h"
#include "wire/http_field.h"

/* Why a request is refused. reason SBX_REASON_LIST_ALLOW: it is not. */
struct sbx_http_verdict {
	enum sbx_reason reason;
	int status;	/* of the response: 400, 403, 413, 405 ... */
	char text[512]; /* one sentence for people: the cause, the rule, the way to allow it. No
			 * value of a secret, and no control bytes */
	char secret[64]; /* the name of the secret that it is about, cut; "" none */
};

/* --- internal: how the judges of this folder write their verdicts. PURE --- */

/* For "%.*s" of a span of at most SBX_HTTP_TEXT_MAX bytes; more are cut. */
#define SBX_HTTP_SPAN_ARGS(s) sbx_http_precision(s), (s).n ? (const char *)(s).p : ""
int sbx_http_precision(struct sbx_span s);

/* Writes a verdict that refuses; control bytes in the text become '?'. Returns false. */
bool sbx_http_refuse(struct sbx_http_verdict *v, enum sbx_reason reason, int status,
		     const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Writes a verdict that does not. Returns true. */
bool sbx_http_allow(struct sbx_http_verdict *v);

/* Is @s one of the list? */
bool sbx_http_list_has(const struct sbx_http_list *l, struct sbx_span s);

static inline bool sbx_http_same(struct sbx_span a, struct sbx_span b)
{
	return a.n == b.n && (!a.n || !memcmp(a.p, b.p, a.n));
}

/* Writes the list as "a, b, c" into @out, as far as it fits. */
void sbx_http_list_text(const struct sbx_http_list *l, char *out, size_t n_out);

#endif
