/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The system policy: the host owner's rules, which hold over every profile and flag. The shipped
 * lists hold without a file, and beside the file's own lists unless it says `shipped: drop`. The
 * built-in floors always hold (compiling a policy adds them).
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/forms/yaml_tree.h"
#include "policy/keys/key.h"
#include "policy/keys/key_read.h"
#include "policy/keys/profile_parse.h"
#include "policy/lists/protected_path.h"
#include "policy/lists/shipped.h"
#include "policy/profile/net_entry.h"

struct sbx_system_policy *sbx_system_policy_free(struct sbx_system_policy *s)
{
	if (!s)
		return NULL;
	sbx_str_list_fini(&s->allowed_prefixes);
	sbx_str_list_fini(&s->devices);
	sbx_str_list_fini(&s->blocked_segments);
	sbx_str_list_fini(&s->protected_paths);
	sbx_str_list_fini(&s->unprotected_paths);
	sbx_str_list_fini(&s->commands_deny);
	sbx_str_list_fini(&s->seccomp_allow);
	sbx_net_list_fini(&s->floors);
	sbx_net_list_fini(&s->admit);
	free(s->uid_pool);
	free(s);
	return NULL;
}
SBX_DEFINE_CLEANUP(struct sbx_system_policy, sbx_system_policy_free);
SBX_DEFINE_CLEANUP(struct sbx_yaml, sbx_yaml_free);

static struct sbx_system_policy *system_new(void)
{
	struct sbx_system_policy *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->floors.deny = s->admit.deny = true; /* check_admit() refuses what admit may not have */
	s->new_protected = SBX_NEW_PROTECTED_KEEP;
	return s;
}

static bool has(const struct sbx_str_list *list, const char *name)
{
	for (size_t i = 0; list && i < list->n; i++)
		if (strcmp(list->v[i], name) == 0)
			return true;
	return false;
}

/* All of @names but those on @except (NULL: none). */
static int append(struct sbx_str_list *list, const char *const *names,
		  const struct sbx_str_list *except)
{
	int r = 0;

	for (size_t i = 0; names[i] && r == 0; i++)
		if (!has(except, names[i]))
			r = sbx_str_list_add(list, names[i]);
	return r;
}

static int append_protected(struct sbx_system_policy *s)
{
	int r = 0;

	for (size_t i = 0; i < sbx_n_protected_rows && r == 0; i++)
		r = append(&s->protected_paths, sbx_protected_rows[i].paths, &s->unprotected_paths);
	return r;
}

static int append_shipped(struct sbx_system_policy *s)
{
	s->n_own_commands_deny = s->commands_deny.n;
	s->n_own_blocked_segments = s->blocked_segments.n;
	s->n_own_protected_paths = s->protected_paths.n;
	if (!s->devices.v && append(&s->devices, sbx_shipped_devices, NULL) < 0)
		return -ENOMEM;
	if (!s->seccomp_allow.v && append(&s->seccomp_allow, sbx_shipped_seccomp_allow, NULL) < 0)
		return -ENOMEM;
	if (s->drop_shipped)
		return 0;
	if (append(&s->blocked_segments, sbx_shipped_blocked_segments, NULL) < 0 ||
	    append_protected(s) < 0)
		return -ENOMEM;
	return append(&s->commands_deny, sbx_shipped_commands_deny, NULL);
}

struct sbx_system_policy *sbx_system_policy_default(void)
{
	SBX_CLEANUP(sbx_system_policy_freep) struct sbx_system_policy *s = system_new();

	if (!s || append_shipped(s) < 0)
		return NULL;
	return sbx_steal_ptr(&s);
}

/* Is it a port of this host's loopback? Only an upstream proxy may be there. */
static bool is_loopback_port(const struct sbx_net_entry *e)
{
	static const struct sbx_cidr loopback4 = { { 4, { 127 } }, 8 },
				     loopback6 = { { 6, { [15] = 1 } }, 128 };

	return e->n_ports > 0 && (sbx_cidr_contains(&loopback4, &e->cidr.addr) ||
				  sbx_cidr_contains(&loopback6, &e->cidr.addr));
}

/* Refuses names: `admit` lifts an address class for addresses, and a name's owner could choose any
 * address for it. */
static void check_admit(struct sbx_key_reader *r, const struct sbx_net_list *admit)
{
	for (size_t i = 0; i < admit->n; i++) {
		const struct sbx_net_entry *e = &admit->v[i];
		struct sbx_err err = { 0 };

		if (!e->is_cidr)
			sbx_err_set(&err, "'%s': only addresses and networks", e->text);
		else if (is_loopback_port(e) ||
			 sbx_net_entry_check_reachable(e->text, e, &err) == 0)
			continue;
		sbx_err_list_add(r->errs, r->file, e->line, e->column, "admit: %s", err.msg);
		r->n_errors++;
	}
}

int sbx_system_policy_parse(struct sbx_span yaml, const char *file, struct sbx_err_list *errs,
			    struct sbx_system_policy **ret_system)
{
	SBX_CLEANUP(sbx_system_policy_freep) struct sbx_system_policy *s = system_new();
	SBX_CLEANUP(sbx_yaml_freep) struct sbx_yaml *tree = NULL;
	struct sbx_key_reader r = { .file = file, .errs = errs };
	const struct sbx_yaml_node *root;
	int ret;

	if (!s)
		return -ENOMEM;
	ret = sbx_yaml_parse(yaml, file, errs, &tree);
	if (ret != 0)
		return ret == SBX_YAML_E_INVALID ? SBX_PROFILE_E_INVALID : ret;
	r.yaml = tree;
	root = sbx_yaml_root(tree);
	/* An empty file, or one of nothing but comments, adds nothing to the shipped lists. */
	if (root && sbx_key_read_block(&r, &sbx_system_keys, root, s) < 0)
		return -ENOMEM;
	check_admit(&r, &s->admit);
	if (r.n_errors > 0)
		return SBX_PROFILE_E_INVALID;
	if (append_shipped(s) < 0)
		return -ENOMEM;
	*ret_system = sbx_steal_ptr(&s);
	return 0;
}
