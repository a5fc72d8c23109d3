/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_PROFILE_PUBLISH_H
#define SBX_POLICY_PROFILE_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

/* A port of the sandbox that is reached from outside, in the form of --publish and network.publish.
 * PURE. */

struct sbx_publish {
	struct sbx_addr addr; /* of this host; 127.0.0.1 unless said */
	uint16_t port;	      /* of this host; 0: any free one */
	uint16_t inside;      /* of the sandbox's loopback; never 0 */
};

/* Parse "[ADDR:]PORT[:PORT]". An IPv6 ADDR is in brackets, and "localhost" is 127.0.0.1. The second
 * PORT, the sandbox's, is the first unless given. @text is untrusted. 0, or SBX_PROFILE_E_INVALID
 * with @err. */
int sbx_publish_parse(const char *text, struct sbx_publish *ret_publish, struct sbx_err *err);
/* The address and port outside, "127.0.0.1:8888". Returns @buf. */
#define SBX_PUBLISH_STR_MAX (SBX_ADDR_STR_MAX + 16)
const char *sbx_publish_format(const struct sbx_publish *p, char *buf, size_t n_buf);
/* Can only this host connect there? */
bool sbx_publish_is_loopback(const struct sbx_publish *p);

#endif
