/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files that repeat the table of routes and that of options: docs/openapi.json, docs/API.md
 * below its line `<!-- routes -->`, man/sbxd.8, completion/sbxd and completion/_sbxd.
 * SBX_UPDATE_GOLDEN=1 writes them.
 */
#include "tests/unit/option_files.h"

#include <jansson.h>

#include "daemon/main/options.h"
#include "daemon/main/route_table.h"

/* --- the table --- */

static void test_rows(void **state)
{
	const struct sbx_route_table *t = &sbx_routes;

	(void)state;
	for (size_t i = 0; i < t->n; i++) {
		const struct sbx_route *r = &t->v[i];

		assert_non_null(r->id);
		assert_non_null(r->help);
		assert_non_null(r->run);
		assert_true(islower((unsigned char)r->help[0]));
		assert_true(r->status >= 200 && r->status < 400);
		assert_null(strchr(".,:;", r->help[strlen(r->help) - 1]));
		for (size_t k = 0; k < i; k++) {
			assert_string_not_equal(r->id, t->v[k].id);
			assert_false(r->method == t->v[k].method &&
				     strcmp(r->path, t->v[k].path) == 0);
		}
	}
}

/* --- docs/openapi.json --- */

static json_t *schemas(void)
{
	size_t n;
	SBX_AUTO_FREE char *text = read_source_file("docs/api-schemas.json", &n);
	json_t *v = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(v);
	return v;
}

static void compare_file(const char *file, const char *want)
{
	SBX_AUTO_FREE char *have = NULL;
	char path[4096];
	size_t n;
	FILE *f;

	if (getenv("SBX_UPDATE_GOLDEN")) { /* it may not exist */
		snprintf(path, sizeof(path), "%s/%s", getenv("SBX_SRCDIR"), file);
		f = fopen(path, "ae");
		assert_non_null(f);
		fclose(f);
	}
	have = read_source_file(file, &n);
	if (strcmp(have, want) != 0 && !getenv("SBX_UPDATE_GOLDEN"))
		fail_msg("%s is old: make update-golden writes it", file);
	compare_source(file, have, want);
}

static void test_openapi(void **state)
{
	json_t *all = schemas(), *o = sbx_openapi(&sbx_routes, all);
	SBX_AUTO_FREE char *text = NULL, *want = NULL;

	(void)state;
	assert_non_null(o);
	text = json_dumps(o, JSON_INDENT(1) | JSON_SORT_KEYS);
	assert_true(text && asprintf(&want, "%s\n", text) > 0);
	compare_file("docs/openapi.json", want);
	json_decref(o);
	json_decref(all);
}

/* --- docs/API.md --- */

static const char *const types[] = { "string",		"integer", "boolean", "strings",
				     "object of strings", "object",  "objects", "ports" };
_Static_assert(SBX_N_ELEMENTS(types) == SBX_N_FIELD_TYPES, "a word for each");

static void put_capital(FILE *out, const char *s)
{
	fprintf(out, "%c%s", toupper((unsigned char)s[0]), s + 1);
}

static void put_limits(FILE *out, const struct sbx_field *f)
{
	if (f->type == SBX_FIELD_INTEGER && f->max)
		fprintf(out, ", %lld to %lld", (long long)f->min, (long long)f->max);
	else if (f->type == SBX_FIELD_INTEGER && f->min)
		fprintf(out, ", from %lld", (long long)f->min);
	for (size_t i = 0; f->words && f->words[i]; i++)
		fprintf(out, "%s`%s`", i ? ", " : ": ", f->words[i]);
}

static void put_fields(FILE *out, const char *above, const struct sbx_field *fields, size_t n)
{
	char name[SBX_FIELD_NAME_MAX];

	for (const struct sbx_field *f = fields; f < fields + n; f++) {
		snprintf(name, sizeof(name), "%s%s%s", above, above[0] ? "." : "", f->name);
		fprintf(out, "| `%s`%s | %s%s", name, f->required ? " (required)" : "",
			types[f->type], f->nullable ? " or null" : "");
		put_limits(out, f);
		fputs(" | ", out);
		if (f->help)
			put_capital(out, f->help);
		fputs(" |\n", out);
		if (f->type == SBX_FIELD_OBJECTS)
			strcat(name, "[]");
		put_fields(out, name, f->members, f->n_members);
	}
}

