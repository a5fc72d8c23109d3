/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/print/table.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "ctl/print/width.h"

#define GAP	    2		   /* columns between two columns */
#define SHRUNK_MIN  8		   /* a column is not cut below this */
#define ELLIPSIS    "\xe2\x80\xa6" /* U+2026 */
#define CELLS_FIRST 64

struct cell {
	char *text; /* escaped */
	enum sbx_colour colour;
};

struct sbx_table {
	const struct sbx_column *columns;
	size_t n_columns;
	struct cell *cells;
	size_t n_cells, n_room;
	bool failed;
};

struct sbx_table *sbx_table_new(const struct sbx_column *columns, size_t n_columns)
{
	struct sbx_table *t = calloc(1, sizeof(*t));

	assert(n_columns > 0 && n_columns <= SBX_TABLE_COLUMNS_MAX);
	if (!t)
		return NULL;
	t->columns = columns;
	t->n_columns = n_columns;
	return t;
}

struct sbx_table *sbx_table_free(struct sbx_table *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i].text);
	free(t->cells);
	free(t);
	return NULL;
}

static char *escaped(const char *text)
{
	size_t n = strlen(text);
	char *buf = malloc(4 * n + 1);

	if (buf)
		sbx_escape(text, n, buf, 4 * n + 1);
	return buf;
}

void sbx_table_add(struct sbx_table *t, enum sbx_colour colour, const char *text)
{
	if (t->n_cells == t->n_room && !t->failed) {
		size_t n = t->n_room ? 2 * t->n_room : CELLS_FIRST;
		struct cell *more = reallocarray(t->cells, n, sizeof(*more));

		if (more) {
			t->cells = more;
			t->n_room = n;
		} else {
			t->failed = true;
		}
	}
	if (t->failed)
		return;
	t->cells[t->n_cells] = (struct cell){ escaped(text && text[0] ? text : "-"), colour };
	if (t->cells[t->n_cells].text)
		t->n_cells++;
	else
		t->failed = true;
}

void sbx_table_addf(struct sbx_table *t, enum sbx_colour colour, const char *fmt, ...)
{
	SBX_AUTO_FREE char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		t->failed = true;
		return;
	}
	sbx_table_add(t, colour, text);
}

size_t sbx_table_n_rows(const struct sbx_table *t)
{
	return t->n_cells / t->n_columns;
}

/* --- layout --- */

static size_t total_of(const size_t *widths, size_t n)
{
	size_t total = (n - 1) * GAP;

	for (size_t i = 0; i < n; i++)
		total += widths[i];
	return total;
}

static void natural_widths(const struct sbx_table *t, size_t *widths)
{
	for (size_t c = 0; c < t->n_columns; c++) {
		widths[c] = strlen(t->columns[c].title);
		for (size_t i = c; i < t->n_cells; i += t->n_columns) {
			size_t w = sbx_width(t->cells[i].text);

			if (w > widths[c])
				widths[c] = w;
		}
	}
}

/* Cuts the widest column that may be cut, column by column, until the table fits. False: it does
 * not. */
static bool shrink(const struct sbx_table *t, size_t *widths, size_t width)
{
	size_t total = total_of(widths, t->n_columns);

	while (total > width) {
		size_t widest = t->n_columns, second = SHRUNK_MIN, by = 1;

		for (size_t c = 0; c < t->n_columns; c++)
			if (t->columns[c].shrinks && widths[c] > SHRUNK_MIN &&
			    (widest == t->n_columns || widths[c] > widths[widest]))
				widest = c;
		if (widest == t->n_columns)
			return false;
		for (size_t c = 0; c < t->n_columns; c++)
			if (c != widest && t->columns[c].shrinks && widths[c] > second)
				second = widths[c];
		if (widths[widest] - second > by)
			by = widths[widest] - second;
		if (by > total - width)
			by = total - width;
		widths[widest] -= by;
		total -= by;
	}
	return true;
}

/* --- printing --- */

static void print_spaces(const struct sbx_out *out, size_t n)
{
	fprintf(out->f, "%*s", (int)n, "");
}

/* @width 0: whole. Returns the columns taken. */
static size_t print_cut(const struct sbx_out *out, const char *text, enum sbx_colour colour,
			size_t width)
{
	size_t taken = sbx_width(text), n = strlen(text);
	bool cut = false;

	if (width > 0) {
		size_t whole = sbx_width_fit(text, width, &taken);

		cut = whole < n;
		n = cut ? sbx_width_fit(text, width - 1, &taken) : n;
	}
	fprintf(out->f, "%s%.*s%s%s", sbx_out_begin(out, colour), (int)n, text, cut ? ELLIPSIS : "",
		sbx_out_end(out, colour));
	return taken + cut;
}

static void print_cell(const struct sbx_table *t, const struct sbx_out *out, size_t c,
		       const struct cell *cell, const size_t *widths)
{
	bool last = c + 1 == t->n_columns;
	size_t limit = out->width ? widths[c] : 0, w = sbx_width(cell->text);

	if (limit && w > limit)
		w = limit;
	if (t->columns[c].right)
		print_spaces(out, widths[c] - w);
	w = print_cut(out, cell->text, cell->colour, limit);
	if (!last && !t->columns[c].right)
		print_spaces(out, widths[c] > w ? widths[c] - w : 0);
	if (last)
		fputc('\n', out->f);
	else
		print_spaces(out, GAP);
}

static void print_rows(const struct sbx_table *t, const struct sbx_out *out, const size_t *widths)
{
	for (size_t c = 0; c < t->n_columns; c++) {
		char title[64];
		struct cell cell = { title, SBX_BOLD };

		sbx_escape(t->columns[c].title, strlen(t->columns[c].title), title, sizeof(title));
		print_cell(t, out, c, &cell, widths);
	}
	for (size_t i = 0; i < t->n_cells; i++)
		print_cell(t, out, i % t->n_columns, &t->cells[i], widths);
}

/* Lines of "NAME value", an empty one between two rows. */
static void print_blocks(const struct sbx_table *t, const struct sbx_out *out)
{
	size_t name = 0;

	for (size_t c = 0; c < t->n_columns; c++)
		if (strlen(t->columns[c].title) > name)
			name = strlen(t->columns[c].title);
	for (size_t i = 0; i < t->n_cells; i++) {
		size_t c = i % t->n_columns;

		if (c == 0 && i > 0)
			fputc('\n', out->f);
		fprintf(out->f, "%-*s ", (int)name, t->columns[c].title);
		print_cut(out, t->cells[i].text, t->cells[i].colour,
			  out->width > name + 2 ? out->width - name - 1 : 1);
		fputc('\n', out->f);
	}
}

int sbx_table_print(const struct sbx_table *t, const struct sbx_out *out)
{
	size_t widths[SBX_TABLE_COLUMNS_MAX];

	if (t->failed)
		return -ENOMEM;
	assert(t->n_cells % t->n_columns == 0);
	natural_widths(t, widths);
	if (out->width && !shrink(t, widths, out->width))
		print_blocks(t, out);
	else
		print_rows(t, out, widths);
	return 0;
}
