/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the keys that only profiles have: mounts, variables, resolvers, the proxy, probes. @base is
 * the struct sbx_profile itself for all of these. An item that is a mapping goes through the item's
 * key table and is checked as a whole afterwards.
 */

#include "policy/keys/key_read_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/forms/option_form.h"
#include "policy/keys/key_scalar.h"
#include "policy/profile/endpoint.h"
#include "policy/profile/profile.h"

/* --- mounts --- */

static void mount_fini(struct sbx_mount_entry *m)
{
	sbx_key_fini(&sbx_mount_keys, m);
}

static int set_mount_field(struct sbx_key_reader *r, const struct sbx_yaml_node *node,
			   const char *name, const char *text, struct sbx_mount_entry *m)
{
	struct sbx_err err = { 0 };
	int ret = sbx_key_set(&sbx_mount_keys, sbx_key_find(&sbx_mount_keys, name), text, m, &err);

	if (ret == SBX_PROFILE_E_INVALID)
		sbx_key_read_error(r, node, "%s", err.msg);
	return ret < 0 ? ret : 0;
}

/* SOURCE[:TARGET][:ro|:rw], as for --bind: "\:" is a colon in a name. */
static int read_mount_string(struct sbx_key_reader *r, const struct sbx_yaml_node *node,
			     struct sbx_mount_entry *m)
{
	const char *text = sbx_yaml_text(r->yaml, node), *why;
	SBX_AUTO_FREE char *path = malloc(strlen(text) + 1);
	struct sbx_bind_form form;
	int ret = 0;

	if (!path)
		return -ENOMEM;
	why = sbx_form_bind_split(text, &form);
	if (why) {
		sbx_key_read_error(r, node, "mount '%s': %s", text, why);
		return 0;
	}
	m->writable = strcmp(form.mode, "rw") == 0;
	if (form.target) {
		sbx_form_bind_unescape(form.target, form.n_target, path);
		ret = set_mount_field(r, node, "target", path, m);
	}
	sbx_form_bind_unescape(text, form.n_source, path);
	return ret < 0 ? ret : set_mount_field(r, node, "source", path, m);
}

