/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The plan as JSON: the output of --dry-run and the beginning of a receipt. Keys keep the order in
 * which this file writes them and lists the order of the plan, so the same plan gives the same
 * text.
 *
 * The values of variables that come from the caller or from --env are left out, here and in bwrap's
 * arguments: they may be secrets. Ports that the kernel has not chosen yet are shown as fixed
 * examples.
 */
#include "launcher/setup/plan_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/attach/attach_input.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/plan/plan_limits.h"
#include "launcher/plan/step.h"
#include "launcher/rootfs/overlay.h"
#include "launcher/rootfs/view_home.h"
#include "launcher/secrets/secret_value.h"
#include "launcher/setup/bwrap_argv.h"
#include "launcher/view/etc.h"
#include "policy/lists/shipped.h"
#include "policy/profile/net_entry.h"
#include "sys/seccomp/seccomp.h"

#define HIDDEN	     "<hidden>"
#define EXAMPLE_TCP4 40004
#define EXAMPLE_TCP6 40006
#define EXAMPLE_UDP4 50004
#define EXAMPLE_UDP6 50006

/* JSON must be UTF-8 and a path need not be: other bytes are shown as \xNN. */
static json_t *text(const char *s)
{
	json_t *j = s ? json_string(s) : json_null();
	size_t n = s ? 4 * strlen(s) + 1 : 0;
	SBX_AUTO_FREE char *escaped = j ? NULL : malloc(n);

	if (j || !escaped)
		return j;
	return json_string(sbx_escape(s, strlen(s), escaped, n));
}

/* A path that can be read back. A path with a backslash, or with bytes that are not UTF-8, is
 * escaped as a whole: then every backslash in the text begins a \xNN. */
static json_t *path(const char *s)
{
	size_t n = s ? strlen(s) : 0, unit = 1;
	SBX_AUTO_FREE char *escaped = NULL;

	for (size_t i = 0; i < n && unit > 0; i += unit)
		unit = s[i] == '\\' ? 0 : sbx_text_unit(s + i, n - i);
	if (!s || unit > 0)
		return s ? json_string(s) : json_null();
	escaped = malloc(4 * n + 1);
	return escaped ? json_string(sbx_escape(s, n, escaped, 4 * n + 1)) : NULL;
}

static json_t *text_list(char *const *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, text(v[i]));
	return list;
}

static json_t *str_list(const struct sbx_str_list *l)
{
	return text_list(l->v, l->n);
}

