/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of rules, to be imported. The keys are those of an export; id, floor and the created and
 * changed ones of an export are read over: an imported rule is a new one, and floors are the host's
 * own. Another key is an error.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/span.h"
#include "ctl/data/rule_row.h"
#include "launcher/rules/rule_check.h"
#include "policy/forms/option_form.h"
#include "policy/forms/suggest.h"
#include "policy/forms/units.h"
#include "policy/forms/yaml_tree.h"
#include "policy/profile/profile.h"

static const char *const keys[] = { "pattern",	 "type",    "action", "priority",
				    "workspace", "enabled", "note" };
static const char *const read_over[] = { "id",	       "floor",	     "created_by",
					 "created_ms", "changed_by", "changed_ms" };

struct reading {
	const struct sbx_rule_defaults *defaults;
	const char *file;
	struct sbx_err_list *errs;
	struct sbx_rule_file *ret;
};

static void rule_fini(struct sbx_store_rule *r)
{
	free((char *)(uintptr_t)r->workspace);
	free((char *)(uintptr_t)r->type);
	free((char *)(uintptr_t)r->pattern);
	free((char *)(uintptr_t)r->action);
	free((char *)(uintptr_t)r->note);
	free((char *)(uintptr_t)r->created_by);
}

void sbx_rule_file_fini(struct sbx_rule_file *f)
{
	for (size_t i = 0; i < f->n; i++)
		rule_fini(&f->v[i]);
	free(f->v);
	*f = (struct sbx_rule_file){ 0 };
}

static int set_text(const char **field, const char *value)
{
	if (*field)
		return 1;
	*field = strdup(value);
	return *field ? 0 : -ENOMEM;
}

static bool is_read_over(const char *key)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(read_over); i++)
		if (strcmp(key, read_over[i]) == 0)
			return true;
	return false;
}

/* Sets one key. 0; 1: @ret_why says what is wrong; -ENOMEM. */
static int set(struct sbx_store_rule *r, const char *key, const char *value, const char **ret_why)
{
	uint64_t n;

	*ret_why = "it was given already";
	if (is_read_over(key))
		return 0;
	if (strcmp(key, "pattern") == 0)
		return set_text(&r->pattern, value);
	if (strcmp(key, "type") == 0)
		return set_text(&r->type, value);
	if (strcmp(key, "action") == 0)
		return set_text(&r->action, value);
	if (strcmp(key, "note") == 0)
		return set_text(&r->note, value);
	if (strcmp(key, "workspace") == 0) {
		*ret_why = sbx_form_token(value);
		return *ret_why ? 1 : set_text(&r->workspace, value);
	}
	if (strcmp(key, "priority") == 0) {
		*ret_why = sbx_rule_check_priority(value);
		if (*ret_why || sbx_count_parse(value, &n) != 0)
			return 1;
		r->priority = (int64_t)n;
		return 0;
	}
	if (strcmp(key, "enabled") == 0) {
		*ret_why = "it must be true or false";
		r->enabled = strcmp(value, "true") == 0;
		return r->enabled || strcmp(value, "false") == 0 ? 0 : 1;
	}
	*ret_why = NULL;
	return 1;
}

static int set_key(struct reading *in, struct sbx_store_rule *r, int line, int column,
		   const char *key, const char *value)
{
	char hint[160];
	const char *why;
	int e = set(r, key, value, &why);

	if (e == 1 && why) {
		sbx_err_list_add(in->errs, in->file, line, column, "%s '%s': %s", key, value, why);
	} else if (e == 1) {
		struct sbx_suggest s = sbx_suggest(key);

		for (size_t i = 0; i < SBX_N_ELEMENTS(keys); i++)
			sbx_suggest_offer(&s, keys[i]);
		sbx_err_list_add(in->errs, in->file, line, column, "unknown key '%s'%s", key,
				 sbx_suggest_text(&s, hint, sizeof(hint)));
	}
	return e < 0 ? e : 0;
}

static struct sbx_store_rule *begin(struct reading *in)
{
	struct sbx_store_rule *v = reallocarray(in->ret->v, in->ret->n + 1, sizeof(*v));

	if (!v)
		return NULL;
	in->ret->v = v;
	v += in->ret->n++;
	*v = (struct sbx_store_rule){ .priority = SBX_STORE_PRIORITY,
				      .enabled = true,
				      .created_ms = in->defaults->now_ms };
	return v;
}

