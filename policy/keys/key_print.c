/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The canonical form. Block style, two spaces per level, one item per line. Text that a YAML reader
 * could take for something else is in double quotes.
 */

#include "policy/keys/key_print.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/forms/request_form.h"
#include "policy/forms/units.h"
#include "policy/keys/key_scalar.h"
#include "policy/profile/endpoint.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/profile.h"
#include "policy/profile/secret.h"
#include "policy/profile/settle.h"

/* Text that grows. After a failed allocation nothing more is written. */
struct printer {
	char *text;
	size_t n, room;
	bool failed;
	int depth;
};

static void put(struct printer *p, const char *s, size_t n)
{
	if (p->failed)
		return;
	if (p->n + n + 1 > p->room) {
		size_t room = (p->n + n + 1) * 2;
		char *text = realloc(p->text, room);

		if (!text) {
			p->failed = true;
			return;
		}
		p->text = text;
		p->room = room;
	}
	memcpy(p->text + p->n, s, n);
	p->n += n;
	p->text[p->n] = '\0';
}

static void puts_to(struct printer *p, const char *s)
{
	put(p, s, strlen(s));
}

static void indent(struct printer *p)
{
	for (int i = 0; i < p->depth; i++)
		puts_to(p, "  ");
}

/* Words that YAML 1.1 or 1.2 readers do not take for strings. */
static bool is_yaml_word(const char *s)
{
	static const char *const words[] = { "true", "false", "yes", "no", "on",
					     "off",  "null",  "y",   "n" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(words); i++) {
		if (strcasecmp(s, words[i]) == 0)
			return true;
	}
	return false;
}

static bool is_plain(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '/')
		return false;
	for (const char *c = s; *c; c++) {
		/* A colon is part of a plain scalar unless a space or the end follows. */
		bool inner_colon = *c == ':' && c[1] && c[1] != ' ';

		if (!isalnum((unsigned char)*c) && !strchr("/._-+", *c) && !inner_colon)
			return false;
	}
	return !is_yaml_word(s);
}

static void string(struct printer *p, const char *s)
{
	if (is_plain(s)) {
		puts_to(p, s);
		return;
	}
	puts_to(p, "\"");
	for (; *s; s++) {
		if (*s == '\n')
			puts_to(p, "\\n");
		else if (*s == '\t')
			puts_to(p, "\\t");
		else {
			if (*s == '"' || *s == '\\')
				puts_to(p, "\\");
			put(p, s, 1);
		}
	}
	puts_to(p, "\"");
}

/* "name: value" for a value that needs no quotes: numbers and words. */
static void bare_pair(struct printer *p, const char *name, const char *value)
{
	indent(p);
	puts_to(p, name);
	puts_to(p, ": ");
	puts_to(p, value);
	puts_to(p, "\n");
}

/* "name: value" with the given lead ("" or "- "). */
static void pair(struct printer *p, const char *lead, const char *name, const char *value)
{
	indent(p);
	puts_to(p, lead);
	puts_to(p, name);
	puts_to(p, ": ");
	string(p, value);
	puts_to(p, "\n");
}

static void item(struct printer *p, const char *value)
{
	indent(p);
	puts_to(p, "- ");
	string(p, value);
	puts_to(p, "\n");
}

static void heading(struct printer *p, const char *name)
{
	indent(p);
	puts_to(p, name);
	puts_to(p, ":\n");
}

/* --- lists --- */

static void print_strings(struct printer *p, const struct sbx_key *key, const void *base)
{
	const struct sbx_str_list *list = (const void *)((const uint8_t *)base + key->offset);

	for (size_t i = 0; i < list->n; i++)
		item(p, list->v[i]);
}

/* "name:" and the strings of @list below it; nothing for an empty list. */
static void print_list(struct printer *p, const char *name, const struct sbx_str_list *list)
{
	if (list->n == 0)
		return;
	heading(p, name);
	p->depth++;
	for (size_t i = 0; i < list->n; i++)
		item(p, list->v[i]);
	p->depth--;
}

