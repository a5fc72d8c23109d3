/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/api/exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 16384

static void put(struct sbx_exposition *x, const char *s, size_t n)
{
	if (!x->failed && x->n + n >= x->room) {
		size_t room = (x->room ? x->room : FIRST_ROOM) * 2 + n;
		char *grown = realloc(x->buf, room);

		x->failed = !grown;
		if (grown) {
			x->buf = grown;
			x->room = room;
		}
	}
	if (x->failed)
		return;
	memcpy(x->buf + x->n, s, n);
	x->n += n;
	x->buf[x->n] = '\0';
}

static void put_text(struct sbx_exposition *x, const char *s)
{
	put(x, s, strlen(s));
}

void sbx_exposition_begin(struct sbx_exposition *x, const char *name, const char *type,
			  const char *help)
{
	const char *const parts[] = {
		"# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n"
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		put_text(x, parts[i]);
}

static void put_value(struct sbx_exposition *x, const char *s)
{
	for (; *s; s++) {
		if (*s == '\n')
			put_text(x, "\\n");
		else if (*s == '"' || *s == '\\')
			put(x, (char[]){ '\\', *s }, 2);
		else
			put(x, s, 1);
	}
}

static void sample(struct sbx_exposition *x, const char *name, const struct sbx_label *labels,
		   const char *number)
{
	put_text(x, name);
	for (const struct sbx_label *l = labels; l && l->name; l++) {
		put_text(x, l == labels ? "{" : ",");
		put_text(x, l->name);
		put_text(x, "=\"");
		put_value(x, l->value);
		put_text(x, "\"");
	}
	put_text(x, labels && labels->name ? "} " : " ");
	put_text(x, number);
	put_text(x, "\n");
}

void sbx_exposition_add(struct sbx_exposition *x, const char *name, const struct sbx_label *labels,
			double value)
{
	char number[48];

	snprintf(number, sizeof(number), "%.9g", value);
	sample(x, name, labels, number);
}

void sbx_exposition_count(struct sbx_exposition *x, const char *name,
			  const struct sbx_label *labels, uint64_t value)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, value);
	sample(x, name, labels, number);
}

void sbx_exposition_fini(struct sbx_exposition *x)
{
	free(x->buf);
	*x = (struct sbx_exposition){ 0 };
}
