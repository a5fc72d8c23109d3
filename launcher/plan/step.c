/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The names of a run's steps. */
#include "launcher/plan/step.h"

#include "base/cleanup.h"

const char *sbx_step_str(enum sbx_step_id id)
{
	static const char *const names[] = {
		[SBX_STEP_CGROUP] = "cgroup",
		[SBX_STEP_TLS] = "tls",
		[SBX_STEP_RUNTIME] = "runtime",
		[SBX_STEP_RECORD] = "record",
		[SBX_STEP_ATTACH] = "attach",
		[SBX_STEP_LIMITS] = "limits",
		[SBX_STEP_KEEP] = "keep",
		[SBX_STEP_PROTECT] = "protect",
		[SBX_STEP_CONTROL] = "control",
		[SBX_STEP_STAGE] = "stage",
		[SBX_STEP_BROKER] = "broker",
		[SBX_STEP_COMMAND] = "command",
		[SBX_STEP_PUBLISH] = "publish",
		[SBX_STEP_PRIVILEGES] = "privileges",
		[SBX_STEP_FIREWALL] = "firewall",
		[SBX_STEP_SELFTEST] = "selftest",
		[SBX_STEP_RELEASE] = "release",
	};

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_STEPS, "every step has its name");
	return names[id % SBX_N_STEPS];
}
