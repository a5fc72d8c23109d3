/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From libyaml's events to a tree in two arrays: nodes (a child is linked to its next sibling by
 * index) and text. Node 0 is the root, so index 0 can mean "none".
 *
 * Limits: 256 KiB of text, 16 levels. As an alias is an error, a node costs at least a byte of
 * input and the arrays are bounded by it. Nothing here recurses.
 */

#include "policy/forms/yaml_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"

struct sbx_yaml {
	struct sbx_yaml_node *nodes;
	size_t n_nodes, room_nodes;
	char *text;
	size_t n_text, room_text;
};

struct builder {
	struct sbx_yaml *y;
	const char *file;
	struct sbx_err_list *errs;
	size_t depth;				 /* open collections */
	uint32_t open[SBX_YAML_DEPTH_MAX];	 /* their nodes */
	uint32_t last_child[SBX_YAML_DEPTH_MAX]; /* and the last child of each; 0 none */
};

struct sbx_yaml *sbx_yaml_free(struct sbx_yaml *y)
{
	if (!y)
		return NULL;
	free(y->nodes);
	free(y->text);
	free(y);
	return NULL;
}
SBX_DEFINE_CLEANUP(struct sbx_yaml, sbx_yaml_free);

static int fail(struct builder *b, yaml_mark_t mark, const char *what)
{
	sbx_err_list_add(b->errs, b->file, (int)mark.line + 1, (int)mark.column + 1, "%s", what);
	return SBX_YAML_E_INVALID;
}

static int grow(void **p, size_t *room, size_t want, size_t n_item)
{
	size_t room_new = *room ? *room : 64;
	void *p_new;

	if (want <= *room)
		return 0;
	while (room_new < want)
		room_new *= 2;
	p_new = realloc(*p, room_new * n_item);
	if (!p_new)
		return -ENOMEM;
	*p = p_new;
	*room = room_new;
	return 0;
}

static int add_node(struct builder *b, enum sbx_yaml_kind kind, yaml_mark_t mark,
		    uint32_t *ret_index)
{
	struct sbx_yaml *y = b->y;
	uint32_t index = (uint32_t)y->n_nodes;

	if (grow((void **)&y->nodes, &y->room_nodes, y->n_nodes + 1, sizeof(*y->nodes)) < 0)
		return -ENOMEM;
	y->nodes[y->n_nodes++] = (struct sbx_yaml_node){
		.kind = (uint8_t)kind,
		.depth = (uint8_t)b->depth,
		.line = (int)mark.line + 1,
		.column = (int)mark.column + 1,
	};
	if (b->depth > 0) {
		uint32_t parent = b->open[b->depth - 1], *last = &b->last_child[b->depth - 1];

		if (*last)
			y->nodes[*last].next = index;
		else
			y->nodes[parent].first = index;
		*last = index;
		y->nodes[parent].n++;
	}
	*ret_index = index;
	return 0;
}

/* A profile has no control bytes, because its texts are shown to people and passed to tools. */
static bool has_control(const uint8_t *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((s[i] < 0x20 && s[i] != '\t' && s[i] != '\n') || s[i] == 0x7f)
			return true;
		if (s[i] == 0xc2 && i + 1 < n && s[i + 1] < 0xa0) /* U+0080..U+009F */
			return true;
	}
	return false;
}

static int add_scalar(struct builder *b, const yaml_event_t *e)
{
	struct sbx_yaml *y = b->y;
	size_t n = e->data.scalar.length;
	uint32_t index;

	if (has_control(e->data.scalar.value, n))
		return fail(b, e->start_mark, "a control character in a value");
	if (add_node(b, SBX_YAML_SCALAR, e->start_mark, &index) < 0 ||
	    grow((void **)&y->text, &y->room_text, y->n_text + n + 1, 1) < 0)
		return -ENOMEM;
	y->nodes[index].quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	y->nodes[index].text = (uint32_t)y->n_text;
	memcpy(y->text + y->n_text, e->data.scalar.value, n);
	y->n_text += n;
	y->text[y->n_text++] = '\0';
	return 0;
}

static int open_collection(struct builder *b, enum sbx_yaml_kind kind, yaml_mark_t mark)
{
	uint32_t index;

	if (b->depth == SBX_YAML_DEPTH_MAX)
		return fail(b, mark, "nested too deeply");
	if (add_node(b, kind, mark, &index) < 0)
		return -ENOMEM;
	b->open[b->depth] = index;
	b->last_child[b->depth] = 0;
	b->depth++;
	return 0;
}

static void close_collection(struct builder *b)
{
	struct sbx_yaml_node *n;

	assert(b->depth > 0);
	n = &b->y->nodes[b->open[--b->depth]];
	if (n->kind == SBX_YAML_MAPPING)
		n->n /= 2;
}