static void put_table(FILE *out, const char *what, const struct sbx_field *fields, size_t n)
{
	if (n == 0)
		return;
	fprintf(out, "\n| %s | type | |\n|---|---|---|\n", what);
	put_fields(out, "", fields, n);
}

/* A value that the row takes. */
static json_t *example_value(const struct sbx_field *f)
{
	json_t *v = json_object();

	switch (f->type) {
	case SBX_FIELD_STRING:
		json_decref(v);
		return json_string(f->words ? f->words[0] : "...");
	case SBX_FIELD_INTEGER:
		json_decref(v);
		return json_integer(f->min > 0 ? f->min : 1);
	case SBX_FIELD_BOOLEAN:
		json_decref(v);
		return json_true();
	case SBX_FIELD_STRINGS:
		json_decref(v);
		return json_pack("[s]", "...");
	case SBX_FIELD_MAP:
		json_object_set_new(v, "NAME", json_string("..."));
		return v;
	default:
		for (size_t i = 0; i < f->n_members; i++)
			if (f->members[i].required)
				json_object_set_new(v, f->members[i].name,
						    example_value(&f->members[i]));
		return v;
	}
}

/* The row's example, or its required members, or its first one. */
static json_t *example_body(const struct sbx_route *r)
{
	const struct sbx_field all = { .type = SBX_FIELD_OBJECT,
				       .members = r->body,
				       .n_members = r->n_body };
	char name[SBX_FIELD_NAME_MAX];
	struct sbx_err err = { 0 };
	json_t *v;

	if (r->example) {
		v = json_loads(r->example, JSON_REJECT_DUPLICATES, NULL);
		if (!v || sbx_fields_check(r->body, r->n_body, v, name, &err) != 0)
			fail_msg("the example of %s: %s", r->id, v ? err.msg : "no JSON");
		return v;
	}
	v = example_value(&all);
	if (json_object_size(v) == 0 && r->n_body)
		json_object_set_new(v, r->body[0].name, example_value(&r->body[0]));
	return v;
}

static void put_example(FILE *out, const struct sbx_route *r)
{
	SBX_AUTO_FREE char *text = NULL;
	json_t *body;

	fputs("\n    curl -s --unix-socket $SOCKET", out);
	if (r->method != SBX_GET)
		fprintf(out, " -X %s", sbx_method_str(r->method));
	if (r->body) {
		body = example_body(r);
		text = json_dumps(body, JSON_COMPACT);
		json_decref(body);
		fprintf(out, " -H 'Content-Type: application/json' \\\n        -d '%s'", text);
	}
	if (r->streams && !r->answer)
		fputs(" -N -H 'Accept: text/event-stream'", out);
	fputs(" \"http://sbx", out); /* so that the shell's variables hold */
	for (const char *p = r->path; *p; p++)
		if (strncmp(p, "{*}", 3) == 0) {
			fputs("index.html", out);
			p += 2;
		} else if (*p == '{') {
			fputc('$', out);
			for (p++; *p != '}'; p++)
				fputc(toupper((unsigned char)*p), out);
		} else {
			fputc(*p, out);
		}
	for (size_t i = 0; i < r->n_query; i++)
		if (r->query[i].required)
			fprintf(out, "?%s=...", r->query[i].name);
	fputs("\"\n", out);
}

static void put_answer(FILE *out, const struct sbx_route *r)
{
	fprintf(out, "\nRole: %s. Answer: %d",
		r->role == SBX_ROLE_NONE ? "none is needed" : sbx_role_str(r->role), r->status);
	if (r->answer)
		fprintf(out, r->is_list ? ", `{\"items\": [%s...], \"next_cursor\"}`" : ", `%s`",
			r->answer);
	else if (r->media)
		fprintf(out, ", %s", r->media);
	if (r->streams)
		fputs("; with `Accept: text/event-stream` a stream", out);
	fputs(".\n", out);
}

/* The first word of a path. */
static size_t resource(const char *path)
{
	return 1 + strcspn(path + 1, "/");
}

static bool is_same_resource(const struct sbx_route *a, const struct sbx_route *b)
{
	size_t n = resource(a->path);

	return n == resource(b->path) && strncmp(a->path, b->path, n) == 0;
}

static void put_route(FILE *out, const struct sbx_route *r)
{
	fprintf(out, "\n### %s %s\n\n", sbx_method_str(r->method), r->path);
	put_capital(out, r->help);
	fputs(".\n", out);
	put_answer(out, r);
	put_table(out, "parameter", r->query, r->n_query);
	put_table(out, "member of the body", r->body, r->n_body);
	put_example(out, r);
}