/* The rule is read: its defaults, and whether planning would take it. */
static int end(struct reading *in, struct sbx_store_rule *r, int line)
{
	const struct sbx_rule_defaults *d = in->defaults;
	struct sbx_err err = { 0 };
	int e = r->type ? 0 : set_text(&r->type, "network");

	if (e == 0 && !r->workspace && d->workspace)
		e = set_text(&r->workspace, d->workspace);
	if (e == 0)
		e = set_text(&r->created_by, d->by);
	if (e == 0)
		e = sbx_rule_check(r, &err);
	if (e > 0)
		sbx_err_list_add(in->errs, in->file, line, 0, "%s", err.msg);
	return e < 0 ? e : 0;
}

/* --- YAML --- */

static int read_mapping(struct reading *in, const struct sbx_yaml *y,
			const struct sbx_yaml_node *item)
{
	const struct sbx_yaml_node *key, *value;
	struct sbx_store_rule *r;
	size_t n_before = in->errs->n;
	int e = 0;

	if (item->kind != SBX_YAML_MAPPING) {
		sbx_err_list_add(in->errs, in->file, item->line, item->column,
				 "a rule is a mapping: - pattern: example.org");
		return 0;
	}
	r = begin(in);
	if (!r)
		return -ENOMEM;
	for (key = sbx_yaml_first(y, item); key && e == 0; key = sbx_yaml_next(y, value)) {
		value = sbx_yaml_next(y, key);
		if (value->kind != SBX_YAML_SCALAR)
			sbx_err_list_add(in->errs, in->file, value->line, value->column,
					 "%s: it must be one value", sbx_yaml_text(y, key));
		else if (value->quoted || strcmp(sbx_yaml_text(y, value), "null") != 0)
			e = set_key(in, r, key->line, key->column, sbx_yaml_text(y, key),
				    sbx_yaml_text(y, value));
	}
	return e == 0 && in->errs->n == n_before ? end(in, r, item->line) : e;
}

static int read_yaml(struct reading *in, struct sbx_span text)
{
	struct sbx_yaml *y = NULL;
	const struct sbx_yaml_node *root, *item;
	int e = sbx_yaml_parse(text, in->file, in->errs, &y);

	root = e == 0 ? sbx_yaml_root(y) : NULL;
	if (root && root->kind != SBX_YAML_SEQUENCE)
		sbx_err_list_add(in->errs, in->file, root->line, root->column,
				 "a file of rules is a list: - pattern: example.org");
	else if (root)
		for (item = sbx_yaml_first(y, root); item && e == 0; item = sbx_yaml_next(y, item))
			e = read_mapping(in, y, item);
	sbx_yaml_free(y);
	return e < 0 ? e : 0;
}

/* --- JSON lines --- */

static int read_object(struct reading *in, json_t *o, int line)
{
	struct sbx_store_rule *r = begin(in);
	size_t n_before = in->errs->n;
	const char *key;
	json_t *v;
	int e = 0;

	if (!r)
		return -ENOMEM;
	json_object_foreach(o, key, v)
	{
		SBX_AUTO_FREE char *other =
			json_is_string(v) ? NULL : json_dumps(v, JSON_ENCODE_ANY);

		if (e == 0 && !json_is_null(v))
			e = set_key(in, r, line, 0, key,
				    json_is_string(v) ? json_string_value(v) :
				    other	      ? other :
							"");
	}
	return e == 0 && in->errs->n == n_before ? end(in, r, line) : e;
}

static int read_lines(struct reading *in, struct sbx_span text)
{
	struct sbx_span part;
	int line = 0, e = 0;

	while (text.n > 0 && e == 0) {
		json_error_t why;
		json_t *o;

		sbx_span_cut(&text, '\n', &part);
		line++;
		if (part.n == 0)
			continue;
		o = json_loadb((const char *)part.p, part.n, JSON_REJECT_DUPLICATES, &why);
		if (json_is_object(o))
			e = read_object(in, o, line);
		else
			sbx_err_list_add(in->errs, in->file, line, 0, "a line is a JSON object: %s",
					 o ? "this is none" : why.text);
		json_decref(o);
	}
	return e;
}

int sbx_rule_file_read(const char *text, size_t n, const char *file,
		       const struct sbx_rule_defaults *defaults, struct sbx_err_list *errs,
		       struct sbx_rule_file *ret)
{
	struct reading in = { defaults, file, errs, ret };
	int e;

	*ret = (struct sbx_rule_file){ 0 };
	if (text[strspn(text, " \t\r\n")] == '{')
		e = read_lines(&in, sbx_span(text, n));
	else
		e = read_yaml(&in, sbx_span(text, n));
	return e < 0 ? e : errs->n ? SBX_PROFILE_E_INVALID : 0;
}
