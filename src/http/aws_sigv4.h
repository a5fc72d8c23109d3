/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_AWS_SIGV4_H
#define SBX_HTTP_AWS_SIGV4_H

#include <stdbool.h>

#include "base/span.h"
#include "http/memory.h"
#include "http/message.h"

/*
 * Internal: signs a request anew for AWS (Signature Version 4, "Create a signed AWS API request" in
 * the IAM user guide), in the Authorization header. PURE.
 */

/* The parts of "AWS4-HMAC-SHA256 Credential=ID/SCOPE, SignedHeaders=..., Signature=...". The scope
 * is DATE/REGION/SERVICE/aws4_request. */
struct sbx_aws_authorization {
	struct sbx_span id, scope, date, region, service, signed_headers;
};

/* false: @value is not of that form. */
bool sbx_aws_parse(struct sbx_span value, struct sbx_aws_authorization *ret);

/*
 * Writes the header's new value for the request @r to @host, without that header, into @memory.
 * @key: "ACCESSKEYID:SECRETKEY". 0; -ENOMEM; -EINVAL with *ret_why, a static text: the request
 * cannot be signed.
 */
int sbx_aws_sign(const struct sbx_aws_authorization *a, const char *host,
		 const struct sbx_http_request *r, struct sbx_span key,
		 struct sbx_http_block **memory, struct sbx_span *ret, const char **ret_why);

#endif
