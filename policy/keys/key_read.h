/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_KEYS_KEY_READ_H
#define SBX_POLICY_KEYS_KEY_READ_H

#include <stddef.h>

#include "base/err.h"
#include "policy/forms/yaml_tree.h"
#include "policy/keys/key.h"

/* Reads a YAML tree into the struct that the key tables describe. Reading goes on after a mistake,
 * so one run reports all of them. The result counts only if n_errors is 0. */
struct sbx_key_reader {
	const struct sbx_yaml *yaml; /* borrowed, as the rest */
	const char *file;
	struct sbx_err_list *errs; /* may be NULL */
	size_t n_errors;
};

/* A problem at @node. */
void sbx_key_read_error(struct sbx_key_reader *r, const struct sbx_yaml_node *node, const char *fmt,
			...) __attribute__((format(printf, 3, 4)));

/* Read the mapping @node into @base (for sbx_profile_keys a struct sbx_profile, and so on): scalars
 * replace the values in @base, lists are appended. 0 (see n_errors) or -ENOMEM. */
int sbx_key_read_block(struct sbx_key_reader *r, const struct sbx_key_block *block,
		       const struct sbx_yaml_node *node, void *base);

#endif