static size_t count(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

/* --- user and mounts --- */

static json_t *user(const struct sbx_facts *f)
{
	return json_pack("{s:i, s:i, s:o, s:o, s:o, s:b, s:b, s:i, s:i}", "uid", (int)f->uid, "gid",
			 (int)f->gid, "name", text(f->user_name), "home", text(f->home), "shell",
			 text(f->shell), "throwaway", f->throwaway_user, "privileged",
			 f->privileged, "broker_uid", (int)f->broker_uid, "broker_gid",
			 (int)f->broker_gid);
}

static json_t *etc_entries(const struct sbx_plan *p)
{
	char **names;
	json_t *list;
	size_t n;

	if (sbx_etc_names(p->view.host_etc_fd, &names, &n) < 0)
		return json_array();
	list = text_list(names, n);
	sbx_etc_names_free(names, n);
	return list;
}

static json_t *mount_op(const struct sbx_plan *p, const struct sbx_mount_op *op)
{
	static const char *const fills[] = { "text", "trust store", "java trust store" };
	json_t *o = json_pack("{s:s, s:o, s:s}", "kind", sbx_mount_op_kind_str(op->kind), "dest",
			      path(op->dest), "origin", sbx_mount_origin_str(op->origin));
	char mode[8];

	_Static_assert(SBX_N_ELEMENTS(fills) == SBX_N_FILLS, "every fill has its name");
	if (op->noexec)
		json_object_set_new(o, "noexec", json_true());
	switch (op->kind) {
	case SBX_MOUNT_BIND:
	case SBX_MOUNT_MERGE:
	case SBX_MOUNT_OVERLAY:
		json_object_set_new(o, "source", path(op->source.resolved));
		json_object_set_new(o, "writable", json_boolean(op->writable));
		if (op->idmap)
			json_object_set_new(o, "idmap", json_pack("{s:i, s:i}", "uid",
								  (int)op->source.st.st_uid, "gid",
								  (int)op->source.st.st_gid));
		break;
	case SBX_MOUNT_DEVICE:
		json_object_set_new(o, "source", text(op->source.resolved));
		break;
	case SBX_MOUNT_ETC:
		json_object_set_new(o, "from_host", etc_entries(p));
		break;
	case SBX_MOUNT_TMPFS:
		json_object_set_new(o, "size_bytes", json_integer((json_int_t)op->size_bytes));
		/* fallthrough */
	case SBX_MOUNT_DIR:
	case SBX_MOUNT_SCRATCH:
		snprintf(mode, sizeof(mode), "%04o", (unsigned)op->mode & 07777);
		json_object_set_new(o, "mode", json_string(mode));
		break;
	case SBX_MOUNT_SYMLINK:
		json_object_set_new(o, "target", path(op->text));
		break;
	case SBX_MOUNT_FILE:
		if (op->fill)
			json_object_set_new(o, "holds", json_string(fills[op->fill % SBX_N_FILLS]));
		else
			json_object_set_new(o, "text", text(op->text));
		break;
	case SBX_MOUNT_MASK:
		json_object_set_new(o, "as", json_string(S_ISDIR(op->mode)  ? "directory" :
							 S_ISSOCK(op->mode) ? "socket" : "file"));
		break;
	case SBX_MOUNT_SELF_BIND:
		json_object_set_new(o, "writable", json_boolean(op->writable));
		break;
	default:
		break;
	}
	return o;
}

static json_t *mounts(const struct sbx_plan *p, const struct sbx_setup *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->view.n_mounts; i++) {
		const struct sbx_mount_op op = sbx_setup_mount(s, &p->view.mounts[i]);

		json_array_append_new(list, mount_op(p, &op));
	}
	return list;
}

static const char *root_of(const struct sbx_plan *p)
{
	static const char *const kinds[] = { "host", "minimal" };

	return p->view.root.kind == SBX_ROOT_DIR ? p->view.root.dir.resolved :
						   kinds[p->view.root.kind];
}

/* Null where no mount needs it. */
static json_t *scratch(const struct sbx_plan *p)
{
	return p->view.scratch_bytes ?
		       json_pack("{s:I, s:I}", "size_bytes", (json_int_t)p->view.scratch_bytes,
				 "files", (json_int_t)sbx_scratch_inodes(p->view.scratch_bytes)) :
		       json_null();
}

/* --- environment --- */

static bool may_show(const struct sbx_plan *p, size_t i)
{
	return p->env.origin[i] == SBX_ENV_SBX || p->env.origin[i] == SBX_ENV_PROFILE;
}

static json_t *environment(const struct sbx_plan *p)
{
	static const char *const origins[] = { "sbx", "profile", "passed", "flag", "secret" };
	json_t *list = json_array();

	_Static_assert(SBX_N_ELEMENTS(origins) == SBX_N_ENV_ORIGINS, "every origin has its name");
	for (size_t i = 0; i < p->env.n; i++) {
		size_t n = strcspn(p->env.v[i], "=");
		SBX_AUTO_FREE char *name = strndup(p->env.v[i], n);
		json_t *o = json_pack("{s:o, s:s}", "name", text(name), "origin",
				      origins[p->env.origin[i] % SBX_N_ENV_ORIGINS]);

		if (may_show(p, i))
			json_object_set_new(o, "value", text(p->env.v[i] + n + 1));
		json_array_append_new(list, o);
	}
	return list;
}

/* --- bwrap --- */

static bool is_secret_value(const struct sbx_plan *p, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < p->env.n; i++)
		if (strncmp(p->env.v[i], name, n) == 0 && p->env.v[i][n] == '=')
			return !may_show(p, i);
	return true;
}

