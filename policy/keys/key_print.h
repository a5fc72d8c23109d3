/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_KEYS_KEY_PRINT_H
#define SBX_POLICY_KEYS_KEY_PRINT_H

#include "policy/keys/key.h"
#include "policy/profile/profile.h"

/* The struct at @base as YAML in the order of the table, without values that are defaults. Reading
 * it gives the same struct. malloc'ed; NULL when out of memory. */
char *sbx_key_print(const struct sbx_key_block *block, const void *base);

/* All that a settled profile says to sbx-tls, as text for the policy's hash: the terminated entries
 * in their order, the secrets, extra_ca. "" if no flow is terminated and there is no secret.
 * malloc'ed; NULL when out of memory. */
char *sbx_key_print_requests(const struct sbx_profile *profile);

#endif
