/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_VIEW_ENVIRONMENT_H
#define SBX_LAUNCHER_VIEW_ENVIRONMENT_H

#include <stddef.h>
#include <stdint.h>

/* The command's environment, as planned. */

enum sbx_env_origin {
	SBX_ENV_SBX = 0, /* set by us; may be shown */
	SBX_ENV_PROFILE, /* environment.set; may be shown */
	SBX_ENV_PASSED,	 /* the caller's: a value is never shown */
	SBX_ENV_FLAG,	 /* --env NAME=VALUE: never shown either */
	SBX_ENV_SECRET,	 /* a placeholder, which the run makes (setup.h) */
	SBX_N_ENV_ORIGINS,
};

struct sbx_environment {
	size_t n;
	char **v;	 /* "NAME=VALUE", NULL-terminated */
	uint8_t *origin; /* enum sbx_env_origin of each */
};

/* The value of a variable, borrowed; NULL: it is not there. */
const char *sbx_environment_get(const struct sbx_environment *e, const char *name);
void sbx_environment_fini(struct sbx_environment *e);

#endif