static json_t *bwrap_args(const struct sbx_plan *p, const char *args, size_t n)
{
	enum { WORD, NAME, SHOWN, SECRET } next = WORD;
	json_t *list = json_array();

	for (const char *s = args; s < args + n; s += strlen(s) + 1) {
		json_array_append_new(list, next == SECRET ? json_string(HIDDEN) : text(s));
		if (next == NAME)
			next = is_secret_value(p, s) ? SECRET : SHOWN;
		else
			next = next == WORD && strcmp(s, "--setenv") == 0 ? NAME : WORD;
	}
	return list;
}

static json_t *bwrap(const struct sbx_plan *p, const struct sbx_setup *s)
{
	SBX_AUTO_FREE char **argv = sbx_bwrap_argv(p->options->argv, p->options->wait_all);
	SBX_AUTO_FREE char *args = NULL;
	json_t *fds;
	size_t n;

	if (!argv || sbx_bwrap_args(p, s, &args, &n) < 0)
		return NULL;
	fds = json_array();
	for (int i = 0; i < SBX_N_BWRAP_FDS; i++)
		json_array_append_new(fds, json_pack("{s:i, s:s}", "number",
						     i + SBX_BWRAP_CTL_NUMBER, "kind",
						     sbx_bwrap_fd_str(i + SBX_BWRAP_CTL_NUMBER)));
	return json_pack("{s:o, s:o, s:o, s:o}", "program", text(p->facts->bwrap), "argv",
			 text_list(argv, count(argv)), "args", bwrap_args(p, args, n), "fds", fds);
}

/* --- network --- */

static json_t *net_list(const struct sbx_net_list *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(list, text(l->v[i].text));
	return list;
}

static json_t *resolvers(const struct sbx_plan *p)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->n_resolvers; i++) {
		char addr[SBX_ADDR_STR_MAX];

		json_array_append_new(
			list, json_pack("{s:s, s:i}", "address",
					sbx_addr_format(&p->resolvers[i].addr, addr, sizeof(addr)),
					"port", (int)p->resolvers[i].port));
	}
	return list;
}

static json_t *published(const struct sbx_plan *p, const struct sbx_setup *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->n_publish; i++) {
		char addr[SBX_ADDR_STR_MAX];

		json_array_append_new(
			list,
			json_pack("{s:s, s:i, s:i}", "address",
				  sbx_addr_format(&s->publish[i].addr, addr, sizeof(addr)), "port",
				  (int)s->publish[i].port, "inside", (int)s->publish[i].inside));
	}
	return list;
}

/* --- terminated hosts and secrets --- */

/* Does the secret go to a host of @e? */
static bool goes_to(const struct sbx_secret *s, const struct sbx_net_entry *e)
{
	for (size_t i = 0; i < s->hosts.n; i++)
		if (sbx_net_entry_covers(&s->hosts.v[i], e) ||
		    sbx_net_entry_covers(e, &s->hosts.v[i]))
			return true;
	return false;
}

static json_t *reasons(const struct sbx_plan *p, const struct sbx_net_entry *e)
{
	const struct {
		const char *name;
		bool is;
	} rows[] = {
		{ "access", e->access != SBX_ACCESS_ANY },
		{ "headers", e->headers.n > 0 },
		{ "inspect", e->inspect },
		{ "websocket", e->websocket },
		{ "max_request_bytes", e->max_request_bytes > 0 },
		{ "mtls", e->cert || e->key },
	};
	json_t *list = json_array();

	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++)
		if (rows[i].is)
			json_array_append_new(list, json_string(rows[i].name));
	for (size_t i = 0; i < p->profile->n_secrets; i++)
		if (goes_to(&p->profile->secrets[i], e))
			json_array_append_new(
				list, json_sprintf("secret %s", p->profile->secrets[i].name));
	return list;
}

