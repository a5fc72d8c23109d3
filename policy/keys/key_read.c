/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reader of a mapping by its key table. key_scalar.c reads scalars, net_entry.c entries of the
 * network lists, and key_read_items.c the keys that only profiles have. Every list is bounded by
 * its key's max, also if it comes from several files.
 */

#include "policy/keys/key_read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/forms/suggest.h"
#include "policy/keys/key_read_internal.h"
#include "policy/keys/key_scalar.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/profile.h"

#define KEYS_MAX 32 /* rows of a block */

void sbx_key_read_error(struct sbx_key_reader *r, const struct sbx_yaml_node *node, const char *fmt,
			...)
{
	va_list ap;

	va_start(ap, fmt);
	sbx_err_list_vadd(r->errs, r->file, node->line, node->column, fmt, ap);
	va_end(ap);
	r->n_errors++;
}

/* Report that the value is not of the key's type. */
void sbx_key_read_wrong_kind(struct sbx_key_reader *r, const struct sbx_key_block *block,
			     const struct sbx_key *key, const struct sbx_yaml_node *node)
{
	const char *form = sbx_key_form(key->type);
	char path[SBX_KEY_PATH_MAX];

	sbx_key_path(block, key, path, sizeof(path));
	if (key->unseen)
		sbx_key_read_error(r, node, "%s must be %s: write %s", path, form, key->unseen);
	else if (key->type == SBX_KEY_STRINGS && sbx_key_read_is_text(r, node))
		sbx_key_read_error(r, node, "%s must be %s: write [%s]", path, form,
				   sbx_yaml_text(r->yaml, node));
	else if (key->type == SBX_KEY_EITHER && key->check && key->check(""))
		sbx_key_read_error(r, node, "%s must be %s: %s", path, form, key->check(""));
	else
		sbx_key_read_error(r, node, "%s must be %s", path, form);
}

/* A scalar with a value: in quotes, or not one of YAML's words for null. */
bool sbx_key_read_is_text(const struct sbx_key_reader *r, const struct sbx_yaml_node *node)
{
	const char *text = sbx_yaml_text(r->yaml, node);

	if (node->kind != SBX_YAML_SCALAR)
		return false;
	return node->quoted || (*text && strcmp(text, "~") != 0 && strcmp(text, "null") != 0);
}

/* Is there room in a list for one more? Reports a full list once. */
bool sbx_key_read_has_room(struct sbx_key_reader *r, const struct sbx_key_block *block,
			   const struct sbx_key *key, const struct sbx_yaml_node *node, size_t n)
{
	char path[SBX_KEY_PATH_MAX];

	if (n < key->max)
		return true;
	sbx_key_read_error(r, node, "%s has more than %u entries",
			   sbx_key_path(block, key, path, sizeof(path)), (unsigned)key->max);
	return false;
}

static int read_scalar(struct sbx_key_reader *r, const struct sbx_key_block *block,
		       const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_err err = { 0 };
	int ret;

	if (!sbx_key_read_is_text(r, node)) {
		sbx_key_read_wrong_kind(r, block, key, node);
		return 0;
	}
	ret = sbx_key_set(block, key, sbx_yaml_text(r->yaml, node), base, &err);
	if (ret == SBX_PROFILE_E_INVALID)
		sbx_key_read_error(r, node, "%s", err.msg);
	return ret < 0 ? ret : 0;
}

/* --- lists of strings --- */

static const char *string_problem(const struct sbx_key *key, const char *text)
{
	if (key->type != SBX_KEY_WORDS && strpbrk(text, "\t\n"))
		return "tabs and newlines are not allowed";
	return key->check ? key->check(text) : NULL;
}

/* Append the text of @node to @list. */
static int read_string_item(struct sbx_key_reader *r, const struct sbx_key_block *block,
			    const struct sbx_key *key, const struct sbx_yaml_node *node,
			    struct sbx_str_list *list)
{
	const char *text = sbx_yaml_text(r->yaml, node), *why;
	char path[SBX_KEY_PATH_MAX];
	struct sbx_err err = { 0 };
	int ret;

	if (!sbx_key_read_is_text(r, node)) {
		sbx_key_read_wrong_kind(r, block, key, node);
		return 0;
	}
	sbx_key_path(block, key, path, sizeof(path));
	why = string_problem(key, text);
	if (why && key->unseen)
		sbx_key_read_error(r, node, "%s: %s: write %s", path, why, key->unseen);
	else if (why)
		sbx_key_read_error(r, node, "%s: '%s': %s", path, text, why);
	if (why)
		return 0;
	ret = key->judge ? key->judge(text, &err) : 0;
	if (ret > 0)
		sbx_key_read_error(r, node, "%s: %s", path, err.msg);
	if (ret != 0)
		return ret < 0 ? ret : 0;
	return sbx_str_list_add(list, text);
}