static int decorated(struct builder *b, const yaml_event_t *e, const yaml_char_t *anchor,
		     const yaml_char_t *tag)
{
	if (anchor)
		return fail(b, e->start_mark, "anchors (&name) are not used in profiles");
	/* "!" alone is how libyaml reports an explicitly untagged scalar. */
	if (tag)
		return fail(b, e->start_mark, "tags (!name) are not used in profiles");
	return 0;
}

#define ALIAS_HINT "quote a name that begins with an asterisk: \"*.example.org\""

/* Take one event. 0 to go on. */
static int take(struct builder *b, const yaml_event_t *e)
{
	int r;

	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->y->n_nodes > 0)
			return fail(b, e->start_mark, "a second document in the same file");
		return 0;
	case YAML_ALIAS_EVENT:
		return fail(b, e->start_mark,
			    "aliases (*name) are not used in profiles; " ALIAS_HINT);
	case YAML_SCALAR_EVENT:
		r = decorated(b, e, e->data.scalar.anchor, e->data.scalar.tag);
		return r ? r : add_scalar(b, e);
	case YAML_SEQUENCE_START_EVENT:
		r = decorated(b, e, e->data.sequence_start.anchor, e->data.sequence_start.tag);
		return r ? r : open_collection(b, SBX_YAML_SEQUENCE, e->start_mark);
	case YAML_MAPPING_START_EVENT:
		r = decorated(b, e, e->data.mapping_start.anchor, e->data.mapping_start.tag);
		return r ? r : open_collection(b, SBX_YAML_MAPPING, e->start_mark);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		close_collection(b);
		return 0;
	default:
		return 0;
	}
}

/* Advice about the mistakes that profiles invite, or "". */
static const char *hint_for(const yaml_parser_t *p)
{
	if (p->context && strcmp(p->context, "while scanning an alias") == 0)
		return "; " ALIAS_HINT;
	if (p->problem && strcmp(p->problem, "found character that cannot start any token") == 0)
		return "; indent with spaces, not with tabs, and quote a text that begins with "
		       "@, % or `";
	return "";
}

/* libyaml's own message, with a hint. */
static int syntax_error(struct builder *b, const yaml_parser_t *p)
{
	const char *context = p->context ? p->context : "";

	if (p->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (p->error == YAML_READER_ERROR) {
		sbx_err_list_add(b->errs, b->file, 0, 0, "not UTF-8 text, at byte %zu: %s",
				 p->problem_offset, p->problem ? p->problem : "unreadable");
		return SBX_YAML_E_INVALID;
	}
	sbx_err_list_add(b->errs, b->file, (int)p->problem_mark.line + 1,
			 (int)p->problem_mark.column + 1, "not YAML: %s%s%s%s",
			 p->problem ? p->problem : "syntax error", *context ? " " : "", context,
			 hint_for(p));
	return SBX_YAML_E_INVALID;
}

static int run(struct builder *b, yaml_parser_t *p)
{
	bool done = false;

	while (!done) {
		yaml_event_t e;
		int r;

		if (!yaml_parser_parse(p, &e))
			return syntax_error(b, p);
		r = take(b, &e);
		done = e.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&e);
		if (r != 0)
			return r;
	}
	return 0;
}

int sbx_yaml_parse(struct sbx_span in, const char *file, struct sbx_err_list *errs,
		   struct sbx_yaml **ret_yaml)
{
	SBX_CLEANUP(sbx_yaml_freep) struct sbx_yaml *y = calloc(1, sizeof(*y));
	struct builder b = { .y = y, .file = file, .errs = errs };
	yaml_parser_t p;
	int r;

	if (!y)
		return -ENOMEM;
	if (in.n > SBX_YAML_BYTES_MAX) {
		sbx_err_list_add(errs, file, 0, 0, "longer than %d KiB", SBX_YAML_BYTES_MAX / 1024);
		return SBX_YAML_E_INVALID;
	}
	if (!yaml_parser_initialize(&p))
		return -ENOMEM;
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p, in.n ? in.p : (const uint8_t *)"", in.n);
	r = run(&b, &p);
	yaml_parser_delete(&p);
	if (r == 0)
		*ret_yaml = sbx_steal_ptr(&y);
	return r;
}

const struct sbx_yaml_node *sbx_yaml_root(const struct sbx_yaml *y)
{
	return y->n_nodes ? &y->nodes[0] : NULL;
}

const struct sbx_yaml_node *sbx_yaml_first(const struct sbx_yaml *y, const struct sbx_yaml_node *n)
{
	return n->first ? &y->nodes[n->first] : NULL;
}

const struct sbx_yaml_node *sbx_yaml_next(const struct sbx_yaml *y, const struct sbx_yaml_node *n)
{
	return n->next ? &y->nodes[n->next] : NULL;
}

const char *sbx_yaml_text(const struct sbx_yaml *y, const struct sbx_yaml_node *n)
{
	return n->kind == SBX_YAML_SCALAR ? y->text + n->text : "";
}
