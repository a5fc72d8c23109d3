/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROCESS_STEP_HOOK_H
#define SBX_LAUNCHER_PROCESS_STEP_HOOK_H

/* Called after each step's apply, and as "begin" when the stage was started before the planning.
 * In sbx-run (step_hook.c) it does nothing; the test program sbx-run-faults links another one
 * that fails the step or kills the launcher there. 0 or -errno. */
int sbx_step_hook(const char *step);
/* Called before each step's undo, in the same way. */
void sbx_step_undo_hook(const char *step);

#endif