/* The requests that the entry admits, as a profile says it. */
static json_t *access_of(const struct sbx_net_entry *e)
{
	if (e->access == SBX_ACCESS_LISTED)
		return json_pack("{s:o, s:o}", "methods", str_list(&e->methods), "paths",
				 str_list(&e->paths));
	return json_string(e->access == SBX_ACCESS_READ_ONLY ? "read-only" : "any");
}

static json_t *terminated(const struct sbx_plan *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->tls.n_entries; i++) {
		const struct sbx_net_entry *e = p->tls.entries[i];

		json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "host", text(e->text),
						      "why", reasons(p, e), "access",
						      access_of(e)));
	}
	return list;
}

/* The names and sources, never a value. */
static json_t *secrets(const struct sbx_plan *p)
{
	static const char *const injects[] = { "placeholder", "header", "aws-sigv4" };
	json_t *list = json_array();

	_Static_assert(SBX_N_ELEMENTS(injects) == SBX_N_SECRET_INJECTS, "every way has its name");
	for (size_t i = 0; i < p->profile->n_secrets; i++) {
		const struct sbx_secret *s = &p->profile->secrets[i];
		char from[4096];

		sbx_secret_source(s, from, sizeof(from));
		json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:s}", "name", text(s->name),
						      "from", text(from), "hosts",
						      net_list(&s->hosts), "inject",
						      injects[s->inject % SBX_N_SECRET_INJECTS]));
	}
	return list;
}

static json_t *network(const struct sbx_plan *p, const struct sbx_setup *s)
{
	const struct sbx_profile *profile = p->profile;
	json_t *o = json_pack("{s:s, s:s, s:s, s:b, s:b, s:b, s:o, s:o, s:o}", "attach",
			      p->attach.on ? "cgroup" : "netns", "mode",
			      sbx_mode_str(profile->network.mode), "default",
			      sbx_action_str(profile->network.default_action), "air_gap",
			      p->air_gap, "carries", p->carries, "dns_real", p->dns_real,
			      "resolvers", resolvers(p), "publish", published(p, s),
			      "terminated", terminated(p));

	if (profile->network.proxy_host)
		json_object_set_new(o, "upstream_proxy",
				    json_pack("{s:o, s:i}", "host",
					      text(profile->network.proxy_host), "port",
					      (int)profile->network.proxy_port));
	return o;
}

/* The floors of every policy, and those of the system policy. */
static json_t *floors(const struct sbx_plan *p)
{
	json_t *list = json_array(), *own = net_list(&p->system->floors);

	for (size_t i = 0; sbx_shipped_floors[i]; i++)
		json_array_append_new(list, text(sbx_shipped_floors[i]));
	json_array_extend(list, own);
	json_decref(own);
	return list;
}

static json_t *policy(const struct sbx_plan *p)
{
	char hash[65];

	sbx_policy_hash(p->policy, hash);
	return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "hash", hash, "generation",
			 (json_int_t)sbx_policy_generation(p->policy), "floors", floors(p), "admit",
			 net_list(&p->system->admit), "deny", net_list(&p->profile->network.deny),
			 "allow", net_list(&p->profile->network.allow));
}

/* With the planned cgroup and the stub; level and group equal those of a real run only by
 * chance. */
static char *attach_text(const struct sbx_plan *p, const struct sbx_setup *setup)
{
	const struct sbx_facts *f = p->facts;
	char path[SBX_CGROUP_PATH_MAX + 64];
	struct sbx_nft_ruleset *rs = NULL;
	struct sbx_attach_input in;
	char *s;

	sbx_attach_input_of(p->id, &p->attach.lists, &setup->stub, &in);
	sbx_text_fit(path, sizeof(path), "%s/sbx-%s/command", f->cgroup_place.path, p->id);
	if (f->cgroup_place.path[0] && strncmp(path, "/sys/fs/cgroup/", 15) == 0) {
		in.level = sbx_attach_level(f->cgroup.mount, path);
		in.cgroup_path = path + 15;
	}
	if (sbx_attach_ruleset_new(&in, &rs) < 0)
		return NULL;
	s = sbx_nft_ruleset_text(rs);
	sbx_nft_ruleset_free(rs);
	return s;
}

