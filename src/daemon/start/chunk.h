/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_START_CHUNK_H
#define SBX_DAEMON_START_CHUNK_H

#include <jansson.h>

#include "base/span.h"

/* Bytes that a sandbox wrote, as JSON. PURE. */

/* Sets @key to the bytes if they are UTF-8, and @key_base64 to their base64 otherwise. Returns -1
 * without memory. */
int sbx_chunk_set(json_t *o, const char *key, const char *key_base64, struct sbx_span bytes);

#endif
