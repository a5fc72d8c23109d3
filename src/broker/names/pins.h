/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_NAMES_PINS_H
#define SBX_BROKER_NAMES_PINS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/cleanup.h"

/*
 * Synthetic pins: every allowed name that was looked up has an index. The index gives it an address
 * of 198.18.0.0/15 and one of fd00:5b:1::/48. A pin lasts as long as the sandbox: an address never
 * changes its meaning, and when the table is full new names are refused.
 */

struct sbx_pins;

#define SBX_PINS_MAX 130048u /* 512 blocks of 254: no address ends in .0 or .255 */

enum { SBX_PINS_E_EXHAUSTED = 1 };

/* A table for at most @n_max names (cut to SBX_PINS_MAX). 0 or -ENOMEM. */
int sbx_pins_new(uint32_t n_max, struct sbx_pins **ret_pins);
struct sbx_pins *sbx_pins_free(struct sbx_pins *pins);
SBX_DEFINE_CLEANUP(struct sbx_pins, sbx_pins_free);

/* Gives the index of @name (normalised); makes one if it has none. 0, SBX_PINS_E_EXHAUSTED or
 * -ENOMEM. */
int sbx_pins_add(struct sbx_pins *pins, const char *name, uint32_t *ret_index);
uint32_t sbx_pins_count(const struct sbx_pins *pins);

/* The addresses of a pin. @index is less than SBX_PINS_MAX. */
struct sbx_addr sbx_pins_addr4(uint32_t index);
struct sbx_addr sbx_pins_addr6(uint32_t index);

/* Is @addr (untrusted) in a synthetic range, whether pinned or not? */
bool sbx_pins_is_synthetic(const struct sbx_addr *addr);
/* The name pinned to @addr (untrusted), borrowed from the table; NULL when there is none. */
const char *sbx_pins_name(const struct sbx_pins *pins, const struct sbx_addr *addr);

#endif
