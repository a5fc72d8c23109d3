/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_DATA_RULE_ROW_H
#define SBX_CTL_DATA_RULE_ROW_H

#include "base/err.h"
#include "ctl/print/out.h"
#include "store/store_rules.h"

/* Rules as sbxctl reads and prints them. */

/* The definition `rule` of the schema, and one line of an export. */
json_t *sbx_rule_json(const struct sbx_store_rule *r);

/* Rules that a file has. Texts are owned. */
struct sbx_rule_file {
	struct sbx_store_rule *v;
	size_t n;
};
void sbx_rule_file_fini(struct sbx_rule_file *f);
/* Read @text: a list of mappings in YAML, or one JSON object a line. Each rule is checked, and
 * every problem goes to @errs under the name @file with its line. @workspace, @by and @now_ms
 * are those of a rule that names none. 0; SBX_PROFILE_E_INVALID with @errs; -ENOMEM. */
struct sbx_rule_defaults {
	const char *workspace; /* NULL: of the host */
	const char *by;
	int64_t now_ms;
};
int sbx_rule_file_read(const char *text, size_t n, const char *file,
		       const struct sbx_rule_defaults *defaults, struct sbx_err_list *errs,
		       struct sbx_rule_file *ret);
/* Print a rule as an item of a YAML list. */
void sbx_rule_print_yaml(FILE *out, const struct sbx_store_rule *r);

#endif
