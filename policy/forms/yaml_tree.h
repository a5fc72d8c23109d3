/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_FORMS_YAML_TREE_H
#define SBX_POLICY_FORMS_YAML_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

/*
 * The plain part of YAML as a bounded tree with positions: mappings, sequences and scalars.
 * Anchors, aliases, tags and second documents are refused, so a small file cannot unfold into a
 * large tree. The text is untrusted.
 */

#define SBX_YAML_BYTES_MAX (256 * 1024)
#define SBX_YAML_DEPTH_MAX 16

enum sbx_yaml_kind { SBX_YAML_SCALAR = 0, SBX_YAML_SEQUENCE, SBX_YAML_MAPPING };

struct sbx_yaml_node {
	uint8_t kind;     /* enum sbx_yaml_kind */
	uint8_t depth;    /* of the root: 0 */
	bool quoted;      /* a scalar in quotes or as a block: "" and ~ are then text */
	int line, column; /* from 1 */
	uint32_t next;    /* index of the next sibling; 0: none */
	uint32_t first;   /* index of the first child, a mapping's key, value, key...; 0: none */
	uint32_t n;       /* items of a sequence, pairs of a mapping */
	uint32_t text;    /* the offset of a scalar's text */
};

struct sbx_yaml;

/* Parse @in. 0; SBX_YAML_E_INVALID with the problem in @errs under the name @file; -ENOMEM. */
enum { SBX_YAML_E_INVALID = 1 };
int sbx_yaml_parse(struct sbx_span in, const char *file, struct sbx_err_list *errs,
		   struct sbx_yaml **ret_yaml);
struct sbx_yaml *sbx_yaml_free(struct sbx_yaml *y);

/* NULL for an empty document. Nodes and texts live as long as @y. */
const struct sbx_yaml_node *sbx_yaml_root(const struct sbx_yaml *y);
const struct sbx_yaml_node *sbx_yaml_first(const struct sbx_yaml *y, const struct sbx_yaml_node *n);
const struct sbx_yaml_node *sbx_yaml_next(const struct sbx_yaml *y, const struct sbx_yaml_node *n);
/* The text of a scalar: NUL-terminated, UTF-8, no control bytes but tab and newline. */
const char *sbx_yaml_text(const struct sbx_yaml *y, const struct sbx_yaml_node *n);

#endif