static void print_headers(struct printer *p, const struct sbx_str_list *list)
{
	if (list->n == 0)
		return;
	heading(p, "headers");
	p->depth++;
	for (size_t i = 0; i < list->n; i++) {
		const char *value;
		size_t n = sbx_form_header_split(list->v[i], &value);
		char *name = strndup(list->v[i], n);

		if (!name) {
			p->failed = true;
			return;
		}
		indent(p);
		string(p, name);
		free(name);
		puts_to(p, ": ");
		string(p, value);
		puts_to(p, "\n");
	}
	p->depth--;
}

/* The keys of an entry that are rules of sbx-tls. */
static void print_requests(struct printer *p, const struct sbx_net_entry *e)
{
	char buf[SBX_UNIT_STR_MAX];

	if (e->any_said)
		bare_pair(p, "access", "any");
	if (e->access == SBX_ACCESS_READ_ONLY)
		bare_pair(p, "access", "read-only");
	if (e->access == SBX_ACCESS_LISTED) {
		heading(p, "access");
		p->depth++;
		print_list(p, "methods", &e->methods);
		print_list(p, "paths", &e->paths);
		p->depth--;
	}
	print_headers(p, &e->headers);
	if (e->inspect)
		bare_pair(p, "inspect", "true");
	if (e->passthrough)
		bare_pair(p, "passthrough", "true");
	if (e->websocket)
		bare_pair(p, "websocket", "true");
	if (e->max_request_bytes)
		bare_pair(p, "max_request_bytes",
			  sbx_size_format(e->max_request_bytes, buf, sizeof(buf)));
	if (e->cert) {
		heading(p, "mtls");
		p->depth++;
		pair(p, "", "cert", e->cert);
		pair(p, "", "key", e->key);
		p->depth--;
	}
}

/* Print the short form if it says everything. */
static void print_net_entry(struct printer *p, const struct sbx_net_entry *e)
{
	char target[SBX_HOSTNAME_MAX + 3], ports[SBX_PORTS_STR_MAX];

	if (!e->private_ok && !e->check_set && !e->passthrough &&
	    !sbx_net_entry_asks_terminate(e)) {
		item(p, e->text);
		return;
	}
	pair(p, "- ", e->is_cidr ? "cidr" : "host",
	     sbx_net_entry_target(e, target, sizeof(target)));
	p->depth++;
	if (e->n_ports > 0)
		pair(p, "", "ports", sbx_net_entry_ports(e, ports, sizeof(ports)));
	if (e->proto_set)
		pair(p, "", "protocol", sbx_proto_str(e->proto));
	if (e->private_ok)
		bare_pair(p, "private", "true");
	if (e->check_set)
		pair(p, "", "check", sbx_check_str(e->check));
	print_requests(p, e);
	p->depth--;
}

static void print_net_list(struct printer *p, const struct sbx_key *key, const void *base)
{
	const struct sbx_net_list *list = (const void *)((const uint8_t *)base + key->offset);

	for (size_t i = 0; i < list->n; i++)
		print_net_entry(p, &list->v[i]);
}

static void print_mounts(struct printer *p, const struct sbx_key *key, const void *base)
{
	const struct sbx_profile *profile = base;

	(void)key;
	for (size_t i = 0; i < profile->filesystem.n_mounts; i++) {
		const struct sbx_mount_entry *m = &profile->filesystem.mounts[i];

		pair(p, "- ", "source", m->source);
		p->depth++;
		if (m->target)
			pair(p, "", "target", m->target);
		bare_pair(p, "writable", m->writable ? "true" : "false");
		if (m->optional)
			bare_pair(p, "optional", "true");
		if (m->idmap_or_read_only)
			bare_pair(p, "idmap", "read-only");
		p->depth--;
	}
}

