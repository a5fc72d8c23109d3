/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_BASE64_H
#define SBX_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* base64 (RFC 4648 section 4), padded. Returns the bytes written, without a NUL; with @out NULL the
 * bytes needed. PURE. */
size_t sbx_base64_encode(struct sbx_span s, uint8_t *out);

#endif
