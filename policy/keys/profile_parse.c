/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Profiles: the text of a profile and of those that it extends becomes one struct. The chain is
 * read from the outermost ancestor down into the same struct, so a later file's scalars replace
 * earlier ones and its lists are appended; nothing is merged afterwards. Reading never acts: the
 * caller's loader gets the texts.
 */

#include "policy/keys/profile_parse.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/forms/units.h"
#include "policy/forms/yaml_tree.h"
#include "policy/keys/key.h"
#include "policy/keys/key_print.h"
#include "policy/keys/key_read.h"
#include "policy/keys/key_scalar.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/secret.h"

#define EXTENDS_MAX 8

struct sbx_profile *sbx_profile_free(struct sbx_profile *p)
{
	if (!p)
		return NULL;
	free(p->name);
	free(p->description);
	for (size_t i = 0; i < p->filesystem.n_mounts; i++) {
		free(p->filesystem.mounts[i].source);
		free(p->filesystem.mounts[i].target);
	}
	free(p->filesystem.mounts);
	sbx_str_list_fini(&p->filesystem.allowed_prefixes);
	sbx_str_list_fini(&p->filesystem.blocked_segments);
	sbx_str_list_fini(&p->filesystem.unmask);
	sbx_str_list_fini(&p->filesystem.protected_paths);
	sbx_str_list_fini(&p->filesystem.tmpfs);
	sbx_str_list_fini(&p->filesystem.devices);
	free(p->filesystem.root);
	free(p->filesystem.home);
	sbx_str_list_fini(&p->filesystem.home_read);
	sbx_str_list_fini(&p->commands.allow);
	sbx_str_list_fini(&p->commands.deny);
	sbx_net_list_fini(&p->network.allow);
	sbx_net_list_fini(&p->network.deny);
	free(p->network.proxy_host);
	free(p->network.extra_ca);
	for (size_t i = 0; i < p->n_secrets; i++)
		sbx_secret_fini(&p->secrets[i]);
	free(p->secrets);
	sbx_str_list_fini(&p->network.loopback_ports);
	sbx_str_list_fini(&p->network.publish);
	sbx_str_list_fini(&p->seccomp.allow);
	sbx_str_list_fini(&p->environment.pass);
	for (size_t i = 0; i < p->environment.n_set; i++) {
		free(p->environment.set[i].name);
		free(p->environment.set[i].value);
	}
	free(p->environment.set);
	free(p->probes);
	sbx_str_list_fini(&p->review.hook);
	free(p);
	return NULL;
}
SBX_DEFINE_CLEANUP(struct sbx_profile, sbx_profile_free);
SBX_DEFINE_CLEANUP(struct sbx_yaml, sbx_yaml_free);

/* One file of the chain. */
struct source {
	char file[SBX_ERR_FILE_MAX];
	struct sbx_yaml *yaml;
};

struct chain {
	struct source
		v[EXTENDS_MAX + 1]; /* the profile itself first, its outermost ancestor last */
	size_t n;
	struct sbx_err_list *errs;
	bool invalid;
};

static void chain_fini(struct chain *c)
{
	for (size_t i = 0; i < c->n; i++)
		sbx_yaml_free(c->v[i].yaml);
}

static int chain_add(struct chain *c, struct sbx_span text, const char *file)
{
	struct source *s = &c->v[c->n];
	int r;

	assert(c->n < SBX_N_ELEMENTS(c->v));
	sbx_text_cut(s->file, sizeof(s->file), "%s", file);
	r = sbx_yaml_parse(text, s->file, c->errs, &s->yaml);
	if (r == 0)
		c->n++;
	return r == SBX_YAML_E_INVALID ? SBX_PROFILE_E_INVALID : r;
}

