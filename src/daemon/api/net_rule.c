/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/api/net_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hostname.h"
#include "base/text.h"
#include "policy/decide/live.h"
#include "policy/forms/request_form.h"
#include "policy/profile/net_entry.h"

SBX_DEFINE_CLEANUP(struct sbx_live, sbx_live_fini);

static const char *const actions[] = { "allow", "deny", NULL };
static const char *const protocols[] = { "tcp", "udp", NULL };

const struct sbx_field sbx_net_rule_fields[SBX_N_NET_RULE_FIELDS] = {
	{ "action", .required = true, .words = actions, .help = "what it does" },
	{ "host", .n_max = 256, .help = "a name, or *.name for those below it" },
	{ "cidr", .n_max = 64, .help = "instead: a network or an address" },
	{ "ports", SBX_FIELD_PORTS, .n_max = SBX_PORTS_MAX,
	  .help = "as [443, \"8000-8100\"]; absent: as for an entry of allow_out or deny_out" },
	{ "protocol", .words = protocols, .help = "absent: tcp to allow, both to deny" },
	{ "methods", SBX_FIELD_STRINGS, .n_max = SBX_REQUEST_LIST_MAX, .check = sbx_form_method,
	  .help = "of requests that are allowed; absent: all" },
	{ "paths", SBX_FIELD_STRINGS, .n_max = SBX_REQUEST_LIST_MAX, .check = sbx_form_path_pattern,
	  .help = "patterns of paths that are allowed; absent: all" },
};

/* --- to text --- */

static const char *text_of(const json_t *rule, const char *name)
{
	return json_string_value(json_object_get(rule, name));
}

/* Writes the members with @separator between them; integers, too. */
static void write_list(FILE *f, const json_t *list, char separator)
{
	size_t i;
	const json_t *v;

	json_array_foreach(list, i, v)
	{
		if (i)
			fputc(separator, f);
		if (json_is_integer(v))
			fprintf(f, "%lld", (long long)json_integer_value(v));
		else
			fputs(json_string_value(v), f);
	}
}

/* "allow ENTRY [METHODS [PATH...]]"; nothing in it is checked yet. */
static void write_rule(FILE *f, const json_t *rule)
{
	const json_t *ports = json_object_get(rule, "ports"), *methods, *paths;
	const char *host = text_of(rule, "host"), *cidr = text_of(rule, "cidr");
	const char *protocol = text_of(rule, "protocol");
	bool brackets = cidr && strchr(cidr, ':') && ports;

	methods = json_object_get(rule, "methods");
	paths = json_object_get(rule, "paths");
	fprintf(f, "%s %s%s%s", text_of(rule, "action"), brackets ? "[" : "", host ? host : cidr,
		brackets ? "]" : "");
	if (ports) {
		fputc(':', f);
		write_list(f, ports, ',');
	}
	if (protocol)
		fprintf(f, "/%s", protocol);
	if (!methods && !paths)
		return;
	fputc(' ', f);
	if (methods)
		write_list(f, methods, ',');
	else
		fputc('*', f);
	if (paths) {
		fputc(' ', f);
		write_list(f, paths, ' ');
	}
}

static const char *refuse(struct sbx_err *err, const char *member, const char *why)
{
	sbx_err_set(err, "%s", why);
	return member;
}

static bool is_empty(const json_t *rule, const char *name)
{
	const json_t *v = json_object_get(rule, name);

	return v && json_array_size(v) == 0;
}

/* The member that is wrong, with @err; NULL: none was found. The whole text is judged later, by the
 * parser of live rules. */
static const char *check(const json_t *rule, struct sbx_err *err)
{
	static const char *const lists[] = { "ports", "methods", "paths" };
	const char *host = text_of(rule, "host"), *cidr = text_of(rule, "cidr");
	const char *target = host ? host : cidr, *protocol = text_of(rule, "protocol");
	const char *of_requests = json_object_get(rule, "methods") ? "methods" :
				  json_object_get(rule, "paths")   ? "paths" :
								     NULL;
	struct sbx_net_entry e = { 0 };
	bool deny = strcmp(text_of(rule, "action"), "deny") == 0;
	int r;

	if (!host == !cidr)
		return refuse(err, host ? "cidr" : "host", "give one of host and cidr");
	for (size_t i = 0; i < SBX_N_ELEMENTS(lists); i++)
		if (is_empty(rule, lists[i]))
			return refuse(err, lists[i], "it is empty: leave it out for all of them");
	if (strpbrk(target, host ? " :/[" : " [") || !*target)
		return refuse(err, host ? "host" : "cidr",
			      host ? "write a name alone, and ports under ports" :
				     "write an address or a network alone, and ports under ports");
	r = sbx_net_entry_parse(target, host ? SBX_PATTERN_HOST : SBX_PATTERN_CIDR, deny, &e, err);
	if (r == 0 && (e.n_ports || e.proto_set)) {
		sbx_err_set(err, "write ports under ports, and the protocol under protocol");
		r = SBX_PROFILE_E_INVALID;
	}
	sbx_net_entry_fini(&e);
	if (r > 0)
		return host ? "host" : "cidr";
	if (of_requests && deny)
		return refuse(err, of_requests, "a rule that denies refuses every request");
	if (of_requests && cidr)
		return refuse(err, of_requests, "requests are read to a name alone: give host");
	if (of_requests && protocol && strcmp(protocol, "udp") == 0)
		return refuse(err, of_requests, "requests are read by tcp alone");
	return NULL;
}

