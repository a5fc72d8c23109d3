/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the keys that sbx-tls serves: what an allow entry says about requests, and secrets. An item
 * is read through its key table, and then checked as a whole.
 */

#include "policy/keys/key_read_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "policy/forms/request_form.h"
#include "policy/profile/profile.h"
#include "policy/profile/secret.h"

/* --- headers --- */

/* Report the problem with the header @name, or with its value. True: there was one. */
static bool refuse_header(struct sbx_key_reader *r, const struct sbx_key *key,
			  const struct sbx_yaml_node *name, const struct sbx_yaml_node *value,
			  const struct sbx_str_list *list)
{
	const char *text = sbx_yaml_text(r->yaml, name), *why = key->check(text);
	size_t n = strlen(text);

	if (why) {
		sbx_key_read_error(r, name, "entry.headers: '%s': %s", text, why);
		return true;
	}
	if (value->kind != SBX_YAML_SCALAR)
		why = "the value must be a string";
	else if (n + strlen(sbx_yaml_text(r->yaml, value)) + 2 > SBX_REQUEST_TEXT_MAX)
		why = "a header has at most 4096 bytes";
	else
		why = sbx_form_header_value(sbx_yaml_text(r->yaml, value));
	if (why) {
		sbx_key_read_error(r, value, "entry.headers: '%s': %s", text, why);
		return true;
	}
	for (size_t i = 0; i < list->n; i++) {
		if (strncasecmp(list->v[i], text, n) == 0 && list->v[i][n] == ':') {
			sbx_key_read_error(r, name, "entry.headers: '%s' is there twice", text);
			return true;
		}
	}
	return false;
}