/* The node of the value of `extends` in the last file, or NULL. */
static const struct sbx_yaml_node *extends_of(const struct source *s)
{
	const struct sbx_yaml_node *n = sbx_yaml_root(s->yaml);

	if (!n || n->kind != SBX_YAML_MAPPING)
		return NULL;
	for (n = sbx_yaml_first(s->yaml, n); n;) {
		const struct sbx_yaml_node *value = sbx_yaml_next(s->yaml, n);

		if (strcmp(sbx_yaml_text(s->yaml, n), "extends") == 0)
			return value;
		n = sbx_yaml_next(s->yaml, value);
	}
	return NULL;
}

/* Follow one `extends`. 0 with c->n grown. */
static int chain_extend(struct chain *c, const struct sbx_yaml_node *node, sbx_profile_loader load,
			void *userdata)
{
	const struct source *s = &c->v[c->n - 1];
	const struct sbx_key *key = sbx_key_find(&sbx_profile_keys, "extends");
	const char *name = sbx_yaml_text(s->yaml, node), *why = NULL;
	SBX_AUTO_FREE char *text = NULL;
	char file[SBX_ERR_FILE_MAX] = "";
	size_t n_text = 0;

	if (node->kind != SBX_YAML_SCALAR || key->check(name))
		why = "extends must be the name of a profile";
	else if (c->n > EXTENDS_MAX)
		why = "extends goes on for more than 8 profiles";
	if (!why) {
		text = load ? load(userdata, name, &n_text, file, sizeof(file)) : NULL;
		file[sizeof(file) - 1] = '\0';
		if (!text)
			why = "there is no such profile, or it cannot be used; sbx-run "
			      "--list-profiles lists them";
	}
	for (size_t i = 0; !why && i < c->n; i++) {
		if (strcmp(c->v[i].file, file) == 0)
			why = "a profile extends itself";
	}
	if (why) {
		sbx_err_list_add(c->errs, s->file, node->line, node->column, "extends: '%s': %s",
				 name, why);
		return SBX_PROFILE_E_INVALID;
	}
	return chain_add(c, sbx_span(text, n_text), file);
}

/* Read one file into @p. A name and a description are a file's own and not handed down. */
static int read_source(struct chain *c, const struct source *s, struct sbx_profile *p)
{
	struct sbx_key_reader r = { .yaml = s->yaml, .file = s->file, .errs = c->errs };
	const struct sbx_yaml_node *root = sbx_yaml_root(s->yaml);
	int ret;

	free(p->name);
	free(p->description);
	p->name = p->description = NULL;
	if (!root) {
		sbx_err_list_add(c->errs, s->file, 1, 1,
				 "the file is empty; `{}` is a profile with nothing but defaults");
		c->invalid = true;
		return 0;
	}
	ret = sbx_key_read_block(&r, &sbx_profile_keys, root, p);
	if (r.n_errors > 0)
		c->invalid = true;
	return ret;
}

/* "profiles/notebook.yaml" is called notebook. */
static int default_name(struct sbx_profile *p, const char *file)
{
	const char *base = strrchr(file, '/');
	size_t n;

	if (p->name)
		return 0;
	base = base ? base + 1 : file;
	n = strlen(base);
	if (n > 5 && strcmp(base + n - 5, ".yaml") == 0)
		n -= 5;
	else if (n > 4 && strcmp(base + n - 4, ".yml") == 0)
		n -= 4;
	p->name = strndup(base, n);
	if (!p->name)
		return -ENOMEM;
	/* A file may have any name, but the name is printed in columns and paths. */
	if (sbx_key_find(&sbx_profile_keys, "name")->check(p->name)) {
		free(p->name);
		p->name = strdup("unnamed");
	}
	return p->name ? 0 : -ENOMEM;
}

