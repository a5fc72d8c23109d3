/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_RESOURCES_PRINT_H
#define SBX_DAEMON_RESOURCES_PRINT_H

#include <jansson.h>
#include <stdint.h>

#include "store/store_list.h"
#include "store/store_rules.h"

/* Rows of the database as objects of the API (docs/api-schemas.json). NULL: no memory. */

json_t *sbx_print_text(const char *s);	  /* NULL is null; other than UTF-8 is escaped */
json_t *sbx_print_json(const char *text); /* stored JSON; what is none is null */
json_t *sbx_print_number(int64_t v);	  /* SBX_STORE_NONE is null */
json_t *sbx_print_time(int64_t ms);	  /* RFC 3339, UTC; below 1 is null */
/* Sets "rules" to the objects of live rules, whose @texts a launcher gave. */
void sbx_print_rules(json_t *to, const json_t *texts);
json_t *sbx_print_sandbox(const struct sbx_store_sandbox_row *s);
json_t *sbx_print_event(const struct sbx_store_event_row *e);
json_t *sbx_print_rule(const struct sbx_store_rule *r);

/* Copies the members of @from that are there to @to. @keys: NULL ends them. */
void sbx_print_members(json_t *to, const json_t *from, const char *const *keys);

/* The text of an event, for followers; malloc'ed. */
char *sbx_print_event_text(const struct sbx_store_event_row *e);

/* Parse RFC 3339, with Z or an offset. Milliseconds since 1970, or -EINVAL. */
int64_t sbx_parse_time(const char *s);

/* A page of a list: {"items", "next_cursor"}. @items is taken; @next 0: this was the last one. */
json_t *sbx_print_page(json_t *items_take, int64_t next);

/* A page while its items come. */
struct sbx_page {
	json_t *items;
	int64_t limit;
	int64_t last, next; /* cursors: of the last item; of the next page, 0: there is no more */
};
/* Adds an item. @cursor: what comes behind it. 0; 1: the page was full already, so there is more;
 * -ENOMEM. */
int sbx_page_add(struct sbx_page *p, json_t *item_take, int64_t cursor);

#endif