int sbx_key_read_headers(struct sbx_key_reader *r, const struct sbx_key_block *block,
			 const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_str_list *list = (void *)((uint8_t *)base + key->offset);
	const struct sbx_yaml_node *value;

	for (node = sbx_yaml_first(r->yaml, node); node; node = sbx_yaml_next(r->yaml, value)) {
		SBX_AUTO_FREE char *header = NULL;

		value = sbx_yaml_next(r->yaml, node);
		if (!sbx_key_read_has_room(r, block, key, node, list->n))
			return 0;
		if (refuse_header(r, key, node, value, list))
			continue;
		if (asprintf(&header, "%s: %s", sbx_yaml_text(r->yaml, node),
			     sbx_yaml_text(r->yaml, value)) < 0) {
			header = NULL;
			return -ENOMEM;
		}
		if (sbx_str_list_add(list, header) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- entries --- */

/* A list that was given, but empty, reads as if it admitted nothing; without it all is admitted. */
static bool is_given_empty(const struct sbx_str_list *list)
{
	return list->v && list->n == 0;
}

static bool is_listed(const struct sbx_net_item *item)
{
	return item->methods.v || item->paths.v;
}

/* The name of a key that makes sbx-tls terminate the entry; NULL: there is none. */
static const char *terminating_key(const struct sbx_net_item *item)
{
	if (item->access || is_listed(item))
		return "access";
	return item->headers.n	       ? "headers"
	       : item->inspect	       ? "inspect"
	       : item->websocket       ? "websocket"
	       : item->max_request_bytes ? "max_request_bytes"
	       : item->cert || item->key ? "mtls"
					 : NULL;
}

int sbx_key_compose_requests(struct sbx_key_reader *r, const struct sbx_yaml_node *node, bool deny,
			     struct sbx_net_item *item, struct sbx_net_entry *entry)
{
	const char *key = terminating_key(item);
	size_t n_errors = r->n_errors;

	if (!key && !item->passthrough)
		return 0;
	if (deny || entry->is_cidr)
		sbx_key_read_error(r, node,
				   "entry.%s: only in network.allow, in an entry with host:",
				   key ? key : "passthrough");
	else if (key && item->passthrough)
		sbx_key_read_error(r, node,
				   "entry.%s: needs the connection terminated, and passthrough "
				   "refuses that: remove one of them",
				   key);
	else if (key && entry->proto == SBX_PROTO_UDP)
		sbx_key_read_error(r, node, "entry.%s: only over TCP: leave out protocol: udp",
				   key);
	else if (key && entry->check_set && entry->check == SBX_CHECK_NONE)
		sbx_key_read_error(r, node, "entry.%s: only for HTTP: leave out check: none", key);
	else if (item->websocket && item->access && strcmp(item->access, "read-only") == 0)
		sbx_key_read_error(r, node,
				   "entry.websocket: nothing is upgraded with access: read-only; "
				   "write access: any, or {methods: [GET], paths: [...]}");
	else if (!item->cert != !item->key)
		sbx_key_read_error(r, node, "entry.mtls: needs both cert and key");
	else if (is_given_empty(&item->methods) || is_given_empty(&item->paths))
		sbx_key_read_error(r, node,
				   "entry.access: an empty list: name some, or leave it out for "
				   "all");
	if (r->n_errors != n_errors)
		return SBX_PROFILE_E_INVALID;
	entry->any_said = item->access && strcmp(item->access, "any") == 0;
	entry->access = item->access && !entry->any_said ? SBX_ACCESS_READ_ONLY
			: is_listed(item)		 ? SBX_ACCESS_LISTED
							 : SBX_ACCESS_ANY;
	entry->methods = item->methods;
	entry->paths = item->paths;
	entry->headers = item->headers;
	item->methods = item->paths = item->headers = (struct sbx_str_list){ 0 };
	entry->inspect = item->inspect;
	entry->passthrough = item->passthrough;
	entry->websocket = item->websocket;
	entry->max_request_bytes = item->max_request_bytes;
	entry->cert = sbx_steal_ptr(&item->cert);
	entry->key = sbx_steal_ptr(&item->key);
	return 0;
}

/* --- secrets --- */

static void secret_item_fini(struct sbx_secret_item *item)
{
	sbx_key_fini(&sbx_secret_item_keys, item);
}

/* A command is run in /, for the caller's directory is granted. */
static bool is_relative(const struct sbx_str_list *command)
{
	const char *program = command->n && command->v ? command->v[0] : "";

	return program[0] != '/' && strchr(program, '/');
}

/* The problem with the keys of @item taken together, or NULL. */
static const char *judge_secret(const struct sbx_secret_item *item)
{
	bool by_header =
		item->inject_header || (item->inject && strcmp(item->inject, "header") == 0);

	if (!!item->from + !!item->from_command.v + !!item->command.v != 1)
		return "one of from and command must say where the value comes from";
	if (is_given_empty(&item->from_command) || is_given_empty(&item->command))
		return "command needs the words of a command";
	if (is_relative(&item->from_command) || is_relative(&item->command))
		return "command is run in the directory /; write the absolute path of its program";
	if (item->hosts.n == 0)
		return "hosts must name the hosts that get the value";
	if (is_given_empty(&item->in) || is_given_empty(&item->methods) ||
	    is_given_empty(&item->paths))
		return "an empty list: name some, or leave it out";
	if (item->signing)
		return item->inject || item->inject_header || item->header || item->in.v ?
			       "signing excludes inject, header and in" :
			       NULL;
	if (item->inject_header && item->header)
		return "the header is there twice: under inject, and as header";
	if (by_header && !item->inject_header && !item->header)
		return "inject: header needs header: \"Name: ${secret}\"";
	if (item->header && !by_header)
		return "header belongs to inject: header; add that";
	if (by_header && item->in.v)
		return "in belongs to inject: placeholder";
	if (item->keep_present && !by_header)
		return "override belongs to inject: header";
	return NULL;
}

static int set_header(struct sbx_secret *s, const char *header)
{
	const char *value;
	size_t n = sbx_form_header_split(header, &value);

	s->inject = SBX_SECRET_HEADER;
	s->header = strndup(header, n);
	s->template_text = strdup(value);
	return s->header && s->template_text ? 0 : -ENOMEM;
}

static unsigned places(const struct sbx_str_list *in)
{
	unsigned bits = 0;

	for (size_t i = 0; i < in->n; i++)
		bits |= *in->v[i] == 'h'   ? SBX_SECRET_IN_HEADER
			: *in->v[i] == 'q' ? SBX_SECRET_IN_QUERY
					   : SBX_SECRET_IN_BODY;
	return bits ? bits : SBX_SECRET_IN_HEADER;
}

/* Move the parts of a judged @item to @s. */
static int compose_secret(struct sbx_secret_item *item, struct sbx_secret *s, struct sbx_err *err)
{
	const char *header = item->inject_header ? item->inject_header : item->header;
	int r = 0;

	s->name = sbx_steal_ptr(&item->name);
	if (item->from) {
		r = sbx_secret_set_from(s, item->from, err);
	} else {
		struct sbx_str_list *words = item->command.v ? &item->command : &item->from_command;

		s->from = SBX_SECRET_COMMAND;
		s->command = *words;
		*words = (struct sbx_str_list){ 0 };
	}
	for (size_t i = 0; r == 0 && i < item->hosts.n; i++)
		r = sbx_secret_add_host(s, item->hosts.v[i], err);
	if (r == 0 && header)
		r = set_header(s, header);
	if (item->signing)
		s->inject = SBX_SECRET_AWS_SIGV4;
	s->prefix = sbx_steal_ptr(&item->prefix);
	s->in = places(&item->in);
	s->keep_present = item->keep_present;
	s->detect = item->detect;
	s->methods = item->methods;
	s->paths = item->paths;
	item->methods = item->paths = (struct sbx_str_list){ 0 };
	return r;
}

static int read_secret(struct sbx_key_reader *r, const struct sbx_yaml_node *node,
		       struct sbx_profile *p)
{
	SBX_CLEANUP(secret_item_fini) struct sbx_secret_item item = { 0 };
	SBX_CLEANUP(sbx_secret_fini) struct sbx_secret s = { 0 };
	struct sbx_err err = { 0 };
	size_t n_errors = r->n_errors;
	const char *why;
	int ret;

	if (sbx_key_read_block(r, &sbx_secret_item_keys, node, &item) < 0)
		return -ENOMEM;
	if (r->n_errors != n_errors)
		return 0;
	if (!item.name) {
		sbx_key_read_error(r, node, "a secret needs name:, the variable inside");
		return 0;
	}
	why = judge_secret(&item);
	if (why) {
		sbx_key_read_error(r, node, "secret '%s': %s", item.name, why);
		return 0;
	}
	ret = compose_secret(&item, &s, &err);
	if (ret == SBX_PROFILE_E_INVALID)
		sbx_key_read_error(r, node, "secret '%s': from: %s", s.name, err.msg);
	if (ret != 0)
		return ret < 0 ? ret : 0;
	s.line = node->line;
	s.column = node->column;
	ret = sbx_profile_add_secret(p, &s, &err);
	if (ret == SBX_PROFILE_E_INVALID)
		sbx_key_read_error(r, node, "%s", err.msg);
	return ret < 0 ? ret : 0;
}

int sbx_key_read_secrets(struct sbx_key_reader *r, const struct sbx_key_block *block,
			 const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_profile *p = base;
	int ret = 0;

	for (node = sbx_yaml_first(r->yaml, node); ret == 0 && node;
	     node = sbx_yaml_next(r->yaml, node)) {
		if (!sbx_key_read_has_room(r, block, key, node, p->n_secrets))
			return 0;
		ret = read_secret(r, node, p);
	}
	return ret;
}