int sbx_profile_parse(struct sbx_span yaml, const char *file, sbx_profile_loader load,
		      void *userdata, struct sbx_err_list *errs, struct sbx_profile **ret_profile)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = calloc(1, sizeof(*p));
	SBX_CLEANUP(chain_fini) struct chain c = { .errs = errs };
	const struct sbx_yaml_node *extends;
	int r;

	if (!p)
		return -ENOMEM;
	p->network.mode = SBX_MODE_FETCH;
	p->filesystem.new_protected = SBX_NEW_PROTECTED_CHECK;
	p->network.deny.deny = true;
	r = chain_add(&c, yaml, file);
	while (r == 0 && (extends = extends_of(&c.v[c.n - 1])))
		r = chain_extend(&c, extends, load, userdata);
	if (r < 0)
		return r;
	/* A broken chain: report the mistakes in its files too. */
	if (r == SBX_PROFILE_E_INVALID)
		c.invalid = true;
	for (size_t i = c.n; i-- > 0;) {
		r = read_source(&c, &c.v[i], p);
		if (r < 0)
			return r;
	}
	if (c.invalid)
		return SBX_PROFILE_E_INVALID;
	if (default_name(p, file) < 0)
		return -ENOMEM;
	*ret_profile = sbx_steal_ptr(&p);
	return 0;
}

char *sbx_profile_print(const struct sbx_profile *p)
{
	return sbx_key_print(&sbx_profile_keys, p);
}

int sbx_net_list_add_pattern(struct sbx_net_list *list, const char *pattern, const char *what,
			     struct sbx_err *err)
{
	struct sbx_err why = { 0 };
	struct sbx_net_entry e = { 0 };
	int r = sbx_net_entry_parse(pattern, SBX_PATTERN_ANY, list->deny, &e, &why);

	if (r == SBX_PROFILE_E_INVALID)
		sbx_err_set(err, "%s %s", what, why.msg);
	if (r == 0) {
		e.file = strdup(what);
		r = e.file ? sbx_net_list_append(list, &e) : -ENOMEM;
	}
	sbx_net_entry_fini(&e);
	return r;
}

int sbx_profile_add_secret_flag(struct sbx_profile *p, const char *text, struct sbx_err *err)
{
	struct sbx_err why = { 0 };
	struct sbx_secret s = { 0 };
	int r = sbx_secret_parse(text, &s, &why);

	if (r == 0)
		r = sbx_profile_add_secret(p, &s, &why);
	if (r == SBX_PROFILE_E_INVALID)
		sbx_err_set(err, "--secret %s", why.msg);
	sbx_secret_fini(&s);
	return r;
}

/* --- limits --- */

int sbx_limit_set(struct sbx_limit_values *limits, const char *key_value, struct sbx_err *err)
{
	const char *equals = strchr(key_value, '=');
	const struct sbx_key *key = NULL;
	char name[32];

	if (equals && (size_t)(equals - key_value) < sizeof(name)) {
		snprintf(name, sizeof(name), "%.*s", (int)(equals - key_value), key_value);
		key = sbx_key_find(&sbx_limits_keys, name);
	}
	if (!key) {
		sbx_err_set(
			err,
			"'%s': write KEY=VALUE with one of memory, cpus, io_weight, pids, disk, "
			"tmp, home, open_files, wall_time, enforce",
			key_value);
		return SBX_PROFILE_E_INVALID;
	}
	return sbx_key_set(&sbx_limits_keys, key, equals + 1, limits, err);
}

int sbx_limits_check(const struct sbx_limit_values *ask, const struct sbx_limit_values *ceilings,
		     struct sbx_err *err)
{
	for (size_t i = 0; i < sbx_limits_keys.n_keys; i++) {
		const struct sbx_key *key = &sbx_limits_keys.keys[i];
		char asked[SBX_UNIT_STR_MAX], most[SBX_UNIT_STR_MAX];
		uint64_t a = sbx_key_number(key, ask), c = sbx_key_number(key, ceilings);

		if (c == 0 || a <= c)
			continue;
		sbx_err_set(err,
			    "limits.%s: %s is above this host's ceiling of %s (ceilings.%s of the "
			    "system policy)",
			    key->name, sbx_key_get(key, ask, asked, sizeof(asked)),
			    sbx_key_get(key, ceilings, most, sizeof(most)), key->name);
		return SBX_PROFILE_E_INVALID;
	}
	return 0;
}
