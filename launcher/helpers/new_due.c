/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/helpers/new_due.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/helpers/new_protected.h"

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

struct sbx_new_look *sbx_new_look_free(struct sbx_new_look *l)
{
	if (l) {
		free(l->path);
		free(l->name);
	}
	free(l);
	return NULL;
}

bool sbx_new_look_is_urgent(const struct sbx_new_look *l)
{
	return l->what != SBX_NEW_LOOK_NAME || strcmp(l->name, ".git") == 0 || sbx_new_is_of_bare(l->name);
}

void sbx_new_due_put(struct sbx_new_due *due, const struct sbx_new_look *l)
{
	void **set = sbx_new_look_is_urgent(l) ? &due->urgent : &due->later;
	struct sbx_new_look *copy;

	if (tfind(l, set, compare) || !(copy = malloc(sizeof(*copy))))
		return;
	*copy = *l;
	copy->path = strdup(l->path);
	copy->name = strdup(l->name);
	if (!copy->path || !copy->name || !tsearch(copy, set, compare))
		sbx_new_look_free(copy);
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
		sbx_new_look_free(l);
}
