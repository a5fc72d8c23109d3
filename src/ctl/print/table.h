/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_PRINT_TABLE_H
#define SBX_CTL_PRINT_TABLE_H

#include "ctl/print/out.h"

/*
 * A table of text. On a terminal it fits the width: columns that may shrink are cut with an
 * ellipsis, the widest first, and on a terminal too narrow even for that each row becomes lines of
 * "NAME value". Without a terminal, or with --wide, nothing is cut. All text is escaped.
 */

struct sbx_column {
	const char *title; /* upper-case */
	bool right;	   /* numbers */
	bool shrinks;	   /* may be cut */
};

#define SBX_TABLE_COLUMNS_MAX 16

struct sbx_table;
/* @columns: constant, outlives the table. NULL when out of memory. */
struct sbx_table *sbx_table_new(const struct sbx_column *columns, size_t n_columns);
struct sbx_table *sbx_table_free(struct sbx_table *t);
/* Add the next cell, row by row. NULL and "" are printed as "-". A failure is kept, and reported by
 * sbx_table_print(). */
void sbx_table_add(struct sbx_table *t, enum sbx_colour colour, const char *text);
void sbx_table_addf(struct sbx_table *t, enum sbx_colour colour, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
size_t sbx_table_n_rows(const struct sbx_table *t);
/* 0; -ENOMEM: a cell is missing, and nothing was printed. */
int sbx_table_print(const struct sbx_table *t, const struct sbx_out *out);

#endif
