/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request is judged before its operation sees it: the version, the operation's name, the number
 * of descriptors, and every member by its name and type. An unknown member is refused, because it
 * may be a limit that its writer believes in.
 */
#include "launcher/control/request.h"

#include <stdarg.h>
#include <string.h>

#include "base/text.h"

static bool refuse(struct sbx_control_refusal *r, enum sbx_control_code code, const char *field,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Returns false, for the caller to return. */
static bool refuse(struct sbx_control_refusal *r, enum sbx_control_code code, const char *field,
		   const char *fmt, ...)
{
	char clean[sizeof(r->field)];
	va_list ap;

	r->code = code;
	sbx_escape(field, strlen(field), clean, sizeof(clean));
	sbx_text_cut(r->field, sizeof(r->field), "%s", clean);
	va_start(ap, fmt);
	sbx_err_vset(&r->err, fmt, ap);
	va_end(ap);
	return false;
}

static const char *const type_names[] = {
	[SBX_CONTROL_BOOL] = "true or false",
	[SBX_CONTROL_NUMBER] = "an integer from 0",
	[SBX_CONTROL_STRING] = "a string that is not empty",
	[SBX_CONTROL_STRINGS] = "an array of strings that are not empty",
	[SBX_CONTROL_WORDS] = "an array of strings",
	[SBX_CONTROL_MAP] = "an object whose values are strings",
};

static bool is_text(const json_t *v, size_t n_min)
{
	return json_is_string(v) && json_string_length(v) >= n_min &&
	       json_string_length(v) <= SBX_CONTROL_TEXT_MAX;
}

static bool strings_are_good(const char *name, const json_t *v, size_t n_min,
			     struct sbx_control_refusal *r)
{
	if (json_array_size(v) > SBX_CONTROL_LIST_MAX)
		return refuse(r, SBX_CONTROL_INVALID, name, "%s has more than %d members", name,
			      SBX_CONTROL_LIST_MAX);
	for (size_t i = 0; i < json_array_size(v); i++) {
		char field[sizeof(r->field)];

		if (is_text(json_array_get(v, i), n_min))
			continue;
		sbx_text_cut(field, sizeof(field), "%s[%zu]", name, i);
		return refuse(r, SBX_CONTROL_INVALID, field, "%s is no string from %zu to %d bytes",
			      field, n_min, SBX_CONTROL_TEXT_MAX);
	}
	return true;
}

static bool map_is_good(const char *name, json_t *v, struct sbx_control_refusal *r)
{
	const char *key;
	json_t *value;

	if (json_object_size(v) > SBX_CONTROL_LIST_MAX)
		return refuse(r, SBX_CONTROL_INVALID, name, "%s has more than %d members", name,
			      SBX_CONTROL_LIST_MAX);
	json_object_foreach(v, key, value)
	{
		char field[sizeof(r->field)];

		if (key[0] && is_text(value, 0))
			continue;
		sbx_text_cut(field, sizeof(field), "%s.%s", name, key);
		return refuse(r, SBX_CONTROL_INVALID, field, "%s is no string of a name", field);
	}
	return true;
}

static bool is_good(const struct sbx_control_field *f, json_t *v, struct sbx_control_refusal *r)
{
	bool good = false;

	switch (f->type) {
	case SBX_CONTROL_BOOL:
		good = json_is_boolean(v);
		break;
	case SBX_CONTROL_NUMBER:
		good = json_is_integer(v) && json_integer_value(v) >= 0;
		break;
	case SBX_CONTROL_STRING:
		good = is_text(v, 1);
		break;
	case SBX_CONTROL_STRINGS:
	case SBX_CONTROL_WORDS:
		if (json_is_array(v))
			return strings_are_good(f->name, v, f->type == SBX_CONTROL_STRINGS, r);
		break;
	case SBX_CONTROL_MAP:
		if (json_is_object(v))
			return map_is_good(f->name, v, r);
		break;
	}
	if (!good)
		refuse(r, SBX_CONTROL_INVALID, f->name, "%s must be %s", f->name,
		       type_names[f->type]);
	return good;
}

static const struct sbx_control_field *find_field(const struct sbx_control_op *op, const char *name)
{
	for (size_t i = 0; i < SBX_CONTROL_FIELDS_MAX && op->fields[i].name; i++)
		if (strcmp(op->fields[i].name, name) == 0)
			return &op->fields[i];
	return NULL;
}

static bool members_are_good(const struct sbx_control_op *op, json_t *body,
			     struct sbx_control_refusal *r)
{
	const char *key;
	json_t *value;

	json_object_foreach(body, key, value)
	{
		const struct sbx_control_field *f = find_field(op, key);

		if (strcmp(key, "v") == 0 || strcmp(key, "op") == 0)
			continue;
		if (!f)
			return refuse(r, SBX_CONTROL_INVALID, key, "op %s has no member %.64s",
				      op->name, key);
		if (!is_good(f, value, r))
			return false;
	}
	for (size_t i = 0; i < SBX_CONTROL_FIELDS_MAX && op->fields[i].name; i++)
		if (op->fields[i].required && !json_object_get(body, op->fields[i].name))
			return refuse(r, SBX_CONTROL_INVALID, op->fields[i].name, "op %s needs %s",
				      op->name, op->fields[i].name);
	return true;
}

static const struct sbx_control_op *find_op(const char *name, const struct sbx_control_op *ops,
					    size_t n_ops)
{
	for (size_t i = 0; i < n_ops; i++)
		if (strcmp(ops[i].name, name) == 0)
			return &ops[i];
	return NULL;
}

static const struct sbx_control_op *judge(json_t *body, size_t n_fds,
					  const struct sbx_control_op *ops, size_t n_ops,
					  struct sbx_control_refusal *r)
{
	const json_t *v = json_object_get(body, "v"), *name = json_object_get(body, "op");
	const struct sbx_control_op *op;

	if (!json_is_integer(v) || json_integer_value(v) != SBX_CONTROL_VERSION) {
		refuse(r, SBX_CONTROL_INVALID, "v", "v must be %d, the version of this protocol",
		       SBX_CONTROL_VERSION);
		return NULL;
	}
	if (!json_is_string(name)) {
		refuse(r, SBX_CONTROL_INVALID, "op", "op must be the name of an operation");
		return NULL;
	}
	op = find_op(json_string_value(name), ops, n_ops);
	if (!op) {
		refuse(r, SBX_CONTROL_UNKNOWN, "op", "this sbx-run has no op %.64s",
		       json_string_value(name));
		return NULL;
	}
	if (n_fds != op->n_fds) {
		refuse(r, SBX_CONTROL_INVALID, "", "op %s takes %zu descriptors, and %zu came",
		       op->name, op->n_fds, n_fds);
		return NULL;
	}
	return members_are_good(op, body, r) ? op : NULL;
}

const struct sbx_control_op *sbx_control_request_parse(struct sbx_span line, size_t n_fds,
						       const struct sbx_control_op *ops,
						       size_t n_ops, json_t **ret_body,
						       struct sbx_control_refusal *ret_refusal)
{
	const struct sbx_control_op *op;
	json_t *body;

	*ret_body = NULL;
	*ret_refusal = (struct sbx_control_refusal){ .code = SBX_CONTROL_INVALID };
	body = sbx_control_parse(line, &ret_refusal->err);
	if (!body)
		return NULL;
	op = judge(body, n_fds, ops, n_ops, ret_refusal);
	if (op)
		*ret_body = body;
	else
		json_decref(body);
	return op;
}
