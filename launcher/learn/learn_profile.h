/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_LEARN_LEARN_PROFILE_H
#define SBX_LAUNCHER_LEARN_LEARN_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/learn/learn.h"
#include "launcher/learn/learn_program.h"
#include "policy/profile/profile.h"

/* A profile from what a run wanted. PURE. */

struct sbx_learn_run {
	const struct sbx_learn *learn;
	const struct sbx_learn_programs *programs;
	bool blind;			   /* programs were not looked at */
	const struct sbx_profile *profile; /* of the run, with its flags */
	const char *extends;		   /* the name of the run's profile; checked */
	const char *id;			   /* of the sandbox */
	char *const *command;
	const char *program; /* the command's file in the sandbox; NULL: unknown */
	bool allowed;	     /* --learn-allow */
	uint64_t now_ms;     /* CLOCK_REALTIME */
};

/*
 * The text of a profile that extends the run's by what it wanted, the narrowest entry for each
 * thing, with the evidence in a comment. The rest, which no entry may allow, is in comments alone.
 * Names come from the sandbox: an entry is written only for a normalised name or a public address
 * that sbx_net_entry_parse() takes, in quotes; all else is escaped, in a comment. malloc'ed; NULL:
 * out of memory.
 */
char *sbx_learn_profile(const struct sbx_learn_run *r);

#endif
