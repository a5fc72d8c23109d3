/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names that policy allows and no resolver knows: the line about each; see unresolved.h. */

#include "launcher/unresolved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_told(const struct sbx_run *r, const char *name)
{
	for (size_t i = 0; i < r->n_unresolved; i++)
		if (strcmp(r->unresolved[i], name) == 0)
			return true;
	return false;
}

void sbx_unresolved_tell(struct sbx_run *r, const struct sbx_event *e)
{
	char *name;

	if (e->reason != SBX_REASON_RESOLVE_FAILED || !e->name[0] || r->options->quiet ||
	    r->n_unresolved == SBX_UNRESOLVED_MAX || is_told(r, e->name))
		return;
	name = strdup(e->name);
	if (!name)
		return;
	r->unresolved[r->n_unresolved++] = name;
	fprintf(stderr, "sbx-run: %s is allowed, but does not resolve: check the name and this host's own DNS\n", name);
}

void sbx_unresolved_free(struct sbx_run *r)
{
	while (r->n_unresolved)
		free(r->unresolved[--r->n_unresolved]);
}
