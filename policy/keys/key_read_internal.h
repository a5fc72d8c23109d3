/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_KEYS_KEY_READ_INTERNAL_H
#define SBX_POLICY_KEYS_KEY_READ_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/keys/key_read.h"

/* Functions that key_read.c and key_read_items.c share. */

/* Report that @node is not of @key's type. */
void sbx_key_read_wrong_kind(struct sbx_key_reader *r, const struct sbx_key_block *block,
			     const struct sbx_key *key, const struct sbx_yaml_node *node);
/* A scalar with a value: in quotes, or not one of YAML's words for null. */
bool sbx_key_read_is_text(const struct sbx_key_reader *r, const struct sbx_yaml_node *node);
/* Is there room in a list of @n for one more? Reports a full list. */
bool sbx_key_read_has_room(struct sbx_key_reader *r, const struct sbx_key_block *block,
			   const struct sbx_key *key, const struct sbx_yaml_node *node, size_t n);

/* Check the keys of @item that are for sbx-tls, and move them to @entry, which has the rest. 0, or
 * SBX_PROFILE_E_INVALID with the error at @node reported. */
int sbx_key_compose_requests(struct sbx_key_reader *r, const struct sbx_yaml_node *node, bool deny,
			     struct sbx_net_item *item, struct sbx_net_entry *entry);
int sbx_key_read_headers(struct sbx_key_reader *r, const struct sbx_key_block *block,
			 const struct sbx_key *key, const struct sbx_yaml_node *node, void *base);

/* Read @node, the value of @key, into the struct sbx_profile @base. 0 (see n_errors), -ENOMEM. */
int sbx_key_read_mounts(struct sbx_key_reader *r, const struct sbx_key_block *block,
			const struct sbx_key *key, const struct sbx_yaml_node *node, void *base);
int sbx_key_read_env(struct sbx_key_reader *r, const struct sbx_key_block *block,
		     const struct sbx_key *key, const struct sbx_yaml_node *node, void *base);
int sbx_key_read_resolvers(struct sbx_key_reader *r, const struct sbx_key_block *block,
			   const struct sbx_key *key, const struct sbx_yaml_node *node, void *base);
int sbx_key_read_proxy(struct sbx_key_reader *r, const struct sbx_key_block *block,
		       const struct sbx_key *key, const struct sbx_yaml_node *node, void *base);
int sbx_key_read_probes(struct sbx_key_reader *r, const struct sbx_key_block *block,
			const struct sbx_key *key, const struct sbx_yaml_node *node, void *base);
int sbx_key_read_secrets(struct sbx_key_reader *r, const struct sbx_key_block *block,
			 const struct sbx_key *key, const struct sbx_yaml_node *node, void *base);

#endif