/* The canonical text of one rule. NULL: as sbx_net_rules_texts(), with the member alone. */
static json_t *rule_text(const json_t *rule, const char **ret_member, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_live_fini) struct sbx_live live = { 0 };
	SBX_AUTO_FREE char *text = NULL;
	const char *const *texts = (const char *const *)&text;
	char field[SBX_LIVE_FIELD_MAX];
	size_t n = 0;
	FILE *f;
	int r;

	*ret_member = check(rule, err);
	if (*ret_member)
		return NULL;
	f = open_memstream(&text, &n);
	if (!f)
		return NULL;
	write_rule(f, rule);
	if (fclose(f) != 0 || !text)
		return NULL;
	r = sbx_live_add_rules(&live, "", texts, 1, field, err);
	if (r == 0)
		return json_string(live.rules.v[0].text);
	/* The other members were judged one by one. */
	if (r > 0)
		*ret_member = json_object_get(rule, "methods") ? "methods" :
			      json_object_get(rule, "paths")   ? "paths" :
								 "ports";
	return NULL;
}

json_t *sbx_net_rules_texts(const json_t *rules, const char *above,
			    char ret_field[SBX_FIELD_NAME_MAX], struct sbx_err *err)
{
	json_t *texts = json_array();
	const json_t *rule;
	size_t i;

	ret_field[0] = '\0';
	json_array_foreach(rules, i, rule)
	{
		const char *member = NULL;
		json_t *text = rule_text(rule, &member, err);

		if (text && json_array_append_new(texts, text) == 0)
			continue;
		if (member)
			sbx_text_cut(ret_field, SBX_FIELD_NAME_MAX, "%s[%zu].%s", above, i, member);
		json_decref(texts);
		return NULL;
	}
	return texts;
}

/* --- from text --- */

static json_t *ports_of(const struct sbx_net_entry *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < e->n_ports; i++) {
		const struct sbx_port_range *p = &e->ports[i];

		json_array_append_new(list, p->first == p->last ?
						    json_integer(p->first) :
						    json_sprintf("%u-%u", p->first, p->last));
	}
	return list;
}

/* Sets @name to the words of @s between @separator. */
static void set_words(json_t *o, const char *name, const char *s, size_t n, char separator)
{
	json_t *list = json_array();

	for (const char *end = s + n; s < end;) {
		const char *next = memchr(s, separator, (size_t)(end - s));
		size_t n_word = (size_t)((next ? next : end) - s);

		json_array_append_new(list, json_stringn(s, n_word));
		s += n_word + 1;
	}
	json_object_set_new(o, name, list);
}

static json_t *rule_object(const struct sbx_live_rule *r)
{
	const struct sbx_net_entry *e = &r->entry;
	char target[SBX_HOSTNAME_MAX + 3];
	json_t *o = json_object();
	size_t n;

	json_object_set_new(o, "action", json_string(sbx_action_str(r->action)));
	json_object_set_new(o, e->is_cidr ? "cidr" : "host",
			    json_string(sbx_net_entry_target(e, target, sizeof(target))));
	if (e->n_ports)
		json_object_set_new(o, "ports", ports_of(e));
	if (e->proto_set)
		json_object_set_new(o, "protocol",
				    json_string(e->proto == SBX_PROTO_UDP ? "udp" : "tcp"));
	if (!r->requests)
		return o;
	n = strcspn(r->requests, " ");
	if (strncmp(r->requests, "*", n) != 0)
		set_words(o, "methods", r->requests, n, ',');
	if (r->requests[n])
		set_words(o, "paths", r->requests + n + 1, strlen(r->requests + n + 1), ' ');
	return o;
}

json_t *sbx_net_rules_objects(const json_t *texts)
{
	json_t *objects = json_array();
	const json_t *v;
	size_t i;

	json_array_foreach(texts, i, v)
	{
		SBX_CLEANUP(sbx_live_fini) struct sbx_live live = { 0 };
		const char *text = json_string_value(v);
		char field[SBX_LIVE_FIELD_MAX];

		if (text && sbx_live_add_rules(&live, "", &text, 1, field, NULL) == 0)
			json_array_append_new(objects, rule_object(&live.rules.v[0]));
	}
	return objects;
}
