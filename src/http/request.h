/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_REQUEST_H
#define SBX_HTTP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "http/message.h"
#include "http/rules.h"
#include "http/verdict.h"

/* The judgement of a request (message.h), and the request that is sent in its place. PURE. */

#define SBX_HTTP_REWRITTEN_MAX (1u << 20) /* bytes that are made anew for one head */

/*
 * Judges by the entry alone: method, path, upgrade, announced body. TRACE and CONNECT are refused
 * always. @ret_verdict is always written. Returns true: allowed.
 */
bool sbx_http_judge_access(const struct sbx_http_entry *e, const char *host,
			   const struct sbx_http_request *r, struct sbx_http_verdict *ret_verdict);

/* The rewritten request. Spans point into the old request, the rules or `memory`. */
struct sbx_http_block;

struct sbx_http_rewritten {
	struct sbx_http_request request;
	/* The secrets (bits: index in rules.secrets) whose placeholder is replaced in the body; all
	 * other placeholders are refused there. */
	uint64_t in_body;
	/* enum sbx_http_form: how a value is written in the body. Application/json and types that
	 * end in +json are JSON, application/x-www-form-urlencoded is URLENCODED. */
	uint8_t body_form;
	struct sbx_http_block *memory; /* heap; holds values: wiped when freed */
};

/*
 * Applies the secrets and the entry's headers to @r, which sbx_http_judge_access() allowed,
 * towards the name @host. Refuses:
 *   SBX_REASON_SECRET_MISDIRECTED  a placeholder of any secret towards a host, over a scheme, for
 *                                  a method or path, or in a place that is not the secret's
 *   SBX_REASON_SECRET_DETECTED     a real value (detect)
 *   SBX_REASON_OVERSIZED           the new head would have too many headers, or more new bytes
 *                                  than SBX_HTTP_REWRITTEN_MAX
 *   SBX_REASON_RESOURCE            out of memory
 * Basic credentials are decoded for it and encoded again. Headers that are replaced (by the
 * entry's, or by a secret with override) do not leave and are not looked at. Returns true: *ret is
 * to be sent, and freed by sbx_http_rewritten_fini(). False: @ret_verdict says why, *ret holds
 * nothing.
 */
bool sbx_http_rewrite(const struct sbx_http_rules *rules, const struct sbx_http_entry *e,
		      const char *host, const struct sbx_http_request *r,
		      struct sbx_http_rewritten *ret, struct sbx_http_verdict *ret_verdict);
/*
 * Writes "PUT /p" into @out, for people: without the query, cut where it is long, and without a
 * method or path in which a placeholder or a value of @rules is.
 */
void sbx_http_request_text(const struct sbx_http_rules *rules, struct sbx_span method,
			   struct sbx_span target, char *out, size_t n_out);
/* Will the request be signed anew over a body whose hash its head does not have? Then the caller
 * waits for the body, and gives its hash to sbx_http_rewrite(). */
bool sbx_http_signs_body(const struct sbx_http_rules *rules, const char *host,
			 const struct sbx_http_request *r);
void sbx_http_rewritten_fini(struct sbx_http_rewritten *w);

#endif
