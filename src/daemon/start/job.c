/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/start/job.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/api/net_rule.h"
#include "policy/forms/variable_form.h"

/* --- YAML --- */

/* Writes @s in double quotes (YAML 1.2, 5.7 and 7.3.1). Bytes that YAML does not take as they are
 * become escapes; @s is UTF-8. */
static void quote(FILE *f, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	fputc('"', f);
	for (; *p; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(f, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(f, "\\x%02x", *p);
		else if (p[0] == 0xc2 && p[1] < 0xa0) /* C1 */
			fprintf(f, "\\x%02x", *++p);
		else if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
			fputs((p += 2, *p == 0xa8 ? "\\u2028" : "\\u2029"), f);
		else if (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf)
			fputs((p += 2, "\\ufeff"), f);
		else if (p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe)
			fputs((p += 2, *p == 0xbe ? "\\ufffe" : "\\uffff"), f);
		else
			fputc(*p, f);
	}
	fputc('"', f);
}

static void write_text(FILE *f, const char *key, const json_t *v)
{
	if (!json_is_string(v))
		return;
	fprintf(f, "%s: ", key);
	quote(f, json_string_value(v));
	fputc('\n', f);
}

static void write_list(FILE *f, const char *key, const json_t *list)
{
	size_t i;
	const json_t *v;

	if (json_array_size(list) == 0)
		return;
	fprintf(f, "%s:\n", key);
	json_array_foreach(list, i, v)
	{
		fputs("  - ", f);
		quote(f, json_string_value(v));
		fputc('\n', f);
	}
}

/* NAME=VALUE of each member. -ENOMEM or 0. */
static int write_map(FILE *f, const json_t *map)
{
	const char *key;
	const json_t *v;

	json_object_foreach((json_t *)(uintptr_t)map, key, v)
	{
		SBX_AUTO_FREE char *text = NULL;

		if (asprintf(&text, "%s=%s", key, json_string_value(v)) < 0) {
			text = NULL;
			return -ENOMEM;
		}
		fputs("  - ", f);
		quote(f, text);
		fputc('\n', f);
	}
	return 0;
}

/* --- what the table of fields cannot say --- */

static int refuse(char *ret_field, const char *field, struct sbx_err *err, const char *why)
{
	sbx_text_cut(ret_field, SBX_JOB_FIELD_MAX, "%s", field);
	sbx_err_set(err, "%s: %s", field, why);
	return SBX_JOB_TEXT_E_INVALID;
}

static bool is_limit(const char *s)
{
	size_t n = 0;

	for (; s[n]; n++)
		if (!((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z') ||
		      s[n] == '_' || (n > 0 && ((s[n] >= '0' && s[n] <= '9') || s[n] == '.'))))
			return false;
	return n > 0;
}

static bool is_file(const char *profile)
{
	size_t n = strlen(profile);

	return strchr(profile, '/') || profile[0] == '-' || profile[0] == '.' || n == 0 ||
	       (n >= 5 && strcmp(profile + n - 5, ".yaml") == 0);
}

static int check(const json_t *body, char *ret_field, struct sbx_err *err)
{
	const json_t *command = json_object_get(body, "command");
	const json_t *limits = json_object_get(body, "limits"), *v;
	char field[SBX_JOB_FIELD_MAX];
	const char *key, *why;

	if (is_file(json_string_value(json_object_get(body, "profile"))))
		return refuse(ret_field, "profile", err, "give a profile's name, and no file");
	if (command && (json_array_size(command) == 0 ||
			!json_string_value(json_array_get(command, 0))[0]))
		return refuse(ret_field, "command", err,
			      "its first word is missing; without `command` the sandbox waits "
			      "for exec");
	json_object_foreach(json_object_get(body, "env"), key, v)
	{
		sbx_text_cut(field, sizeof(field), "env.%s", key);
		why = sbx_form_variable(key);
		if (why)
			return refuse(ret_field, field, err, why);
	}
	json_object_foreach((json_t *)(uintptr_t)limits, key, v)
	{
		sbx_text_cut(field, sizeof(field), "limits.%s", key);
		if (!is_limit(key))
			return refuse(ret_field, field, err, "it is no limit's name");
	}
	if (json_object_get(limits, "wall_time") && json_object_get(body, "timeout"))
		return refuse(ret_field, "limits.wall_time", err,
			      "give `timeout` or this, and not both");
	return 0;
}

static int write_job(FILE *f, const json_t *body, const json_t *secrets, const json_t *rules)
{
	const json_t *network = json_object_get(body, "network");
	const json_t *env = json_object_get(body, "env"), *limits = json_object_get(body, "limits");
	const json_t *timeout = json_object_get(body, "timeout");
	int r = 0;

	write_text(f, "profile", json_object_get(body, "profile"));
	write_text(f, "workspace", json_object_get(body, "workspace"));
	write_text(f, "analysis_id", json_object_get(body, "analysis_id"));
	fputs("scratch: true\n", f);
	if (json_is_false(json_object_get(body, "allow_internet_access")))
		fputs("air_gap: true\n", f);
	write_list(f, "live_allow", json_object_get(network, "allow_out"));
	write_list(f, "live_deny", json_object_get(network, "deny_out"));
	write_list(f, "live_rule", rules);
	write_list(f, "secret", secrets);
	if (json_object_size(env) > 0) {
		fputs("env:\n", f);
		r = write_map(f, env);
	}
	if (json_object_size(limits) > 0 || timeout)
		fputs("limit:\n", f);
	if (timeout)
		fprintf(f, "  - \"wall_time=%llds\"\n",
			(long long)json_integer_value(timeout));
	r = r ? r : write_map(f, limits);
	if (json_object_get(body, "command"))
		write_list(f, "command", json_object_get(body, "command"));
	else
		fputs("wait: true\n", f);
	return r;
}

/* The texts of network.rules. *ret_rules is the caller's. */
static int make_rules(const json_t *body, json_t **ret_rules, char *ret_field, struct sbx_err *err)
{
	const json_t *rules = json_object_get(json_object_get(body, "network"), "rules");
	char field[SBX_FIELD_NAME_MAX];
	struct sbx_err why = { 0 };

	*ret_rules = sbx_net_rules_texts(rules, "network.rules", field, &why);
	if (*ret_rules)
		return 0;
	return field[0] ? refuse(ret_field, field, err, why.msg) : -ENOMEM;
}

int sbx_job_text(const json_t *body, const json_t *secrets, char **ret_text,
		 char ret_field[SBX_JOB_FIELD_MAX], struct sbx_err *err)
{
	SBX_AUTO_FREE char *text = NULL;
	json_t *rules = NULL;
	size_t n = 0;
	FILE *f;
	int r;

	ret_field[0] = '\0';
	r = check(body, ret_field, err);
	if (r == 0)
		r = make_rules(body, &rules, ret_field, err);
	if (r != 0)
		return r;
	f = open_memstream(&text, &n);
	if (!f) {
		json_decref(rules);
		return -ENOMEM;
	}
	r = write_job(f, body, secrets, rules);
	json_decref(rules);
	if (ferror(f) || fclose(f) != 0)
		r = -ENOMEM;
	if (r == 0)
		*ret_text = sbx_steal_ptr(&text);
	return r;
}

/* --- complaints --- */

/* The job's keys that have another name here. */
static const struct {
	const char *key, *field;
	bool same_place;
} renamed[] = {
	{ "profile", "profile", false },
	{ "workspace", "workspace", false },
	{ "command", "command", false },
	{ "env", "env", false },
	{ "limit", "limits", false },
	{ "limits", "limits", false },
	{ "live_allow", "network.allow_out", true },
	{ "live_deny", "network.deny_out", true },
	{ "live_rule", "network.rules", true },
	{ "live-allow", "network.allow_out", true }, /* of a flag */
	{ "live-deny", "network.deny_out", true },
	{ "live-rule", "network.rules", true },
	{ "secret", "secrets", false },
	{ "analysis_id", "analysis_id", false },
	{ "wall_time", "timeout", false },
};

/* Behind "FILE:LINE:COLUMN: " if @s begins so. */
static const char *skip_place(const char *s)
{
	const char *p = strstr(s, "job.yaml:");
	size_t n;

	if (!p || strchr(s, ' ') < p)
		return s;
	p += strlen("job.yaml");
	n = strspn(p, "0123456789:");
	return p[n] == ' ' ? p + n + 1 : s;
}

void sbx_job_complaint(const char *text, size_t n, char *out, size_t n_out,
		       char ret_field[SBX_JOB_FIELD_MAX])
{
	static const char program[] = "sbx-run: ";
	char clean[1024];
	const char *s = clean, *key;
	size_t n_key;

	ret_field[0] = '\0';
	sbx_escape(text, strnlen(text, n), clean, sizeof(clean));
	if (strncmp(s, program, sizeof(program) - 1) == 0)
		s += sizeof(program) - 1;
	s = skip_place(s);
	key = strncmp(s, "--", 2) == 0 ? s + 2 : s;
	n_key = strspn(key, "abcdefghijklmnopqrstuvwxyz_-");
	for (size_t i = 0; i < SBX_N_ELEMENTS(renamed); i++) {
		/* The place in a live list is that in the body. */
		size_t n_place = renamed[i].same_place ? strcspn(key + n_key, ": ") : 0;

		if (strlen(renamed[i].key) == n_key &&
		    strncmp(renamed[i].key, key, n_key) == 0 && strchr(": [.", key[n_key]))
			sbx_text_cut(ret_field, SBX_JOB_FIELD_MAX, "%s%.*s", renamed[i].field,
				     (int)n_place, key + n_key);
	}
	sbx_text_cut(out, n_out, "%s", s);
}
