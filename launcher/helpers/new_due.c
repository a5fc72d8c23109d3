/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/helpers/new_due.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/helpers/new_protected.h"

/* With the copies of its path and name. */
struct queued {
	struct sbx_new_look look;
	char text[];
};

static int compare(const void *a, const void *b)
{
	const struct sbx_new_look *x = a, *y = b;
	int r = strcmp(x->path, y->path);

	if (r == 0)
		r = strcmp(x->name, y->name);
	if (r == 0)
		r = (x->what > y->what) - (x->what < y->what);
	return r ? r : (x->grant > y->grant) - (x->grant < y->grant);
}

bool sbx_new_look_is_urgent(const struct sbx_new_look *l)
{
	return l->what != SBX_NEW_LOOK_NAME || strcmp(l->name, ".git") == 0 ||
	       sbx_new_is_of_bare(l->name);
}

void sbx_new_due_put(struct sbx_new_due *due, const struct sbx_new_look *l)
{
	void **set = sbx_new_look_is_urgent(l) ? &due->urgent : &due->later;
	size_t n_path = strlen(l->path) + 1, n_name = strlen(l->name) + 1;
	struct queued *q = tfind(l, set, compare) ? NULL : malloc(sizeof(*q) + n_path + n_name);

	if (!q)
		return;
	q->look = *l;
	q->look.path = memcpy(q->text, l->path, n_path);
	q->look.name = memcpy(q->text + n_path, l->name, n_name);
	if (!tsearch(&q->look, set, compare))
		free(q);
}

struct sbx_new_look *sbx_new_due_take(struct sbx_new_due *due)
{
	void **set = due->urgent ? &due->urgent : &due->later;
	struct sbx_new_look *l = *set ? *(struct sbx_new_look **)*set : NULL;

	if (l)
		tdelete(l, set, compare);
	return l;
}

bool sbx_new_due_is_empty(const struct sbx_new_due *due)
{
	return !due->urgent && !due->later;
}

void sbx_new_due_fini(struct sbx_new_due *due)
{
	struct sbx_new_look *l;

	while ((l = sbx_new_due_take(due)))
		free(l);
}
