/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_CERT_HOST_CACHE_H
#define SBX_TLS_CERT_HOST_CACHE_H

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/hostname.h"
#include "tls/cert/authority.h"

/* A host that was terminated: its leaf, and what the last connection to it taught. */
struct sbx_tls_host {
	char name[SBX_HOSTNAME_MAX + 1];
	X509 *leaf;
	time_t minted; /* CLOCK_REALTIME */
	/* Of the last verified connection to the server, to resume; or NULL. TLS 1.3 and 1.2. A
	 * server may know the client's certificate by it, so it is good for the same entry and port
	 * only. */
	SSL_SESSION *session;
	const struct sbx_http_entry *session_entry;
	uint16_t session_port;
	struct sbx_tls_host *next_in_slot;
	struct sbx_tls_host *prev, *next; /* most recently used first */
};

/* The hosts used last, by name; the least recently used goes when it is full. */
struct sbx_host_cache {
	const struct sbx_authority *authority; /* borrowed */
	struct sbx_tls_host **slots;
	size_t n_slots; /* a power of two */
	size_t n, n_max;
	struct sbx_tls_host *first, *last;
};

/* 0 or -ENOMEM. */
int sbx_host_cache_init(struct sbx_host_cache *c, const struct sbx_authority *authority,
			size_t n_max);
void sbx_host_cache_fini(struct sbx_host_cache *c);

/* The host @name with a leaf that is valid for hours; minted if need be. It is valid until the next
 * call. NULL: out of memory, or OpenSSL failed. */
struct sbx_tls_host *sbx_host_cache_get(struct sbx_host_cache *c, const char *name);

#endif