static void put_routes(FILE *out)
{
	const struct sbx_route_table *t = &sbx_routes;

	fputs("\n| route | role | |\n|---|---|---|\n", out);
	for (size_t i = 0; i < t->n; i++) {
		fprintf(out, "| `%s %s` | %s | ", sbx_method_str(t->v[i].method), t->v[i].path,
			t->v[i].role == SBX_ROLE_NONE ? "-" : sbx_role_str(t->v[i].role));
		put_capital(out, t->v[i].help);
		fputs(" |\n", out);
	}
	for (size_t i = 0; i < t->n; i++) {
		size_t first = 0;

		while (!is_same_resource(&t->v[first], &t->v[i]))
			first++;
		if (first < i)
			continue;
		fprintf(out, "\n## %.*s\n", (int)resource(t->v[i].path), t->v[i].path);
		for (size_t k = i; k < t->n; k++)
			if (is_same_resource(&t->v[i], &t->v[k]))
				put_route(out, &t->v[k]);
	}
}

static const char *type_word(const json_t *schema)
{
	static char text[160];
	const json_t *type = json_object_get(schema, "type");
	const char *ref = json_string_value(json_object_get(schema, "$ref"));
	json_t *word;
	size_t i;

	if (ref)
		return strrchr(ref, '/') + 1;
	if (json_is_string(type))
		return json_string_value(type);
	text[0] = '\0';
	json_array_foreach(type, i, word)
	{
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " or " : "",
			 json_string_value(word));
	}
	return text[0] ? text : json_object_get(schema, "enum") ? "string" : "";
}

static void put_schemas(FILE *out)
{
	json_t *all = schemas(), *schema, *p;
	const char *name, *key;

	fputs("\n## Objects\n", out);
	json_object_foreach(all, name, schema)
	{
		fprintf(out, "\n### %s\n\n| member | type | |\n|---|---|---|\n", name);
		json_object_foreach(json_object_get(schema, "properties"), key, p)
		{
			const char *help = json_string_value(json_object_get(p, "description"));

			fprintf(out, "| `%s` | %s | ", key, type_word(p));
			if (help)
				put_capital(out, help);
			fputs(" |\n", out);
		}
	}
	json_decref(all);
}

static void test_api_page(void **state)
{
	static const char mark[] = "<!-- routes -->\n";
	size_t n;
	SBX_AUTO_FREE char *page = read_source_file("docs/API.md", &n);
	SBX_AUTO_FREE char *want = NULL;
	char *at = strstr(page, mark);
	FILE *out = open_memstream(&want, &n);

	(void)state;
	assert_non_null(at);
	fprintf(out, "%.*s%s", (int)(at - page), page, mark);
	put_routes(out);
	put_schemas(out);
	fclose(out);
	compare_file("docs/API.md", want);
}

/* --- the manual and the completions --- */

static void test_manual(void **state)
{
	(void)state;
	check_option_rows(sbx_daemon_option_rows, sbx_n_daemon_option_rows,
			  sizeof(struct sbx_daemon_options));
	check_man_options("man/sbxd.8", ".Sh OPTIONS\n.Bl -tag -width Ds\n", sbx_daemon_option_rows,
			  sbx_n_daemon_option_rows);
}

static void check_part(const char *file, void (*put)(FILE *out, const struct sbx_option *row))
{
	size_t n;
	SBX_AUTO_FREE char *text = read_source_file(file, &n);
	SBX_AUTO_FREE char *want = NULL;
	FILE *out = open_memstream(&want, &n);
	char *end, *start = between(text, "# flags: make update-golden writes them\n",
				    "# end of flags\n", &end);

	fprintf(out, "%.*s", (int)(start - text), text);
	for (size_t i = 0; i < sbx_n_daemon_option_rows; i++)
		put(out, &sbx_daemon_option_rows[i]);
	fputs(end, out);
	fclose(out);
	compare_source(file, text, want);
}

static void put_zsh(FILE *out, const struct sbx_option *row)
{
	put_zsh_option(out, row, "_sbxd");
}

static void test_completions(void **state)
{
	(void)state;
	check_part("completion/sbxd", put_bash_option);
	check_part("completion/_sbxd", put_zsh);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	    cmocka_unit_test(test_openapi),
		cmocka_unit_test(test_api_page),    cmocka_unit_test(test_manual),
		cmocka_unit_test(test_completions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