static void print_env(struct printer *p, const struct sbx_key *key, const void *base)
{
	const struct sbx_profile *profile = base;

	(void)key;
	for (size_t i = 0; i < profile->environment.n_set; i++)
		pair(p, "", profile->environment.set[i].name, profile->environment.set[i].value);
}

static void print_resolvers(struct printer *p, const struct sbx_key *key, const void *base)
{
	const struct sbx_profile *profile = base;
	char text[SBX_ENDPOINT_STR_MAX];

	(void)key;
	for (size_t i = 0; i < profile->network.n_resolvers; i++) {
		const struct sbx_resolver *r = &profile->network.resolvers[i];
		struct sbx_endpoint e = { .is_addr = true, .addr = r->addr, .port = r->port };

		item(p, sbx_endpoint_format(&e, text, sizeof(text)));
	}
}

static void print_probes(struct printer *p, const struct sbx_key *key, const void *base)
{
	const struct sbx_profile *profile = base;
	char text[SBX_ENDPOINT_STR_MAX];

	(void)key;
	for (size_t i = 0; i < profile->n_probes; i++) {
		const struct sbx_probe *probe = &profile->probes[i];
		const char *value = probe->name;
		struct sbx_endpoint e = { .port = probe->port, .proto = probe->proto };

		if (probe->kind == SBX_PROBE_CONNECT_REFUSED) {
			e.is_addr = e.proto_set = true;
			e.addr = probe->addr;
			value = sbx_endpoint_format(&e, text, sizeof(text));
		} else if (probe->kind == SBX_PROBE_CONNECT_NAME) {
			snprintf(text, sizeof(text), "%.*s:%u", SBX_HOSTNAME_MAX, probe->name,
				 probe->port);
			value = text;
		}
		pair(p, "- ", sbx_probe_kind_str(probe->kind), value);
		p->depth++;
		if (*probe->expect)
			pair(p, "", "expect", probe->expect);
		p->depth--;
	}
}

static void print_places(struct printer *p, unsigned in)
{
	heading(p, "in");
	p->depth++;
	if (in & SBX_SECRET_IN_HEADER)
		item(p, "header");
	if (in & SBX_SECRET_IN_QUERY)
		item(p, "query");
	if (in & SBX_SECRET_IN_BODY)
		item(p, "body");
	p->depth--;
}

static void print_inject(struct printer *p, const struct sbx_secret *s)
{
	char header[SBX_REQUEST_TEXT_MAX + 4];

	if (s->inject == SBX_SECRET_AWS_SIGV4)
		bare_pair(p, "signing", "aws-sigv4");
	if (s->inject != SBX_SECRET_HEADER)
		return;
	bare_pair(p, "inject", "header");
	sbx_text_fit(header, sizeof(header), "%s: %s", s->header, s->template_text);
	pair(p, "", "header", header);
	if (s->keep_present)
		bare_pair(p, "override", "false");
}

static void print_secret(struct printer *p, const struct sbx_secret *s)
{
	char *from = NULL;

	pair(p, "- ", "name", s->name);
	p->depth++;
	if (s->from == SBX_SECRET_COMMAND) {
		print_list(p, "command", &s->command);
	} else {
		from = sbx_secret_from_text(s);
		p->failed |= !from;
		pair(p, "", "from", from ? from : "");
		free(from);
	}
	heading(p, "hosts");
	p->depth++;
	for (size_t i = 0; i < s->hosts.n; i++)
		item(p, s->hosts.v[i].text);
	p->depth--;
	print_inject(p, s);
	if (s->prefix)
		pair(p, "", "prefix", s->prefix);
	if (s->in != SBX_SECRET_IN_HEADER)
		print_places(p, s->in);
	print_list(p, "methods", &s->methods);
	print_list(p, "paths", &s->paths);
	if (s->detect)
		bare_pair(p, "detect", "true");
	p->depth--;
}

static void print_secrets(struct printer *p, const struct sbx_key *key, const void *base)
{
	const struct sbx_profile *profile = base;

	(void)key;
	for (size_t i = 0; i < profile->n_secrets; i++)
		print_secret(p, &profile->secrets[i]);
}

