/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/api/field.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define STRING_MAX  1024 /* bytes, unless a row says another */
#define WORD_MAX    32768 /* of any text, in a list or map */
#define ENTRIES_MAX 256

static const char *const types[] = { "string", "integer", "boolean", "array",
				     "object", "object",  "array",   "array" };
_Static_assert(SBX_N_ELEMENTS(types) == SBX_N_FIELD_TYPES, "a JSON type for each");

static int refuse(char *ret_name, const char *name, struct sbx_err *err, const char *why)
{
	sbx_text_cut(ret_name, SBX_FIELD_NAME_MAX, "%s", name);
	sbx_err_set(err, "%s: %s", name, why);
	return SBX_FIELD_E_INVALID;
}

static const struct sbx_field *find(const struct sbx_field *fields, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

void sbx_fields_names(const struct sbx_field *fields, size_t n, char *out, size_t size)
{
	sbx_text_cut(out, size, n ? "there are " : "there is none");
	for (size_t i = 0; i < n; i++)
		sbx_text_cut(out + strlen(out), size - strlen(out), "%s%s", i ? ", " : "",
			     fields[i].name);
}

static bool is_clean(const char *s, size_t n)
{
	while (n > 0) {
		size_t unit = sbx_text_unit(s, n);

		if (unit == 0)
			return false;
		s += unit;
		n -= unit;
	}
	return true;
}

static int check_string(const struct sbx_field *f, const char *name, const json_t *v,
			char *ret_name, struct sbx_err *err)
{
	size_t n_max = f->type == SBX_FIELD_STRING && f->n_max ? f->n_max :
		       f->any_text				? WORD_MAX :
								  STRING_MAX;
	const char *s = json_string_value(v), *why = NULL;
	char text[256] = "";

	if (!s)
		return refuse(ret_name, name, err, "it is no string");
	if (json_string_length(v) > n_max) {
		sbx_text_cut(text, sizeof(text), "it has more than %zu bytes", n_max);
		return refuse(ret_name, name, err, text);
	}
	if (!f->any_text && !is_clean(s, json_string_length(v)))
		return refuse(ret_name, name, err, "it has a control character");
	for (size_t i = 0; f->words && f->words[i]; i++) {
		if (strcmp(f->words[i], s) == 0)
			return 0;
		sbx_text_cut(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
			     i ? ", " : "it is none of ", f->words[i]);
	}
	if (f->words)
		return refuse(ret_name, name, err, text);
	if (f->check)
		why = f->check(s);
	return why ? refuse(ret_name, name, err, why) : 0;
}

static int check_integer(const struct sbx_field *f, const char *name, const json_t *v,
			 char *ret_name, struct sbx_err *err)
{
	int64_t max = f->max ? f->max : INT64_MAX;
	char text[96];

	if (!json_is_integer(v))
		return refuse(ret_name, name, err, "it is no integer");
	if (json_integer_value(v) >= f->min && json_integer_value(v) <= max)
		return 0;
	sbx_text_cut(text, sizeof(text), "it is not in %lld to %lld", (long long)f->min,
		     (long long)max);
	return refuse(ret_name, name, err, text);
}

static size_t max_entries(const struct sbx_field *f)
{
	return f->n_max ? f->n_max : ENTRIES_MAX;
}

static int refuse_length(const struct sbx_field *f, const char *name, char *ret_name,
			 struct sbx_err *err)
{
	char text[64];

	sbx_text_cut(text, sizeof(text), "it has more than %zu entries", max_entries(f));
	return refuse(ret_name, name, err, text);
}

/* The entries of an array or a map. */
static int check_entries(const struct sbx_field *f, const char *name, json_t *v, char *ret_name,
			 struct sbx_err *err)
{
	bool is_array = f->type == SBX_FIELD_STRINGS;
	char place[SBX_FIELD_NAME_MAX];
	const char *key;
	json_t *entry;
	size_t i;
	int r = 0;

	if (is_array ? !json_is_array(v) : !json_is_object(v))
		return refuse(ret_name, name, err,
			      is_array ? "it is no array of strings" : "it is no object");
	if ((is_array ? json_array_size(v) : json_object_size(v)) > max_entries(f))
		return refuse_length(f, name, ret_name, err);
	if (is_array) {
		json_array_foreach(v, i, entry)
		{
			sbx_text_cut(place, sizeof(place), "%s[%zu]", name, i);
			r = r ? r : check_string(f, place, entry, ret_name, err);
		}
		return r;
	}
	json_object_foreach(v, key, entry)
	{
		sbx_text_cut(place, sizeof(place), "%s.%s", name, key);
		if (r == 0 && (!key[0] || strlen(key) > 128 || !is_clean(key, strlen(key))))
			r = refuse(ret_name, name, err, "a name in it is empty, long or not text");
		r = r ? r : check_string(f, place, entry, ret_name, err);
	}
	return r;
}

static int check_members(const struct sbx_field *fields, size_t n, const char *above, json_t *o,
			 char *ret_name, struct sbx_err *err);

static int check_objects(const struct sbx_field *f, const char *name, json_t *v, char *ret_name,
			 struct sbx_err *err)
{
	char place[SBX_FIELD_NAME_MAX];
	json_t *entry;
	size_t i;
	int r = 0;

	if (!json_is_array(v))
		return refuse(ret_name, name, err, "it is no array of objects");
	if (json_array_size(v) > max_entries(f))
		return refuse_length(f, name, ret_name, err);
	json_array_foreach(v, i, entry)
	{
		sbx_text_cut(place, sizeof(place), "%s[%zu]", name, i);
		r = r ? r : check_members(f->members, f->n_members, place, entry, ret_name, err);
	}
	return r;
}

static bool is_port(const char **s)
{
	unsigned long v = 0;
	size_t n = strspn(*s, "0123456789");

	for (size_t i = 0; i < n && i < 6; i++)
		v = v * 10 + (unsigned long)((*s)[i] - '0');
	*s += n;
	return n > 0 && n < 6 && v > 0 && v <= UINT16_MAX;
}

static bool is_ports(const json_t *v)
{
	const char *s = json_string_value(v);

	if (json_is_integer(v))
		return json_integer_value(v) > 0 && json_integer_value(v) <= UINT16_MAX;
	if (!s || json_string_length(v) > 11 || !is_port(&s))
		return false;
	if (*s == '-') {
		s++;
		return is_port(&s) && !*s;
	}
	return !*s;
}

static int check_ports(const struct sbx_field *f, const char *name, json_t *v, char *ret_name,
		       struct sbx_err *err)
{
	char place[SBX_FIELD_NAME_MAX];

	if (!json_is_array(v))
		return refuse(ret_name, name, err, "it is no array of ports");
	if (json_array_size(v) > max_entries(f))
		return refuse_length(f, name, ret_name, err);
	for (size_t i = 0; i < json_array_size(v); i++) {
		if (is_ports(json_array_get(v, i)))
			continue;
		sbx_text_cut(place, sizeof(place), "%s[%zu]", name, i);
		return refuse(ret_name, place, err,
			      "it is neither a number from 1 to 65535 nor a range \"1000-2000\"");
	}
	return 0;
}

static int check_value(const struct sbx_field *f, const char *name, json_t *v, char *ret_name,
		       struct sbx_err *err)
{
	if (json_is_null(v) && f->nullable)
		return 0;
	switch (f->type) {
	case SBX_FIELD_STRING:
		return check_string(f, name, v, ret_name, err);
	case SBX_FIELD_INTEGER:
		return check_integer(f, name, v, ret_name, err);
	case SBX_FIELD_BOOLEAN:
		return json_is_boolean(v) ? 0 :
					    refuse(ret_name, name, err, "it is not true or false");
	case SBX_FIELD_STRINGS:
	case SBX_FIELD_MAP:
		return check_entries(f, name, v, ret_name, err);
	case SBX_FIELD_OBJECTS:
		return check_objects(f, name, v, ret_name, err);
	case SBX_FIELD_PORTS:
		return check_ports(f, name, v, ret_name, err);
	default:
		return check_members(f->members, f->n_members, name, v, ret_name, err);
	}
}

static int check_members(const struct sbx_field *fields, size_t n, const char *above, json_t *o,
			 char *ret_name, struct sbx_err *err)
{
	char name[SBX_FIELD_NAME_MAX], why[384];
	const char *key;
	json_t *v;
	int r;

	if (!json_is_object(o))
		return refuse(ret_name, above[0] ? above : "body", err, "it is no object");
	json_object_foreach(o, key, v)
	{
		const struct sbx_field *f = find(fields, n, key);

		sbx_text_cut(name, sizeof(name), "%s%s%s", above, above[0] ? "." : "", key);
		if (!f) {
			sbx_text_cut(why, sizeof(why), "there is no such member; ");
			sbx_fields_names(fields, n, why + strlen(why), sizeof(why) - strlen(why));
			return refuse(ret_name, name, err, why);
		}
		r = check_value(f, name, v, ret_name, err);
		if (r)
			return r;
	}
	for (size_t i = 0; i < n; i++) {
		if (!fields[i].required || json_object_get(o, fields[i].name))
			continue;
		sbx_text_cut(name, sizeof(name), "%s%s%s", above, above[0] ? "." : "",
			     fields[i].name);
		return refuse(ret_name, name, err, "it is missing");
	}
	return 0;
}

int sbx_fields_check(const struct sbx_field *fields, size_t n, json_t *o,
		     char ret_name[SBX_FIELD_NAME_MAX], struct sbx_err *err)
{
	ret_name[0] = '\0';
	return check_members(fields, n, "", o, ret_name, err);
}

json_t *sbx_field_from_text(const struct sbx_field *field, const char *text, struct sbx_err *err)
{
	char *end;
	long long n;

	switch (field->type) {
	case SBX_FIELD_INTEGER:
		errno = 0;
		n = strtoll(text, &end, 10);
		if (errno == 0 && end != text && !*end && (text[0] == '-' || text[0] >= '0'))
			return json_integer(n);
		sbx_err_set(err, "%s: it is no integer", field->name);
		return NULL;
	case SBX_FIELD_BOOLEAN:
		if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
			return json_boolean(text[0] == 't');
		sbx_err_set(err, "%s: it is not true or false", field->name);
		return NULL;
	default:
		if (!is_clean(text, strlen(text))) {
			sbx_err_set(err, "%s: it has a control character", field->name);
			return NULL;
		}
		return json_string(text);
	}
}

/* --- schemas --- */

static json_t *words_schema(const struct sbx_field *f)
{
	json_t *words = json_array();

	for (size_t i = 0; f->words[i]; i++)
		json_array_append_new(words, json_string(f->words[i]));
	if (f->nullable)
		json_array_append_new(words, json_null());
	return words;
}

static json_t *items_schema(const struct sbx_field *f)
{
	if (f->type == SBX_FIELD_OBJECTS)
		return sbx_fields_schema(f->members, f->n_members);
	if (f->type == SBX_FIELD_PORTS)
		return json_pack("{s:[{s:s, s:i, s:i}, {s:s, s:s}]}", "oneOf", "type", "integer",
				 "minimum", 1, "maximum", UINT16_MAX, "type", "string", "pattern",
				 "^[0-9]{1,5}(-[0-9]{1,5})?$");
	return json_pack("{s:s}", "type", "string");
}

json_t *sbx_field_schema(const struct sbx_field *f)
{
	json_t *s = f->type == SBX_FIELD_OBJECT ? sbx_fields_schema(f->members, f->n_members) :
						  json_object();

	if (f->nullable)
		json_object_set_new(s, "type", json_pack("[s, s]", types[f->type], "null"));
	else
		json_object_set_new(s, "type", json_string(types[f->type]));
	if (f->help)
		json_object_set_new(s, "description", json_string(f->help));
	if (f->type == SBX_FIELD_INTEGER) {
		json_object_set_new(s, "minimum", json_integer(f->min));
		if (f->max)
			json_object_set_new(s, "maximum", json_integer(f->max));
	}
	if (f->type == SBX_FIELD_STRING)
		json_object_set_new(s, "maxLength",
				    json_integer((json_int_t)(f->n_max ? f->n_max : STRING_MAX)));
	if (f->type == SBX_FIELD_STRINGS || f->type == SBX_FIELD_OBJECTS ||
	    f->type == SBX_FIELD_PORTS) {
		json_object_set_new(s, "items", items_schema(f));
		json_object_set_new(s, "maxItems", json_integer((json_int_t)max_entries(f)));
	}
	if (f->type == SBX_FIELD_MAP)
		json_object_set_new(s, "additionalProperties",
				    json_pack("{s:s}", "type", "string"));
	if (f->words)
		json_object_set_new(s, "enum", words_schema(f));
	return s;
}

json_t *sbx_fields_schema(const struct sbx_field *fields, size_t n)
{
	json_t *properties = json_object(), *required = json_array();
	json_t *s = json_pack("{s:s, s:b, s:o}", "type", "object", "additionalProperties", 0,
			      "properties", properties);

	for (size_t i = 0; i < n; i++) {
		json_object_set_new(properties, fields[i].name, sbx_field_schema(&fields[i]));
		if (fields[i].required)
			json_array_append_new(required, json_string(fields[i].name));
	}
	if (json_array_size(required) > 0)
		json_object_set(s, "required", required);
	json_decref(required);
	return s;
}
