/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_PROFILE_ENDPOINT_H
#define SBX_POLICY_PROFILE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/hostname.h"
#include "base/reason.h"

/* One place to connect to: "name:443", "192.0.2.1:25/tcp", "[2001:db8::1]:53/udp"; the port may be
 * missing. */
struct sbx_endpoint {
	bool is_addr;
	struct sbx_addr addr;
	char host[SBX_HOSTNAME_MAX + 1]; /* normalised; "" for an address */
	uint16_t port;			 /* 0: none given */
	bool proto_set;
	enum sbx_proto proto; /* tcp unless said */
};

/* 0, or SBX_PROFILE_E_INVALID with @err. @text is untrusted. */
int sbx_endpoint_parse(const char *text, struct sbx_endpoint *ret_endpoint, struct sbx_err *err);
/* The text that parses to the same, with the protocol when it was set. Returns @buf
 * (SBX_ENDPOINT_STR_MAX bytes are enough). */
#define SBX_ENDPOINT_STR_MAX (SBX_HOSTNAME_MAX + 16)
const char *sbx_endpoint_format(const struct sbx_endpoint *e, char *buf, size_t n_buf);

#endif