/* An empty list has v, too: that shows that the key was given. */
static int note_given(struct sbx_str_list *list)
{
	if (!list->v)
		list->v = calloc(1, sizeof(*list->v));
	return list->v ? 0 : -ENOMEM;
}

static int read_strings(struct sbx_key_reader *r, const struct sbx_key_block *block,
			const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_str_list *list = (void *)((uint8_t *)base + key->offset);

	if (note_given(list) < 0)
		return -ENOMEM;
	for (node = sbx_yaml_first(r->yaml, node); node; node = sbx_yaml_next(r->yaml, node)) {
		if (!sbx_key_read_has_room(r, block, key, node, list->n))
			return 0;
		if (read_string_item(r, block, key, node, list) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* A command line is one value: it takes the place of the one that the profile starts from. */
static int read_words(struct sbx_key_reader *r, const struct sbx_key_block *block,
		      const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_str_list *list = (void *)((uint8_t *)base + key->offset);

	sbx_str_list_fini(list);
	*list = (struct sbx_str_list){ 0 };
	return read_strings(r, block, key, node, base);
}

static int read_names(struct sbx_key_reader *r, const struct sbx_key_block *block,
		      const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_str_list *list = (void *)((uint8_t *)base + key->offset);

	if (node->kind == SBX_YAML_SEQUENCE)
		return read_strings(r, block, key, node, base);
	if (note_given(list) < 0)
		return -ENOMEM;
	if (node->kind == SBX_YAML_SCALAR)
		return read_string_item(r, block, key, node, list);
	sbx_key_read_wrong_kind(r, block, key, node);
	return 0;
}

/* --- network lists --- */

static int add_part(char **joined, const char *part)
{
	char *new;

	if (asprintf(&new, "%s%s%s", *joined ? *joined : "", *joined ? "," : "", part) < 0)
		return -ENOMEM;
	free(*joined);
	*joined = new;
	return 0;
}

/* 443, "443,8443", [443, 1000-2000]: joined by commas. The entry's parser judges the parts. */
static int read_ports(struct sbx_key_reader *r, const struct sbx_key_block *block,
		      const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	char **field = (char **)(void *)((uint8_t *)base + key->offset);
	const struct sbx_yaml_node *item;
	size_t n = 0;

	if (node->kind == SBX_YAML_SCALAR && sbx_key_read_is_text(r, node))
		return add_part(field, sbx_yaml_text(r->yaml, node));
	item = node->kind == SBX_YAML_SEQUENCE ? sbx_yaml_first(r->yaml, node) : NULL;
	if (!item)
		sbx_key_read_wrong_kind(r, block, key, node);
	for (; item; item = sbx_yaml_next(r->yaml, item)) {
		if (!sbx_key_read_is_text(r, item) || n++ == SBX_PORTS_MAX) {
			sbx_key_read_wrong_kind(r, block, key, item);
			return 0;
		}
		if (add_part(field, sbx_yaml_text(r->yaml, item)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void net_item_fini(struct sbx_net_item *item)
{
	sbx_key_fini(&sbx_net_item_keys, item);
}

/* An entry that is a mapping: make a pattern of it, so that there is one parser. */
static int read_net_mapping(struct sbx_key_reader *r, const struct sbx_yaml_node *node, bool deny,
			    struct sbx_net_entry *ret_entry)
{
	static const char *const protos[] = { "", "/tcp", "/udp" };
	SBX_CLEANUP(net_item_fini) struct sbx_net_item item = { 0 };
	SBX_AUTO_FREE char *pattern = NULL;
	struct sbx_err err = { 0 };
	size_t n_errors = r->n_errors;
	int ret;

	if (sbx_key_read_block(r, &sbx_net_item_keys, node, &item) < 0)
		return -ENOMEM;
	if (r->n_errors != n_errors)
		return SBX_PROFILE_E_INVALID;
	if (!item.host == !item.cidr) {
		sbx_key_read_error(r, node, "an entry has one of host and cidr");
		return SBX_PROFILE_E_INVALID;
	}
	if (item.host && strpbrk(item.host, ":/[]")) {
		sbx_key_read_error(r, node,
				   "entry.host: '%s': only a name; ports go under ports:, "
				   "addresses under cidr:",
				   item.host);
		return SBX_PROFILE_E_INVALID;
	}
	ret = asprintf(&pattern, "%s%s%s%s%s%s", item.cidr ? "[" : "",
		       item.host ? item.host : item.cidr, item.cidr ? "]" : "",
		       item.ports ? ":" : "", item.ports ? item.ports : "", protos[item.protocol]);
	if (ret < 0) {
		pattern = NULL;
		return -ENOMEM;
	}
	ret = sbx_net_entry_parse(pattern, item.host ? SBX_PATTERN_HOST : SBX_PATTERN_CIDR, deny,
				  ret_entry, &err);
	if (ret == SBX_PROFILE_E_INVALID)
		sbx_key_read_error(r, node, "%s", err.msg);
	if (ret != 0)
		return ret;
	ret_entry->private_ok = item.private_ok;
	ret_entry->check_set = item.check != 0;
	ret_entry->check = item.check ? (enum sbx_check)(item.check - 1) : SBX_CHECK_NONE;
	if (sbx_key_compose_requests(r, node, deny, &item, ret_entry) == 0)
		return 0;
	sbx_net_entry_fini(ret_entry);
	return SBX_PROFILE_E_INVALID;
}

static int read_net_item(struct sbx_key_reader *r, const struct sbx_yaml_node *node, bool deny,
			 struct sbx_net_entry *ret_entry)
{
	struct sbx_err err = { 0 };
	int ret;

	if (node->kind == SBX_YAML_MAPPING)
		return read_net_mapping(r, node, deny, ret_entry);
	if (!sbx_key_read_is_text(r, node)) {
		sbx_key_read_error(r, node,
				   "an entry is a string or a mapping with host: or cidr:");
		return SBX_PROFILE_E_INVALID;
	}
	ret = sbx_net_entry_parse(sbx_yaml_text(r->yaml, node), SBX_PATTERN_ANY, deny, ret_entry,
				  &err);
	if (ret == SBX_PROFILE_E_INVALID)
		sbx_key_read_error(r, node, "%s", err.msg);
	return ret;
}

static int read_net_list(struct sbx_key_reader *r, const struct sbx_key_block *block,
			 const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_net_list *list = (void *)((uint8_t *)base + key->offset);

	for (node = sbx_yaml_first(r->yaml, node); node; node = sbx_yaml_next(r->yaml, node)) {
		struct sbx_net_entry e = { 0 };
		int ret;

		if (!sbx_key_read_has_room(r, block, key, node, list->n))
			return 0;
		ret = read_net_item(r, node, list->deny, &e);
		if (ret == SBX_PROFILE_E_INVALID)
			continue;
		e.line = node->line;
		e.column = node->column;
		if (ret == 0 && r->file) {
			e.file = strdup(r->file);
			ret = e.file ? 0 : -ENOMEM;
		}
		if (ret == 0)
			ret = sbx_net_list_append(list, &e);
		if (ret < 0) {
			sbx_net_entry_fini(&e);
			return ret;
		}
	}
	return 0;
}

/* --- blocks --- */

static int read_inner_block(struct sbx_key_reader *r, const struct sbx_key_block *block,
			    const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	(void)block;
	return sbx_key_read_block(r, key->block, node, (uint8_t *)base + key->offset);
}

/* A string, or a mapping with keys of its own for the same struct. */
static int read_either(struct sbx_key_reader *r, const struct sbx_key_block *block,
		       const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	if (node->kind == SBX_YAML_SCALAR)
		return read_scalar(r, block, key, node, base);
	/* An empty mapping would be as if the key were not there. */
	if (node->kind != SBX_YAML_MAPPING || node->n == 0) {
		sbx_key_read_wrong_kind(r, block, key, node);
		return 0;
	}
	return sbx_key_read_block(r, key->block, node, base);
}

/* For each type: the function that reads it, and the kind of its node. */
#define ANY_KIND SBX_YAML_SCALAR, .any_kind = true
static const struct reading {
	enum sbx_yaml_kind kind;
	bool any_kind; /* the function judges the kind */
	int (*read)(struct sbx_key_reader *r, const struct sbx_key_block *block,
		    const struct sbx_key *key, const struct sbx_yaml_node *node, void *base);
} readings[SBX_N_KEY_TYPES] = {
	[SBX_KEY_BLOCK] = { SBX_YAML_MAPPING, .read = read_inner_block },
	[SBX_KEY_STRING] = { SBX_YAML_SCALAR, .read = read_scalar },
	[SBX_KEY_PROSE] = { SBX_YAML_SCALAR, .read = read_scalar },
	[SBX_KEY_SIZE] = { SBX_YAML_SCALAR, .read = read_scalar },
	[SBX_KEY_TIME] = { SBX_YAML_SCALAR, .read = read_scalar },
	[SBX_KEY_CPUS] = { SBX_YAML_SCALAR, .read = read_scalar },
	[SBX_KEY_COUNT] = { SBX_YAML_SCALAR, .read = read_scalar },
	[SBX_KEY_WORD] = { SBX_YAML_SCALAR, .read = read_scalar },
	[SBX_KEY_SWITCH] = { SBX_YAML_SCALAR, .read = read_scalar },
	[SBX_KEY_STRINGS] = { SBX_YAML_SEQUENCE, .read = read_strings },
	[SBX_KEY_WORDS] = { SBX_YAML_SEQUENCE, .read = read_words },
	[SBX_KEY_NET_LIST] = { SBX_YAML_SEQUENCE, .read = read_net_list },
	[SBX_KEY_MOUNTS] = { SBX_YAML_SEQUENCE, .read = sbx_key_read_mounts },
	[SBX_KEY_ENV] = { SBX_YAML_MAPPING, .read = sbx_key_read_env },
	[SBX_KEY_RESOLVERS] = { SBX_YAML_SEQUENCE, .read = sbx_key_read_resolvers },
	[SBX_KEY_PROXY] = { SBX_YAML_SCALAR, .read = sbx_key_read_proxy },
	[SBX_KEY_PROBES] = { SBX_YAML_SEQUENCE, .read = sbx_key_read_probes },
	[SBX_KEY_PORTS] = { ANY_KIND, .read = read_ports },
	[SBX_KEY_EXTENDS] = { .kind = SBX_YAML_SCALAR }, /* profile_parse.c has read it */
	[SBX_KEY_EITHER] = { ANY_KIND, .read = read_either },
	[SBX_KEY_NAMES] = { ANY_KIND, .read = read_names },
	[SBX_KEY_HEADERS] = { SBX_YAML_MAPPING, .read = sbx_key_read_headers },
	[SBX_KEY_SECRETS] = { SBX_YAML_SEQUENCE, .read = sbx_key_read_secrets },
};

/* The right form of a key that belongs elsewhere or is a word there, or NULL. */
static const char *instead_of(const struct sbx_key_block *block, const char *name)
{
	static const char *const rows[][3] = {
		{ "secret.from", "env", "from: env:VARIABLE" },
		{ "secret.from", "file", "from: file:PATH" },
		{ "secret.from", "credential", "from: credential:NAME" },
		{ "secret", "value", "from: env:VARIABLE, and leave the value outside" },
		{ "entry", "methods", "access: {methods: [...]}" },
		{ "entry", "paths", "access: {paths: [...]}" },
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++)
		if (strcmp(block->path, rows[i][0]) == 0 && strcmp(name, rows[i][1]) == 0)
			return rows[i][2];
	return NULL;
}

static void unknown_key(struct sbx_key_reader *r, const struct sbx_key_block *block,
			const struct sbx_yaml_node *node)
{
	const char *name = sbx_yaml_text(r->yaml, node);
	const char *instead = instead_of(block, name);
	struct sbx_suggest s = sbx_suggest(name);
	char hint[64];

	if (instead) {
		sbx_key_read_error(r, node, "unknown key '%s' in %s: write %s", name, block->path,
				   instead);
		return;
	}
	for (size_t i = 0; i < block->n_keys; i++)
		sbx_suggest_offer(&s, block->keys[i].name);
	sbx_key_read_error(r, node, "unknown key '%s'%s%s%s", s.wrong, *block->path ? " in " : "",
			   block->path, sbx_suggest_text(&s, hint, sizeof(hint)));
}

static int read_pair(struct sbx_key_reader *r, const struct sbx_key_block *block,
		     const struct sbx_yaml_node *name, const struct sbx_yaml_node *value,
		     void *base, int *seen_lines)
{
	const struct sbx_key *key = sbx_key_find(block, sbx_yaml_text(r->yaml, name));
	const struct reading *reading;
	int *seen;

	if (name->kind != SBX_YAML_SCALAR || !key) {
		unknown_key(r, block, name);
		return 0;
	}
	seen = &seen_lines[key - block->keys];
	if (*seen) {
		sbx_key_read_error(r, name, "key '%s' is there twice (first in line %d)", key->name,
				   *seen);
		return 0;
	}
	*seen = name->line;
	reading = &readings[key->type];
	if (!reading->read)
		return 0;
	if (value->kind != reading->kind && !reading->any_kind) {
		sbx_key_read_wrong_kind(r, block, key, value);
		return 0;
	}
	return reading->read(r, block, key, value, base);
}

int sbx_key_read_block(struct sbx_key_reader *r, const struct sbx_key_block *block,
		       const struct sbx_yaml_node *node, void *base)
{
	const struct sbx_yaml_node *value;
	int seen_lines[KEYS_MAX] = { 0 };

	if (node->kind != SBX_YAML_MAPPING) {
		sbx_key_read_error(r, node, "%s must be a mapping of keys",
				   *block->path ? block->path : "the document");
		return 0;
	}
	for (node = sbx_yaml_first(r->yaml, node); node; node = sbx_yaml_next(r->yaml, value)) {
		value = sbx_yaml_next(r->yaml, node);
		if (read_pair(r, block, node, value, base, seen_lines) < 0)
			return -ENOMEM;
	}
	return 0;
}
