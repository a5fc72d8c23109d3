/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_FRAME_LIST_H
#define SBX_CTL_FRAME_LIST_H

#include "ctl/frame/command.h"
#include "ctl/print/table.h"

/* The rows that a command lists: a table for people, an array with --json. */
struct sbx_list {
	struct sbx_ctl *ctl;	 /* borrowed */
	struct sbx_table *table; /* owned */
	json_t *json;		 /* owned; NULL without --json */
};

/* @columns: constant, outlives the list. 0 or -ENOMEM; sbx_list_fini() in both cases. */
int sbx_list_init(struct sbx_list *l, struct sbx_ctl *ctl, const struct sbx_column *columns,
		  size_t n_columns);
void sbx_list_fini(struct sbx_list *l);

/* With --json: add @row, which is taken. 0 or -ENOMEM. */
int sbx_list_add(struct sbx_list *l, json_t *row_take);
/* Print {@key: rows}, or the table. A table without a row: tell @empty instead. 0 or -errno. */
int sbx_list_print(struct sbx_list *l, const char *key, const char *empty);

#endif
