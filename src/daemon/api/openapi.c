/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* openapi.json, of the table of routes. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "daemon/api/route.h"

static json_t *reference(const char *name)
{
	char path[128];

	sbx_text_cut(path, sizeof(path), "#/components/schemas/%s", name);
	return json_pack("{s:s}", "$ref", path);
}

static json_t *parameter(const char *name, const char *in, bool required, const char *help,
			 json_t *schema)
{
	json_t *p = json_pack("{s:s, s:s, s:b, s:o}", "name", name, "in", in, "required", required,
			      "schema", schema);

	if (help)
		json_object_set_new(p, "description", json_string(help));
	return p;
}

static json_t *parameters(const struct sbx_route *r)
{
	json_t *all = json_array();
	const char *p = r->path;

	while ((p = strchr(p, '{'))) {
		char name[64];
		int n = (int)strcspn(++p, "}");

		sbx_text_cut(name, sizeof(name), "%.*s", p[0] == '*' ? 4 : n,
			     p[0] == '*' ? "file" : p);
		json_array_append_new(all, parameter(name, "path", true, NULL,
						     json_pack("{s:s}", "type", "string")));
	}
	for (size_t i = 0; i < r->n_query; i++)
		json_array_append_new(all,
				      parameter(r->query[i].name, "query", r->query[i].required,
						r->query[i].help, sbx_field_schema(&r->query[i])));
	if (r->tagged)
		json_array_append_new(
			all, parameter(r->method == SBX_GET ? "If-None-Match" : "If-Match",
				       "header", false, "an ETag of an earlier answer",
				       json_pack("{s:s}", "type", "string")));
	return all;
}

static json_t *answer_schema(const struct sbx_route *r)
{
	json_t *one = reference(r->answer);

	if (!r->is_list)
		return one;
	return json_pack("{s:s, s:[s, s], s:{s:{s:s, s:o}, s:{s:[s, s]}}}", "type", "object",
			 "required", "items", "next_cursor", "properties", "items", "type", "array",
			 "items", one, "next_cursor", "type", "string", "null");
}

static json_t *responses(const struct sbx_route *r)
{
	json_t *ok = json_pack("{s:s}", "description", "done"), *all = json_object(), *problem;
	char status[8];

	if (r->answer || r->media || r->streams) {
		json_t *content = json_object();

		if (r->answer)
			json_object_set_new(content, "application/json",
					    json_pack("{s:o}", "schema", answer_schema(r)));
		if (r->media)
			json_object_set_new(content, r->media, json_object());
		if (r->streams)
			json_object_set_new(content, "text/event-stream", json_object());
		json_object_set_new(ok, "content", content);
	}
	sbx_text_cut(status, sizeof(status), "%d", r->status);
	json_object_set_new(all, status, ok);
	if (r->status_2) {
		json_t *other = json_deep_copy(ok);

		json_object_set_new(other, "description", json_string("not now, as the body says"));
		sbx_text_cut(status, sizeof(status), "%d", r->status_2);
		json_object_set_new(all, status, other);
	}
	if (r->tagged && r->method == SBX_GET)
		json_object_set_new(all, "304", json_pack("{s:s}", "description", "not changed"));
	problem = json_pack("{s:{s:o}}", "application/problem+json", "schema",
			    reference("Problem"));
	if (r->shown)
		json_object_set_new(problem, "text/html", json_object());
	json_object_set_new(all, "default",
			    json_pack("{s:s, s:o}", "description", "a problem (RFC 9457)",
				      "content", problem));
	return all;
}

static json_t *operation(const struct sbx_route *r)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:o, s:o}", "operationId", r->id, "summary", r->help,
			      "x-role", sbx_role_str(r->role), "parameters", parameters(r),
			      "responses", responses(r));

	if (r->body)
		json_object_set_new(o, "requestBody",
				    json_pack("{s:b, s:{s:{s:o, s:o*}}}", "required", 1, "content",
					      "application/json", "schema",
					      sbx_fields_schema(r->body, r->n_body), "example",
					      r->example ? json_loads(r->example, 0, NULL) : NULL));
	if (r->role == SBX_ROLE_NONE)
		json_object_set_new(o, "security", json_array());
	return o;
}

json_t *sbx_openapi(const struct sbx_route_table *t, json_t *schemas)
{
	json_t *paths = json_object();

	for (size_t i = 0; i < t->n; i++) {
		const struct sbx_route *r = &t->v[i];
		static const char *const keys[] = { "get", "post", "put", "patch", "delete" };
		char path[160];
		const char *star = strstr(r->path, "{*}");
		json_t *item;

		sbx_text_cut(path, sizeof(path), "%.*s%s",
			     (int)(star ? star - r->path : (long)strlen(r->path)), r->path,
			     star ? "{file}" : "");
		item = json_object_get(paths, path);
		if (!item) {
			item = json_object();
			json_object_set_new(paths, path, item);
		}
		json_object_set_new(item, keys[r->method], operation(r));
	}
	return json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:[{s:[]}, {s:[]}], s:{s:O, s:{s:{s:s, "
			 "s:s}, s:{s:s, s:s, s:s, s:s}}}}",
			 "openapi", "3.1.0", "info", "title", "sbxd", "version", PACKAGE_VERSION,
			 "description",
			 "Sandboxes, what they may reach, and what was refused (docs/API.md)",
			 "paths", paths, "security", "token", "session", "components", "schemas",
			 schemas, "securitySchemes", "token", "type", "http", "scheme", "bearer",
			 "session", "type", "apiKey", "in", "cookie", "name", "sbx_session_8484",
			 "description", "the name ends with the port that the service listens on");
}
