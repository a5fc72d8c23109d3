/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_LEARN_LEARN_H
#define SBX_LAUNCHER_LEARN_LEARN_H

#include <stddef.h>
#include <stdint.h>

#include "base/event.h"

/* The different things that a run wanted from the network, for --learn. PURE. */

#define SBX_LEARN_MAX 4096 /* different ones; the rest is a count */

struct sbx_learned {
	struct sbx_event e; /* the first; its count is that of all of them */
	uint64_t last_ms;   /* CLOCK_REALTIME of the last */
	uint32_t hash;
};

struct sbx_learn {
	size_t n, n_room;
	struct sbx_learned *v;
	uint64_t n_others; /* events that did not fit */
};
#define SBX_LEARN_INIT ((struct sbx_learn){ 0 })

/* Add one event, allowed or refused. Without memory it is counted among the others. */
void sbx_learn_event(struct sbx_learn *l, const struct sbx_event *e);
void sbx_learn_fini(struct sbx_learn *l);

#endif
