/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_LEARN_LEARN_PROGRAM_H
#define SBX_LAUNCHER_LEARN_LEARN_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

/* The different programs of a run. PURE. */

#define SBX_LEARN_PROGRAMS_MAX 2048
#define SBX_LEARN_PATH_MAX     512 /* longer ones are counted among the others */

enum sbx_learn_result {
	SBX_LEARN_EXECUTED = 0,
	SBX_LEARN_MISSING,
	SBX_LEARN_NOT_EXECUTABLE, /* no permission, no file, or masked by a deny list */
	SBX_LEARN_NOT_LISTED,	  /* commands.allow does not have it */
	SBX_N_LEARN_RESULTS,
};
const char *sbx_learn_result_str(enum sbx_learn_result r);

struct sbx_learn_program {
	char *path; /* owned; untrusted */
	enum sbx_learn_result result;
	uint64_t count, first_ms, last_ms;
};

struct sbx_learn_programs {
	size_t n, n_room;
	struct sbx_learn_program *v;
	uint64_t n_others;
};

void sbx_learn_program_add(struct sbx_learn_programs *p, const char *path,
			   enum sbx_learn_result result, uint64_t now_ms);
void sbx_learn_programs_fini(struct sbx_learn_programs *p);

#endif
