/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_LIVE_SANDBOX_ROW_H
#define SBX_CTL_LIVE_SANDBOX_ROW_H

#include "ctl/frame/command.h"
#include "store/store_list.h"

/* A recorded sandbox, for people and as JSON. */

/* Sets @key of @o, unless the number is not known (SBX_STORE_NONE). */
void sbx_row_set_int(json_t *o, const char *key, int64_t v);

/* All that the database knows (the definition `sandbox` of the schema). */
json_t *sbx_sandbox_json(const struct sbx_store_sandbox_row *s);
/* The words of a command, separated by spaces. malloc'ed; NULL when out of memory. */
char *sbx_sandbox_command(const json_t *command);

#endif
