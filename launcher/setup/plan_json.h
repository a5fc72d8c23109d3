/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SETUP_PLAN_JSON_H
#define SBX_LAUNCHER_SETUP_PLAN_JSON_H

#include "launcher/plan/plan.h"
#include "launcher/setup/setup.h"

/* The plan as JSON (jansson), with the values that the run @s has learned; also the first part of
 * the receipt. @s is NULL for --dry-run, which shows examples of the ports that the stage would
 * choose. malloc'ed text; NULL: out of memory. Values of passed variables are left out. */
char *sbx_plan_json(const struct sbx_plan *p, const struct sbx_setup *s);

#endif