/* The ruleset with the ports that are known, or with examples of them. */
static char *ruleset_text(const struct sbx_plan *p, const struct sbx_setup *setup)
{
	struct sbx_nft_input in = setup->nft;
	struct sbx_nft_ruleset *rs = NULL;
	char *s;

	if (p->attach.on)
		return attach_text(p, setup);
	if (p->may_carry && !in.tcp_port4 && !in.tcp_port6) {
		in.tcp_port4 = EXAMPLE_TCP4;
		in.tcp_port6 = EXAMPLE_TCP6;
		in.udp_port4 = in.udp ? EXAMPLE_UDP4 : 0;
		in.udp_port6 = in.udp ? EXAMPLE_UDP6 : 0;
	}
	if (sbx_nft_ruleset_new(&in, &rs) < 0)
		return NULL;
	s = sbx_nft_ruleset_text(rs);
	sbx_nft_ruleset_free(rs);
	return s;
}

static json_t *nft(const struct sbx_plan *p, const struct sbx_setup *setup)
{
	SBX_AUTO_FREE char *s = ruleset_text(p, setup);

	return text(s);
}

/* --- limits --- */

static json_t *limit(uint64_t asked, uint64_t ceiling, const char *enforced_by)
{
	return json_pack("{s:o, s:o, s:s}", "asked",
			 asked ? json_integer((json_int_t)asked) : json_null(), "ceiling",
			 ceiling ? json_integer((json_int_t)ceiling) : json_null(), "enforced_by",
			 asked ? enforced_by : "nothing");
}

static json_t *limits(const struct sbx_plan *p)
{
	const struct sbx_limit_values *a = &p->profile->limits, *c = &p->system->ceilings;
	uint32_t held = sbx_limits_held(p->facts, a);
	enum sbx_mount_origin origin;
	json_t *o = json_object();

	json_object_set_new(o, "enforce", json_string(a->strict ? "strict" : "best-effort"));
	json_object_set_new(o, "memory_bytes",
			    limit(a->memory_bytes, c->memory_bytes,
				  sbx_limits_enforced_by(held, SBX_CGROUP_MEMORY)));
	json_object_set_new(o, "cpus_milli", limit(a->cpus_milli, c->cpus_milli,
						   sbx_limits_enforced_by(held, SBX_CGROUP_CPU)));
	json_object_set_new(o, "io_weight", limit(a->io_weight, c->io_weight,
						  sbx_limits_enforced_by(held, SBX_CGROUP_IO)));
	json_object_set_new(o, "pids", limit(a->pids, c->pids,
					     sbx_limits_enforced_by(held, SBX_CGROUP_PIDS)));
	json_object_set_new(o, "disk_bytes", limit(a->disk_bytes, c->disk_bytes, "tmpfs size"));
	if (c->disk_bytes) /* a ceiling on what is shared by all holds by itself */
		json_object_set_new(json_object_get(o, "disk_bytes"), "enforced_by",
				    json_string("tmpfs size"));
	json_object_set_new(o, "tmp_bytes", limit(a->tmp_bytes, c->tmp_bytes,
					     p->view.tmp_shared ? "disk" : "tmpfs size"));
	json_object_set_new(o, "home_bytes",
			    limit(a->home_bytes, c->home_bytes,
				  sbx_view_home_asked(p->options, p->facts, p->profile, &origin) ?
					  "nothing" :
				  p->view.home_shared ? "disk" :
							"tmpfs size"));
	json_object_set_new(o, "open_files", limit(a->open_files, c->open_files, "rlimit"));
	json_object_set_new(o, "wall_time_ms", limit(a->wall_time_ms, c->wall_time_ms, "sbx-run"));
	return o;
}

