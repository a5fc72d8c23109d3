/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Requests to sbxd: a line "METHOD PATH", and a body. A parameter of a path has the form that
 * handlers rely on. A body that its table of fields takes becomes a job, and the job that
 * sbx-run reads has the body's values and no key that the body does not have: nothing in a value
 * ends it.
 */

#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "control/protocol.h"
#include "daemon/main/route_table.h"
#include "daemon/start/job.h"
#include "policy/keys/job.h"
#include "tests/fuzz/fuzz.h"

static void check_params(const struct sbx_route_found *found)
{
	size_t n = 0;

	for (const char *p = found->route->path; *p; p++) {
		const char *s;

		if (*p != '{' || p[1] == '*')
			continue;
		CHECK(n < SBX_ROUTE_PARAMS);
		s = found->params[n++];
		CHECK(s[0] && strlen(s) < SBX_ROUTE_PARAM_MAX && !strchr(s, '/'));
		for (; *s; s++)
			CHECK((unsigned char)*s >= 0x20 && *s != 0x7f);
	}
}

static void check_text(const char *got, const json_t *wanted)
{
	CHECK((got != NULL) == json_is_string(wanted));
	CHECK(!got || strcmp(got, json_string_value(wanted)) == 0);
}

static void check_list(const struct sbx_str_list *got, const json_t *wanted)
{
	CHECK(got->n == json_array_size(wanted));
	for (size_t i = 0; i < got->n; i++)
		check_text(got->v[i], json_array_get(wanted, i));
}

static void check_map(const struct sbx_str_list *got, const json_t *wanted, size_t more)
{
	CHECK(got->n == json_object_size(wanted) + more);
	for (size_t i = more; i < got->n; i++) {
		const char *equals = strchr(got->v[i], '=');
		char *key;

		CHECK(equals);
		key = strndup(got->v[i], (size_t)(equals - got->v[i]));
		CHECK(key);
		check_text(equals + 1, json_object_get(wanted, key));
		free(key);
	}
}

static void check_job(const struct sbx_job *j, const json_t *body)
{
	const json_t *network = json_object_get(body, "network");

	check_text(j->profile, json_object_get(body, "profile"));
	check_text(j->workspace, json_object_get(body, "workspace"));
	check_text(j->analysis_id, json_object_get(body, "analysis_id"));
	check_list(&j->command, json_object_get(body, "command"));
	check_list(&j->live_allow, json_object_get(network, "allow_out"));
	check_list(&j->live_deny, json_object_get(network, "deny_out"));
	CHECK(j->live_rule.n == json_array_size(json_object_get(network, "rules")));
	CHECK(j->allow.n + j->deny.n == 0);
	check_map(&j->env, json_object_get(body, "env"), 0);
	check_map(&j->limit, json_object_get(body, "limits"),
		  json_object_get(body, "timeout") != NULL);
	CHECK(j->air_gap == json_is_false(json_object_get(body, "allow_internet_access")));
	CHECK(j->scratch && j->wait == (j->command.n == 0));
	CHECK(!j->user && !j->chdir && !j->hostname && !j->receipt && !j->keep);
	CHECK(!j->root && !j->home && !j->overlay && !j->cache && !j->wait_all);
	CHECK(j->bind.n + j->ro_bind.n + j->tmpfs.n + j->device.n + j->secret.n + j->publish.n ==
	      0);
}

static void start(const json_t *body)
{
	static struct sbx_err_list errs;
	struct sbx_err err = { 0 };
	char field[SBX_JOB_FIELD_MAX];
	struct sbx_job *job = NULL;
	char *text = NULL;

	if (sbx_job_text(body, NULL, &text, field, &err) != 0) {
		CHECK(field[0] && err.msg[0]);
		return;
	}
	memset(&errs, 0, sizeof(errs));
	if (sbx_job_parse(sbx_span(text, strlen(text)), "job.yaml", &errs, &job) == 0)
		check_job(job, body);
	/* sbx-run may refuse a value, and not what stands around it. */
	for (size_t i = 0; i < errs.n; i++) {
		CHECK(strncmp(errs.v[i].msg, "not YAML", 8) != 0);
		CHECK(strncmp(errs.v[i].msg, "unknown key", 11) != 0);
	}
	sbx_job_free(job);
	free(text);
}

static void take(const struct sbx_route *route, struct sbx_span text)
{
	char name[SBX_FIELD_NAME_MAX];
	struct sbx_err err = { 0 };
	json_t *body = route->body ? sbx_control_parse(text, &err) : NULL;
	int r;

	if (!body)
		return;
	r = sbx_fields_check(route->body, route->n_body, body, name, &err);
	CHECK(r == 0 || (r == SBX_FIELD_E_INVALID && err.msg[0]));
	if (r == 0 && strcmp(route->id, "createSandbox") == 0)
		start(body);
	json_decref(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t n = end ? (size_t)(end - data) : size;
	struct sbx_route_found found;
	unsigned allowed = 0;
	char *line = strndup((const char *)data, n), *path;
	int method;

	CHECK(line);
	path = strchr(line, ' ');
	if (path) {
		*path++ = '\0';
		method = sbx_method_parse(line);
		if (method >= 0 && sbx_route_find(&sbx_routes, (enum sbx_method)method, path,
						  &found, &allowed) == 0) {
			check_params(&found);
			if (end)
				take(found.route, sbx_span(end + 1, size - n - 1));
		}
	}
	free(line);
	return 0;
}
