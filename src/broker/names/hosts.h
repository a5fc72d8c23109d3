/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_NAMES_HOSTS_H
#define SBX_BROKER_NAMES_HOSTS_H

#include <stddef.h>

#include "base/addr.h"
#include "base/span.h"

/* Writes the addresses that hosts(5) text gives @name (normalised) into @v, in file order, at most
 * @n_max; returns their number. Skips lines that do not parse, as a resolver does. The text is the
 * host's: trusted, but any bytes are handled. */
size_t sbx_hosts_lookup(struct sbx_span text, const char *name, struct sbx_addr *v, size_t n_max);

#endif