/* The place where the cgroup would be made; the receipt replaces it by the real one. */
static json_t *cgroup_place(const struct sbx_plan *p)
{
	const struct sbx_facts *f = p->facts;
	bool scope = sbx_limits_want_scope(f, &p->profile->limits);
	enum sbx_cgroup_source source = scope			    ? SBX_CGROUP_SCOPE :
					f->cgroup_place.controllers ? f->cgroup_place.source :
								      SBX_CGROUP_NONE;

	return json_pack("{s:s, s:s}", "source", sbx_cgroup_source_str(source), "path",
			 scope || source == SBX_CGROUP_NONE ? "" : f->cgroup_place.path);
}

/* --- the rest --- */

static json_t *command(const struct sbx_plan *p)
{
	json_t *o = json_object();

	json_object_set_new(o, "argv", text_list(p->options->argv, count(p->options->argv)));
	json_object_set_new(o, "path", path(p->commands.path));
	json_object_set_new(o, "allow", str_list(&p->profile->commands.allow));
	json_object_set_new(o, "deny_profile", str_list(&p->profile->commands.deny));
	json_object_set_new(o, "deny_system", str_list(&p->system->commands_deny));
	return o;
}

/* The programs that may execute. Null where there is no allow list: then a file's mode decides. */
static json_t *programs(const struct sbx_plan *p)
{
	json_t *list = p->commands.n_programs ? json_array() : json_null();

	for (size_t i = 0; i < p->commands.n_programs; i++) {
		const struct sbx_program *program = &p->commands.programs[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:s, s:o}", "path", text(program->path),
						"why", sbx_program_why_str(program->why), "for",
						text(program->for_what)));
	}
	return list;
}

/* The rules of the workspace and the host; the shipped floors are in no row that counts. */
static json_t *rules(const struct sbx_plan *p)
{
	json_t *o = json_object(), *list = json_array();

	json_object_set_new(o, "network_default",
			    p->rules.default_set ?
				    json_string(sbx_action_str(p->rules.default_action)) :
				    json_null());
	for (size_t i = 0; i < p->rules.n; i++) {
		const struct sbx_rule *r = &p->rules.v[i];

		json_array_append_new(
			list, json_pack("{s:I, s:s, s:s, s:s, s:o, s:I, s:b}", "id",
					(json_int_t)r->id, "of", r->of_host ? "host" : "workspace",
					"type", sbx_rule_type_str(r->type), "action",
					sbx_action_str(r->action), "pattern", text(r->pattern),
					"priority", (json_int_t)r->priority, "floor", r->is_floor));
	}
	json_object_set_new(o, "rules", list);
	return o;
}

/* The files that are masked, and the entries and rules that mask them. */
static json_t *masked(const struct sbx_plan *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->commands.n_masked; i++) {
		const struct sbx_masked *m = &p->commands.masked[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:s, s:o, s:s, s:o}", "path", text(m->path),
						"by", sbx_denied_by_str(m->by), "entry",
						text(m->entry), "why", sbx_masked_why_str(m->why),
						"of", text(m->of)));
	}
	return list;
}

static json_t *commands(const struct sbx_plan *p)
{
	return json_pack("{s:o, s:o}", "execute", programs(p), "masked", masked(p));
}

/* The rows of the filter that are in force. */
static json_t *seccomp(const struct sbx_plan *p)
{
	json_t *list = json_array();
	uint32_t lifts = 0;
	const char *row;

	for (size_t i = 0; (row = sbx_seccomp_row(SBX_SECCOMP_COMMAND, i, &lifts)); i++)
		if (!(lifts & p->seccomp_lifts))
			json_array_append_new(list, json_string(row));
	if (p->commands.n_programs)
		json_array_append_new(list, json_string(SBX_SECCOMP_MEMFD_ROW));
	return list;
}

static json_t *seccomp_allow(const struct sbx_plan *p)
{
	json_t *list = json_array();

	for (int i = 0; i < SBX_N_SECCOMP_LIFTS; i++)
		if (p->seccomp_lifts & SBX_SECCOMP_BIT(i))
			json_array_append_new(
				list, json_string(sbx_seccomp_lift_str((enum sbx_seccomp_lift)i)));
	return list;
}

