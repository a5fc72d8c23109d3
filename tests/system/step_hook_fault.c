/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hooks of the test program sbx-run-faults. SBX_FAULT names what happens after a step's apply:
 * "fail:STEP" makes the step fail, "kill:STEP" is a SIGKILL of the launcher, "stop:STEP" a SIGSTOP
 * (a test then looks at a half-built sandbox); "undo:STEP" is a SIGKILL before the step's undo,
 * "rest:STEP" a SIGSTOP. Only this program has them.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/process/step_hook.h"

int sbx_step_hook(const char *step)
{
	const char *fault = getenv("SBX_FAULT");
	const char *colon = fault ? strchr(fault, ':') : NULL;

	if (!colon || strcmp(colon + 1, step) != 0)
		return 0;
	if (strncmp(fault, "kill", 4) == 0)
		raise(SIGKILL);
	else if (strncmp(fault, "stop", 4) == 0)
		raise(SIGSTOP);
	else if (strncmp(fault, "fail", 4) == 0)
		return -EIO;
	return 0;
}

void sbx_step_undo_hook(const char *step)
{
	const char *fault = getenv("SBX_FAULT");

	if (fault && strncmp(fault, "undo:", 5) == 0 && strcmp(fault + 5, step) == 0)
		raise(SIGKILL);
	if (fault && strncmp(fault, "rest:", 5) == 0 && strcmp(fault + 5, step) == 0)
		raise(SIGSTOP);
}
