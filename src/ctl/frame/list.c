/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/frame/list.h"

#include <errno.h>

#include "ctl/frame/places.h"

int sbx_list_init(struct sbx_list *l, struct sbx_ctl *ctl, const struct sbx_column *columns,
		  size_t n_columns)
{
	*l = (struct sbx_list){ .ctl = ctl,
				.table = sbx_table_new(columns, n_columns),
				.json = ctl->out.json ? json_array() : NULL };
	return l->table && (l->json || !ctl->out.json) ? 0 : -ENOMEM;
}

void sbx_list_fini(struct sbx_list *l)
{
	sbx_table_free(l->table);
	json_decref(l->json);
}

int sbx_list_add(struct sbx_list *l, json_t *row_take)
{
	return json_array_append_new(l->json, row_take) == 0 ? 0 : -ENOMEM;
}

int sbx_list_print(struct sbx_list *l, const char *key, const char *empty)
{
	if (l->json)
		return sbx_out_json(&l->ctl->out, json_pack("{s:O}", key, l->json), false);
	if (sbx_table_n_rows(l->table) > 0)
		return sbx_table_print(l->table, &l->ctl->out);
	sbx_ctl_tell_empty(l->ctl, empty);
	return 0;
}
