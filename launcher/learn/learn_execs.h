/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_LEARN_LEARN_EXECS_H
#define SBX_LAUNCHER_LEARN_LEARN_EXECS_H

#include <stdbool.h>

#include "launcher/learn/learn_program.h"
#include "launcher/loop/watches.h"
#include "launcher/plan/plan.h"

/* The programs that a sandbox executes, or tries to, for --learn. */
struct sbx_learn_execs {
	int listener; /* -1: none */
	struct sbx_watch *watch;
	const struct sbx_plan *plan; /* borrowed */
	const bool *released;	     /* borrowed: what is executed before is the self-test's */
	struct sbx_learn_programs programs;
};
#define SBX_LEARN_EXECS_INIT ((struct sbx_learn_execs){ .listener = -1 })

/* Take the listener and answer it from the loop. 0, or -errno: it is closed, and every exec in the
 * sandbox fails. */
int sbx_learn_execs_take(struct sbx_learn_execs *x, int listener_take, struct sbx_watches *watches,
			 const struct sbx_plan *plan, const bool *released);
void sbx_learn_execs_fini(struct sbx_learn_execs *x);

#endif
