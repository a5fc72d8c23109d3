/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_DATA_EVENT_ROW_H
#define SBX_CTL_DATA_EVENT_ROW_H

#include "ctl/print/out.h"
#include "store/store_list.h"

/* One event, as JSON (the definition `events` of the schema) and as a line for people. */
json_t *sbx_event_json(const struct sbx_store_event_row *e);
/* On a terminal the line is cut to its width. 0 or -ENOMEM. */
int sbx_event_print(const struct sbx_out *out, const struct sbx_store_event_row *e);

#endif
