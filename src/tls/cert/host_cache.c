/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The hosts that were terminated last, each with its leaf: a hash table and a list by last use. */
#include "tls/cert/host_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* A leaf is minted anew at half of its life, so that a connection never begins with an old one. */
#define LEAF_USE_S (SBX_LEAF_HOURS * 3600 / 2)

static size_t slot_of(const struct sbx_host_cache *c, const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	return (size_t)(h ^ (h >> 32)) & (c->n_slots - 1);
}

int sbx_host_cache_init(struct sbx_host_cache *c, const struct sbx_authority *authority,
			size_t n_max)
{
	*c = (struct sbx_host_cache){ .authority = authority, .n_max = n_max ? n_max : 1 };
	for (c->n_slots = 16; c->n_slots < c->n_max; c->n_slots *= 2)
		;
	c->slots = calloc(c->n_slots, sizeof(struct sbx_tls_host *));
	return c->slots ? 0 : -ENOMEM;
}

static void unlink_host(struct sbx_host_cache *c, struct sbx_tls_host *h)
{
	*(h->prev ? &h->prev->next : &c->first) = h->next;
	*(h->next ? &h->next->prev : &c->last) = h->prev;
	h->prev = h->next = NULL;
}

static void push_front(struct sbx_host_cache *c, struct sbx_tls_host *h)
{
	h->next = c->first;
	*(c->first ? &c->first->prev : &c->last) = h;
	c->first = h;
}

static void remove_host(struct sbx_host_cache *c, struct sbx_tls_host *h)
{
	struct sbx_tls_host **at = &c->slots[slot_of(c, h->name)];

	while (*at != h)
		at = &(*at)->next_in_slot;
	*at = h->next_in_slot;
	unlink_host(c, h);
	c->n--;
	X509_free(h->leaf);
	SSL_SESSION_free(h->session);
	free(h);
}

void sbx_host_cache_fini(struct sbx_host_cache *c)
{
	while (c->first)
		remove_host(c, c->first);
	free(c->slots);
	*c = (struct sbx_host_cache){ 0 };
}

static struct sbx_tls_host *find(struct sbx_host_cache *c, const char *name)
{
	struct sbx_tls_host *h = c->slots[slot_of(c, name)];

	while (h && strcmp(h->name, name) != 0)
		h = h->next_in_slot;
	return h;
}

static struct sbx_tls_host *add(struct sbx_host_cache *c, const char *name)
{
	struct sbx_tls_host *h = calloc(1, sizeof(*h));
	struct sbx_tls_host **slot = &c->slots[slot_of(c, name)];

	if (!h)
		return NULL;
	if (c->n == c->n_max)
		remove_host(c, c->last);
	sbx_text_fit(h->name, sizeof(h->name), "%s", name);
	h->next_in_slot = *slot;
	*slot = h;
	push_front(c, h);
	c->n++;
	return h;
}

struct sbx_tls_host *sbx_host_cache_get(struct sbx_host_cache *c, const char *name)
{
	struct sbx_tls_host *h = find(c, name);
	time_t now = time(NULL);

	if (!h)
		h = add(c, name);
	else if (h != c->first) {
		unlink_host(c, h);
		push_front(c, h);
	}
	if (!h)
		return NULL;
	if (!h->leaf || now < h->minted || now - h->minted > LEAF_USE_S) {
		X509 *leaf = sbx_authority_mint(c->authority, name);

		if (!leaf) {
			remove_host(c, h);
			return NULL;
		}
		X509_free(h->leaf);
		h->leaf = leaf;
		h->minted = now;
	}
	return h;
}