int sbx_key_read_mounts(struct sbx_key_reader *r, const struct sbx_key_block *block,
			const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_profile *p = base;
	struct sbx_mount_entry *v;

	v = realloc(p->filesystem.mounts, (p->filesystem.n_mounts + node->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	p->filesystem.mounts = v;
	for (node = sbx_yaml_first(r->yaml, node); node; node = sbx_yaml_next(r->yaml, node)) {
		SBX_CLEANUP(mount_fini) struct sbx_mount_entry m = { 0 };
		size_t n_errors = r->n_errors;
		int ret = 0;

		if (!sbx_key_read_has_room(r, block, key, node, p->filesystem.n_mounts))
			return 0;
		if (node->kind == SBX_YAML_MAPPING)
			ret = sbx_key_read_block(r, &sbx_mount_keys, node, &m);
		else if (sbx_key_read_is_text(r, node))
			ret = read_mount_string(r, node, &m);
		if (ret < 0)
			return ret;
		if (r->n_errors == n_errors && !m.source)
			sbx_key_read_error(r, node,
					   "a mount is SOURCE[:TARGET][:ro|:rw] or a mapping with "
					   "source:");
		if (r->n_errors != n_errors)
			continue;
		v[p->filesystem.n_mounts++] = m;
		m = (struct sbx_mount_entry){ 0 };
	}
	return 0;
}

/* --- environment.set --- */

static struct sbx_env_entry *find_env(struct sbx_profile *p, const char *name)
{
	for (size_t i = 0; i < p->environment.n_set; i++) {
		if (strcmp(p->environment.set[i].name, name) == 0)
			return &p->environment.set[i];
	}
	return NULL;
}

/* A profile's value replaces that of the profile it extends. */
static int set_env(struct sbx_profile *p, const char *name, const char *value)
{
	struct sbx_env_entry *e = find_env(p, name);
	SBX_AUTO_FREE char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	if (!e) {
		e = &p->environment.set[p->environment.n_set];
		*e = (struct sbx_env_entry){ .name = strdup(name) };
		if (!e->name)
			return -ENOMEM;
		p->environment.n_set++;
	}
	free(e->value);
	e->value = sbx_steal_ptr(&copy);
	return 0;
}

int sbx_key_read_env(struct sbx_key_reader *r, const struct sbx_key_block *block,
		     const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_profile *p = base;
	size_t n_inherited = p->environment.n_set;
	const struct sbx_yaml_node *value;
	struct sbx_env_entry *v;

	v = realloc(p->environment.set, (n_inherited + node->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	p->environment.set = v;
	for (node = sbx_yaml_first(r->yaml, node); node; node = sbx_yaml_next(r->yaml, value)) {
		const char *name = sbx_yaml_text(r->yaml, node), *why = key->check(name);
		struct sbx_env_entry *e = find_env(p, name);

		value = sbx_yaml_next(r->yaml, node);
		if (!sbx_key_read_has_room(r, block, key, node, p->environment.n_set))
			return 0;
		if (why)
			sbx_key_read_error(r, node, "environment.set: '%s': %s", name, why);
		else if (e && e >= v + n_inherited)
			sbx_key_read_error(r, node, "environment.set: '%s' is there twice", name);
		else if (value->kind != SBX_YAML_SCALAR)
			sbx_key_read_error(r, value,
					   "environment.set: the value of '%s' must be a string",
					   name);
		else if (set_env(p, name, sbx_yaml_text(r->yaml, value)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- resolvers, proxy --- */

int sbx_key_read_resolvers(struct sbx_key_reader *r, const struct sbx_key_block *block,
			   const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_profile *p = base;

	for (node = sbx_yaml_first(r->yaml, node); node; node = sbx_yaml_next(r->yaml, node)) {
		struct sbx_err err = { 0 };
		struct sbx_endpoint e;

		if (!sbx_key_read_has_room(r, block, key, node, p->network.n_resolvers))
			return 0;
		if (!sbx_key_read_is_text(r, node)) {
			sbx_key_read_wrong_kind(r, block, key, node);
		} else if (sbx_endpoint_parse(sbx_yaml_text(r->yaml, node), &e, &err) != 0) {
			sbx_key_read_error(r, node, "network.dns.resolvers: %s", err.msg);
		} else if (!e.is_addr || e.proto_set) {
			sbx_key_read_error(r, node,
					   "network.dns.resolvers: '%s' is not ADDRESS[:PORT]",
					   sbx_yaml_text(r->yaml, node));
		} else {
			p->network.resolvers[p->network.n_resolvers++] =
				(struct sbx_resolver){ e.addr, e.port ? e.port : 53 };
		}
	}
	return 0;
}

int sbx_key_read_proxy(struct sbx_key_reader *r, const struct sbx_key_block *block,
		       const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_profile *p = base;
	const char *text = sbx_yaml_text(r->yaml, node);
	char copy[SBX_ENDPOINT_STR_MAX], addr[SBX_ADDR_STR_MAX];
	size_t n = strlen(text);
	struct sbx_endpoint e;
	char *host;

	if (strncmp(text, "http://", 7) != 0 || sbx_text_copy(copy, sizeof(copy), text + 7) < 0) {
		sbx_key_read_wrong_kind(r, block, key, node);
		return 0;
	}
	if (copy[0] && copy[n - 8] == '/')
		copy[n - 8] = '\0';
	if (strchr(copy, '@')) {
		sbx_key_read_error(r, node,
				   "network.upstream_proxy: a profile is no place for a password");
		return 0;
	}
	if (sbx_endpoint_parse(copy, &e, NULL) != 0 || e.proto_set || !e.port) {
		sbx_key_read_wrong_kind(r, block, key, node);
		return 0;
	}
	host = strdup(e.is_addr ? sbx_addr_format(&e.addr, addr, sizeof(addr)) : e.host);
	if (!host)
		return -ENOMEM;
	free(p->network.proxy_host);
	p->network.proxy_host = host;
	p->network.proxy_port = e.port;
	return 0;
}

/* --- probes --- */

static void probe_item_fini(struct sbx_probe_item *item)
{
	sbx_key_fini(&sbx_probe_item_keys, item);
}

/* Fill @probe from the one key that @item has. NULL, or the problem. */
static const char *compose_probe(const struct sbx_probe_item *item, struct sbx_probe *probe,
				 struct sbx_err *err)
{
	const struct {
		const char *text;
		enum sbx_probe_kind kind;
	} choices[] = {
		{ item->dns_refused, SBX_PROBE_DNS_REFUSED },
		{ item->dns_allowed, SBX_PROBE_DNS_ALLOWED },
		{ item->connect_refused, SBX_PROBE_CONNECT_REFUSED },
		{ item->connect_name, SBX_PROBE_CONNECT_NAME },
		{ item->path_absent, SBX_PROBE_PATH_ABSENT },
		{ item->path_readonly, SBX_PROBE_PATH_READONLY },
	};
	const char *text = NULL;
	struct sbx_endpoint e;

	for (size_t i = 0; i < SBX_N_ELEMENTS(choices); i++) {
		if (!choices[i].text)
			continue;
		if (text)
			return "a probe is one of its kinds, not two";
		text = choices[i].text;
		probe->kind = (uint8_t)choices[i].kind;
	}
	if (!text)
		return "a probe is a mapping such as {dns_refused: example.org}";
	if (item->expect && probe->kind != SBX_PROBE_CONNECT_NAME)
		return "expect belongs to connect_name";
	if (item->expect && sbx_text_copy(probe->expect, sizeof(probe->expect), item->expect) < 0)
		return "expect is too long";
	if (probe->kind == SBX_PROBE_PATH_ABSENT || probe->kind == SBX_PROBE_PATH_READONLY)
		return sbx_text_copy(probe->name, sizeof(probe->name), text) == 0 ?
			       NULL :
			       "the path is too long";
	if (sbx_endpoint_parse(text, &e, err) != 0)
		return err->msg;
	probe->addr = e.addr;
	probe->port = e.port;
	probe->proto = (uint8_t)e.proto;
	sbx_text_fit(probe->name, sizeof(probe->name), "%s", e.host);
	if (probe->kind == SBX_PROBE_CONNECT_REFUSED)
		return e.is_addr && e.port ? NULL : "connect_refused takes ADDRESS:PORT[/tcp|/udp]";
	if (probe->kind == SBX_PROBE_CONNECT_NAME)
		return !e.is_addr && e.port && !e.proto_set ? NULL : "connect_name takes NAME:PORT";
	return e.is_addr || e.port || e.proto_set ? "only a name, without port" : NULL;
}

int sbx_key_read_probes(struct sbx_key_reader *r, const struct sbx_key_block *block,
			const struct sbx_key *key, const struct sbx_yaml_node *node, void *base)
{
	struct sbx_profile *p = base;
	struct sbx_probe *v = realloc(p->probes, (p->n_probes + node->n + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	p->probes = v;
	for (node = sbx_yaml_first(r->yaml, node); node; node = sbx_yaml_next(r->yaml, node)) {
		SBX_CLEANUP(probe_item_fini) struct sbx_probe_item item = { 0 };
		struct sbx_probe probe = { 0 };
		struct sbx_err err = { 0 };
		size_t n_errors = r->n_errors;
		const char *why;

		if (!sbx_key_read_has_room(r, block, key, node, p->n_probes))
			return 0;
		if (sbx_key_read_block(r, &sbx_probe_item_keys, node, &item) < 0)
			return -ENOMEM;
		if (r->n_errors != n_errors)
			continue;
		why = compose_probe(&item, &probe, &err);
		if (why)
			sbx_key_read_error(r, node, "selftest: %s", why);
		else
			v[p->n_probes++] = probe;
	}
	return 0;
}
