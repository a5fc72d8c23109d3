/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_CONN_REFUSAL_H
#define SBX_TLS_CONN_REFUSAL_H

#include <stddef.h>

#include "http/request.h"
#include "tls/conn/conn.h"

#define SBX_REFUSAL_MAX 1024

/* "Forbidden": the phrase of a status that sbx-tls sends. */
const char *sbx_refusal_phrase(int status);
/* A verdict whose text has the host, the @cause (200 bytes of it), the next step and the entry: for
 * refusals without a text of src/http. */
struct sbx_http_verdict sbx_refusal_verdict(const struct sbx_conn *c, enum sbx_reason reason,
					    int status, const char *cause);
/* The body that explains @v to people. Returns its length; @out has SBX_REFUSAL_MAX bytes. */
size_t sbx_refusal_body(const struct sbx_http_verdict *v, char *out);

#endif
