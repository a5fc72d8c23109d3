/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_DOCTOR_DOCTOR_H
#define SBX_CTL_DOCTOR_DOCTOR_H

#include <stddef.h>

#include "ctl/doctor/doctor_facts.h"

/* `sbxctl doctor`: what this machine offers to sandboxes, judged check by check. PURE: the facts
 * are read elsewhere (doctor_gather.h). */

enum sbx_doctor_state {
	SBX_DOCTOR_OK = 0,
	SBX_DOCTOR_UNKNOWN, /* not tried, because of a problem that another check names */
	SBX_DOCTOR_WARNING, /* sandboxes run, with less than they could have */
	SBX_DOCTOR_PROBLEM, /* sandboxes do not start, or their records are lost */
	SBX_N_DOCTOR_STATES,
};
const char *sbx_doctor_state_str(enum sbx_doctor_state s); /* "ok", ... */

struct sbx_doctor_check {
	const char *name; /* static: "user-namespaces" */
	enum sbx_doctor_state state;
	/* One line each, escaped. @remedy is "" where there is nothing to do; a check that is ok
	 * may have advice there. */
	char seen[768], remedy[768];
};

#define SBX_DOCTOR_CHECKS_MAX 24

struct sbx_doctor_report {
	size_t n;
	struct sbx_doctor_check v[SBX_DOCTOR_CHECKS_MAX]; /* always the same checks in this order */
};

void sbx_doctor_judge(const struct sbx_doctor_facts *f, struct sbx_doctor_report *ret_report);
/* The number of checks in @state. */
size_t sbx_doctor_count(const struct sbx_doctor_report *r, enum sbx_doctor_state state);

#endif
