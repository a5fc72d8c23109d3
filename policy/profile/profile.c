/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void sbx_str_list_fini(struct sbx_str_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i]);
	free(list->v);
}

int sbx_str_list_add(struct sbx_str_list *list, const char *s)
{
	char **v = realloc(list->v, (list->n + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	list->v = v;
	v[list->n] = strdup(s);
	if (!v[list->n])
		return -ENOMEM;
	list->n++;
	return 0;
}

int sbx_str_list_copy(const struct sbx_str_list *from, struct sbx_str_list *list)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->n; i++)
		r = sbx_str_list_add(list, from->v[i]);
	return r;
}
