/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/commands/commands.h"

#include <stdlib.h>

#include "base/cleanup.h"

const char *sbx_program_why_str(enum sbx_program_why w)
{
	static const char *const names[] = { "entry", "interpreter", "loader" };

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_PROGRAM_WHYS, "every reason has its name");
	return w < SBX_N_PROGRAM_WHYS ? names[w] : "?";
}

const char *sbx_masked_why_str(enum sbx_masked_why w)
{
	static const char *const names[] = { "name", "link", "copy" };

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_MASKED_WHYS, "every reason has its name");
	return w < SBX_N_MASKED_WHYS ? names[w] : "?";
}

const char *sbx_denied_by_str(enum sbx_denied_by by)
{
	static const char *const names[] = { "profile", "system", "rule" };

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_DENIED_BY, "each has its name");
	return by < SBX_N_DENIED_BY ? names[by] : "?";
}

void sbx_masked_fini(struct sbx_masked *m)
{
	free(m->path);
	free(m->below);
	free(m->entry);
	free(m->of);
}

void sbx_commands_fini(struct sbx_commands *c)
{
	free(c->path);
	for (size_t i = 0; i < c->n_programs; i++) {
		free(c->programs[i].path);
		free(c->programs[i].for_what);
	}
	free(c->programs);
	for (size_t i = 0; i < c->n_masked; i++)
		sbx_masked_fini(&c->masked[i]);
	free(c->masked);
	*c = (struct sbx_commands){ 0 };
}
