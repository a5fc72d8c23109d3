/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The hooks of the real program: nothing. See step_hook.h. */
#include "launcher/process/step_hook.h"

int sbx_step_hook(const char *step)
{
	(void)step;
	return 0;
}

void sbx_step_undo_hook(const char *step)
{
	(void)step;
}
