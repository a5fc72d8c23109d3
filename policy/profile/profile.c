/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/profile/profile.h"

#include <stdlib.h>

void sbx_str_list_fini(struct sbx_str_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i]);
	free(list->v);
}