/* --- blocks --- */

static void print_block(struct printer *p, const struct sbx_key_block *block, const void *base);

static void print_inner_block(struct printer *p, const struct sbx_key *key, const void *base)
{
	print_block(p, key->block, (const uint8_t *)base + key->offset);
}

static void (*const list_printers[SBX_N_KEY_TYPES])(struct printer *, const struct sbx_key *,
						    const void *) = {
	[SBX_KEY_BLOCK] = print_inner_block, [SBX_KEY_STRINGS] = print_strings,
	[SBX_KEY_NET_LIST] = print_net_list, [SBX_KEY_MOUNTS] = print_mounts,
	[SBX_KEY_ENV] = print_env,	     [SBX_KEY_RESOLVERS] = print_resolvers,
	[SBX_KEY_PROBES] = print_probes,     [SBX_KEY_SECRETS] = print_secrets,
};

/* Print a heading and its block; remove the heading again when the block is empty. */
static void print_nested(struct printer *p, const struct sbx_key *key, const void *base)
{
	const struct sbx_str_list *list = (const void *)((const uint8_t *)base + key->offset);
	size_t start = p->n, inside;

	heading(p, key->name);
	inside = p->n;
	p->depth++;
	list_printers[key->type](p, key, base);
	p->depth--;
	if (p->failed || p->n != inside)
		return;
	p->n = start;
	p->text[start] = '\0';
	/* Print an empty list if leaving the key out would mean the default list. */
	if (key->def_list && list->v)
		bare_pair(p, key->name, "[]");
}

static void print_proxy(struct printer *p, const struct sbx_key *key,
			const struct sbx_profile *profile)
{
	char text[SBX_ENDPOINT_STR_MAX + 16];
	bool brackets = profile->network.proxy_host && strchr(profile->network.proxy_host, ':');

	if (!profile->network.proxy_host)
		return;
	sbx_text_fit(text, sizeof(text), "http://%s%s%s:%u", brackets ? "[" : "",
		 profile->network.proxy_host, brackets ? "]" : "", profile->network.proxy_port);
	pair(p, "", key->name, text);
}

static void print_block(struct printer *p, const struct sbx_key_block *block, const void *base)
{
	char buf[SBX_UNIT_STR_MAX];

	for (size_t i = 0; i < block->n_keys; i++) {
		const struct sbx_key *key = &block->keys[i];

		if (sbx_key_is_scalar(key)) {
			const char *value = sbx_key_get(key, base, buf, sizeof(buf));

			if (value && (key->type == SBX_KEY_STRING || key->type == SBX_KEY_PROSE))
				pair(p, "", key->name, value);
			else if (value)
				bare_pair(p, key->name, value);
		} else if (key->type == SBX_KEY_PROXY) {
			print_proxy(p, key, base);
		} else if (list_printers[key->type]) {
			print_nested(p, key, base);
		}
	}
}

char *sbx_key_print(const struct sbx_key_block *block, const void *base)
{
	struct printer p = { 0 };

	put(&p, "", 0);
	print_block(&p, block, base);
	if (p.failed) {
		free(p.text);
		return NULL;
	}
	return p.text;
}

char *sbx_key_print_requests(const struct sbx_profile *profile)
{
	struct printer p = { 0 };
	bool any = profile->n_secrets > 0;

	put(&p, "", 0);
	for (size_t i = 0; i < profile->network.allow.n; i++) {
		if (!profile->network.allow.v[i].terminate)
			continue;
		any = true;
		print_net_entry(&p, &profile->network.allow.v[i]);
	}
	print_secrets(&p, NULL, profile);
	if (any && profile->network.extra_ca)
		pair(&p, "", "extra_ca", profile->network.extra_ca);
	if (p.failed) {
		free(p.text);
		return NULL;
	}
	return p.text;
}
