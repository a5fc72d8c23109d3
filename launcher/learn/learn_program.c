/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/learn/learn_program.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const char *sbx_learn_result_str(enum sbx_learn_result r)
{
	static const char *const names[] = { "executed", "looked for in vain", "not executable",
					     "not on the commands.allow list" };

	static_assert(SBX_N_ELEMENTS(names) == SBX_N_LEARN_RESULTS, "a word per result");
	return (unsigned)r < SBX_N_LEARN_RESULTS ? names[r] : "?";
}

static bool grow(struct sbx_learn_programs *p)
{
	size_t n_room = p->n_room ? 2 * p->n_room : 16;
	struct sbx_learn_program *v;

	if (p->n < p->n_room)
		return true;
	if (p->n == SBX_LEARN_PROGRAMS_MAX)
		return false;
	v = realloc(p->v, n_room * sizeof(*v));
	if (!v)
		return false;
	p->v = v;
	p->n_room = n_room;
	return true;
}

void sbx_learn_program_add(struct sbx_learn_programs *p, const char *path,
			   enum sbx_learn_result result, uint64_t now_ms)
{
	char *copy;

	for (size_t i = 0; i < p->n; i++) {
		struct sbx_learn_program *x = &p->v[i];

		if (x->result != result || strcmp(x->path, path) != 0)
			continue;
		x->count++;
		x->last_ms = now_ms;
		return;
	}
	copy = path[0] && strlen(path) < SBX_LEARN_PATH_MAX && grow(p) ? strdup(path) : NULL;
	if (!copy) {
		p->n_others++;
		return;
	}
	p->v[p->n++] = (struct sbx_learn_program){ copy, result, 1, now_ms, now_ms };
}

void sbx_learn_programs_fini(struct sbx_learn_programs *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].path);
	free(p->v);
	*p = (struct sbx_learn_programs){ 0 };
}