static json_t *probes(const struct sbx_setup *s)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->probes.n_probes; i++) {
		const struct sbx_probe *probe = &s->probes.probes[i];
		json_t *o = json_pack("{s:s}", "probe",
				      sbx_probe_kind_str((enum sbx_probe_kind)probe->kind));
		char addr[SBX_ADDR_STR_MAX];

		if (probe->name[0])
			json_object_set_new(o, "name", text(probe->name));
		if (probe->addr.family) {
			sbx_addr_format(&probe->addr, addr, sizeof(addr));
			json_object_set_new(o, "address", json_string(addr));
			json_object_set_new(
				o, "proto",
				json_string(sbx_proto_str((enum sbx_proto)probe->proto)));
		}
		if (probe->port)
			json_object_set_new(o, "port", json_integer(probe->port));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *steps(void)
{
	json_t *list = json_array();

	for (int i = 0; i < SBX_N_STEPS; i++)
		json_array_append_new(list, json_string(sbx_step_str((enum sbx_step_id)i)));
	return list;
}

static json_t *build(const struct sbx_plan *p, const struct sbx_setup *s)
{
	json_t *o = json_object();
	int r = 0;

	r |= json_object_set_new(o, "id", text(p->id));
	r |= json_object_set_new(o, "profile",
				 text(p->profile->name ? p->profile->name : p->options->profile));
	r |= json_object_set_new(o, "profile_file", path(p->profile_file));
	r |= json_object_set_new(o, "system_policy", path(p->system_file));
	r |= json_object_set_new(o, "workspace", text(p->options->workspace));
	r |= json_object_set_new(o, "analysis_id", text(p->options->analysis_id));
	r |= json_object_set_new(o, "user", user(p->facts));
	r |= json_object_set_new(o, "hostname", text(p->view.hostname));
	r |= json_object_set_new(o, "root", text(root_of(p)));
	r |= json_object_set_new(o, "command", command(p));
	r |= json_object_set_new(o, "commands", commands(p));
	r |= json_object_set_new(o, "wait_all", json_boolean(p->options->wait_all));
	r |= json_object_set_new(o, "chdir", path(p->view.chdir));
	r |= json_object_set_new(o, "mounts", mounts(p, s));
	r |= json_object_set_new(o, "new_protected",
				 text(sbx_new_protected_str(p->protections.new_protected)));
	r |= json_object_set_new(o, "scratch", scratch(p));
	r |= json_object_set_new(o, "keep", path(p->keep.path));
	r |= json_object_set_new(o, "environment", environment(p));
	r |= json_object_set_new(o, "network", network(p, s));
	r |= json_object_set_new(o, "rules", rules(p));
	r |= json_object_set_new(o, "secrets", secrets(p));
	r |= json_object_set_new(o, "policy", policy(p));
	r |= json_object_set_new(o, "nft", nft(p, s));
	r |= json_object_set_new(o, "limits", limits(p));
	r |= json_object_set_new(o, "cgroup", cgroup_place(p));
	r |= json_object_set_new(o, "seccomp", seccomp(p));
	r |= json_object_set_new(o, "seccomp_allow", seccomp_allow(p));
	r |= json_object_set_new(o, "bwrap", bwrap(p, s));
	r |= json_object_set_new(o, "selftest_probes", probes(s));
	r |= json_object_set_new(o, "steps", steps());
	r |= json_object_set_new(o, "notes", text_list(p->notes.v, p->notes.n));
	if (r == 0)
		return o;
	json_decref(o);
	return NULL;
}

char *sbx_plan_json(const struct sbx_plan *p, const struct sbx_setup *s)
{
	/* large; owns nothing */
	SBX_AUTO_FREE struct sbx_setup *first = s ? NULL : calloc(1, sizeof(*first));
	json_t *o = NULL;
	char *shown;

	if (first)
		sbx_setup_start(first, p);
	if (s || first)
		o = build(p, s ? s : first);
	shown = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
	json_decref(o);
	return shown;
}
