/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_KEYS_KEY_SCALAR_H
#define SBX_POLICY_KEYS_KEY_SCALAR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "policy/keys/key.h"

/* One value as text, to and from the struct of its key. STRING, PROSE, SIZE, TIME, CPUS, COUNT,
 * WORD and SWITCH are scalars; sbx_key_set() also sets the string of an EITHER. */

bool sbx_key_is_scalar(const struct sbx_key *key);

/* Parse @text (untrusted), check bounds and set the value in @base; frees an old string. 0;
 * SBX_PROFILE_E_INVALID with @err naming the key; -ENOMEM. */
int sbx_key_set(const struct sbx_key_block *block, const struct sbx_key *key, const char *text,
		void *base, struct sbx_err *err);

/* The value in @base in the form that sbx_key_set() takes; NULL: it is the default. A number's text
 * is written to @buf (SBX_UNIT_STR_MAX bytes). */
const char *sbx_key_get(const struct sbx_key *key, const void *base, char *buf, size_t n_buf);

/* The number in @base; 0 for a key that is no number. */
uint64_t sbx_key_number(const struct sbx_key *key, const void *base);

/* "1M to 1024T" for a number, "offline, fetch, full" for words, "" otherwise. Returns @buf. */
const char *sbx_key_range(const struct sbx_key *key, char *buf, size_t n_buf);

#endif
