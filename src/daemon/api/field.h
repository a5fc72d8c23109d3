/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_API_FIELD_H
#define SBX_DAEMON_API_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * The members of a request's body, and the parameters behind its "?", as tables. Requests are
 * checked by them, and openapi.json is made of them. PURE.
 */
enum sbx_field_type {
	SBX_FIELD_STRING = 0,
	SBX_FIELD_INTEGER,
	SBX_FIELD_BOOLEAN,
	SBX_FIELD_STRINGS, /* an array of strings */
	SBX_FIELD_MAP,	   /* an object whose values are strings */
	SBX_FIELD_OBJECT,  /* an object with members of its own */
	SBX_FIELD_OBJECTS, /* an array of such objects */
	SBX_FIELD_PORTS,   /* an array of ports, and of ranges as "1000-2000" */
	SBX_N_FIELD_TYPES,
};

struct sbx_field {
	const char *name;
	enum sbx_field_type type;
	bool required;
	bool nullable;			    /* null may stand for it */
	bool any_text;			    /* control characters too, as in a command's words */
	int64_t min, max;		    /* an integer's value; max 0: no bound but INT64_MAX */
	size_t n_max;			    /* bytes of a string (0: 1024), or entries (0: 256) */
	const char *const *words;	    /* a string's values, NULL-terminated; NULL: any */
	const char *(*check)(const char *); /* of strings: the reason against one, or NULL */
	const struct sbx_field *members;    /* of an object */
	size_t n_members;
	const char *help; /* a sentence without its capital and full stop */
};

#define SBX_FIELD_NAME_MAX 160

/* Is @o an object with no members but those of @fields, each as its row says, and all the required
 * ones? Texts are clean (sbx_text_unit) or refused. 0; SBX_FIELD_E_INVALID with @err and the
 * member's place ("network.allow_out[2]") in @ret_name. */
enum { SBX_FIELD_E_INVALID = 1 };
int sbx_fields_check(const struct sbx_field *fields, size_t n, json_t *o,
		     char ret_name[SBX_FIELD_NAME_MAX], struct sbx_err *err);

/* "there are NAME, NAME, ...": for people that misspelt one. */
void sbx_fields_names(const struct sbx_field *fields, size_t n, char *out, size_t size);

/* Make a parameter's text the value of its row. NULL with @err: it is none. */
json_t *sbx_field_from_text(const struct sbx_field *field, const char *text, struct sbx_err *err);

/* The JSON Schema of an object with these members. NULL: no memory. */
json_t *sbx_fields_schema(const struct sbx_field *fields, size_t n);
json_t *sbx_field_schema(const struct sbx_field *field);

#endif
