/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_LEARN_LEARN_LINES_H
#define SBX_LAUNCHER_LEARN_LEARN_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/learn/learn.h"
#include "policy/profile/profile.h"

/* The lines of a learned profile, one for each learned thing. PURE. Private to the room. */

enum sbx_learn_kind {
	SBX_LEARN_ENTRY,   /* a name or address with its port */
	SBX_LEARN_REQUEST, /* to a terminated host */
	SBX_LEARN_NOTE,	   /* a comment alone */
	SBX_LEARN_KNOWN,   /* allowed already */
};

struct sbx_learn_line {
	enum sbx_learn_kind kind;
	bool dns_only;
	char entry[SBX_HOSTNAME_MAX + 32]; /* of an entry; of a request: its host's */
	const struct sbx_learned *from;	   /* of the first */
	uint64_t count, first_ms, last_ms;
};

struct sbx_learn_lines {
	size_t n;
	struct sbx_learn_line *v;
};

/* Judges and sorts all of @learn, which is borrowed, beside the run's profile. @allowed:
 * --learn-allow. 0 or -ENOMEM. */
int sbx_learn_lines_init(struct sbx_learn_lines *lines, const struct sbx_learn *learn,
			 const struct sbx_profile *profile, bool allowed);
void sbx_learn_lines_fini(struct sbx_learn_lines *lines);

/* The port of a DNS question is the resolver's. */
static inline bool sbx_learn_has_port(const struct sbx_event *e)
{
	return e->port && e->proto != SBX_PROTO_DNS;
}

#endif
