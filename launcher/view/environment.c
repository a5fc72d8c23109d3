/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/view/environment.h"

#include <stdlib.h>
#include <string.h>

const char *sbx_environment_get(const struct sbx_environment *e, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < e->n; i++)
		if (strncmp(e->v[i], name, n) == 0 && e->v[i][n] == '=')
			return e->v[i] + n + 1;
	return NULL;
}

void sbx_environment_fini(struct sbx_environment *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->v[i]);
	free(e->v);
	free(e->origin);
	*e = (struct sbx_environment){ 0 };
}
