/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ACCESS_HEADERS_H
#define SBX_DAEMON_ACCESS_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

/* Header fields that access is judged by. All input is untrusted. PURE. */

#define SBX_HOST_NAME_MAX 254 /* bytes with the NUL */

/* A host with an optional port (RFC 9110, 7.2). */
struct sbx_authority {
	char name[SBX_HOST_NAME_MAX]; /* in lower case; of an address: as it came, unbracketed */
	struct sbx_addr addr;	      /* family 0: it is a name */
	uint16_t port;		      /* 0: none is given */
};
/* 0 or -EINVAL. A name has letters, digits, '-', '_' and '.' alone. */
int sbx_authority_parse(const char *s, struct sbx_authority *ret);
/* Its port, or that of the scheme. */
uint16_t sbx_authority_port(const struct sbx_authority *a, bool is_https);

/* "https://name:port" (RFC 6454, 6.1). */
struct sbx_origin {
	bool is_https;
	struct sbx_authority at;
};
/* 0 or -EINVAL; "null" is no origin. */
int sbx_origin_parse(const char *s, struct sbx_origin *ret);
/* Do both name the same host and port? A port that is not given is that of the origin's scheme. */
bool sbx_origin_is_at(const struct sbx_origin *o, const struct sbx_authority *host);

/* The token of "Bearer TOKEN" (RFC 6750, 2.1), in @s. 0 or -EINVAL. */
int sbx_bearer_parse(const char *s, const char **ret_token);

/* The value of cookie @name (RFC 6265, 4.2). 0; SBX_COOKIE_E_NONE; -EINVAL: it is there twice, or
 * its value does not fit. */
enum { SBX_COOKIE_E_NONE = 1 };
int sbx_cookie_find(const char *s, const char *name, char *out, size_t n_out);

#endif
