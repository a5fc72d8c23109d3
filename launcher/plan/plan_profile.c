/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the compiled policy. Reads system.yaml, the profile and the profiles that it extends, adds
 * the flags, checks the ceilings, and then makes the network part for the broker and the firewall.
 *
 * A configuration file that exists but cannot be read ends the run: it may hold a ceiling that the
 * host's owner set.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/attach/attach_input.h"
#include "launcher/host/config.h"
#include "launcher/host/facts.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/rules/rules_load.h"
#include "policy/forms/suggest.h"
#include "policy/keys/profile_parse.h"
#include "policy/profile/endpoint.h"
#include "policy/profile/settle.h"
#include "sys/seccomp/landlock.h"

#define POLICY_GENERATION 1 /* of the snapshot a sandbox starts with */

struct loader {
	struct sbx_plan *p;
	struct sbx_err err; /* of a file that exists but cannot be read */
};

static char *load_extended(void *userdata, const char *name, size_t *ret_n, char *ret_file,
			   size_t n_file)
{
	struct loader *l = userdata;
	SBX_AUTO_FREE char *path = NULL;
	char *text = NULL;

	if (!sbx_config_is_name(name) ||
	    sbx_config_find_profile(l->p->facts, name, &text, ret_n, &path, &l->err) != 0)
		return NULL;
	if (sbx_plan_sources_add(&l->p->sources, l->p->facts, path, &l->err) < 0) {
		free(text);
		return NULL;
	}
	sbx_text_cut(ret_file, n_file, "%s", path);
	return text;
}

/* Refuses @name, and suggests the profile with the most similar name. */
static int refuse_unknown(const struct sbx_plan *p, const char *name, struct sbx_err_list *errs)
{
	struct sbx_suggest s = sbx_suggest(name);
	char best[SBX_CONFIG_NAME_MAX + 1] = "", hint[160] = "";
	char *dir_name;

	for (size_t i = 0; (dir_name = sbx_config_profile_dir(p->facts, i)); i++) {
		DIR *dir = opendir(dir_name);
		struct dirent *e;

		while (dir && (e = readdir(dir))) {
			char candidate[SBX_CONFIG_NAME_MAX + 1];
			size_t n = strlen(e->d_name);

			if (n <= 5 || n - 5 > SBX_CONFIG_NAME_MAX ||
			    strcmp(e->d_name + n - 5, ".yaml") != 0)
				continue;
			snprintf(candidate, sizeof(candidate), "%.*s", (int)(n - 5), e->d_name);
			sbx_suggest_offer(&s, candidate);
			if (s.best == candidate) {
				sbx_text_cut(best, sizeof(best), "%s", candidate);
				s.best = best;
			}
		}
		if (dir)
			closedir(dir);
		free(dir_name);
	}
	sbx_suggest_text(&s, hint, sizeof(hint));
	sbx_err_list_add(errs, "", 0, 0,
			 "there is no profile '%s'%s; profiles are in %s/profiles, %s/profiles "
			 "and %s/profiles",
			 name, hint, p->facts->config_dir, p->facts->user_config_dir,
			 p->facts->data_dir);
	return SBX_EXIT_REFUSED;
}

static int load_profile(struct sbx_plan *p, struct sbx_err_list *errs)
{
	const char *name = p->options->profile;
	struct loader loader = { .p = p };
	SBX_AUTO_FREE char *text = NULL;
	struct sbx_err err = { 0 };
	size_t n = 0;
	int r;

	if (sbx_options_profile_is_file(name) && p->options->named_profile) {
		sbx_err_set(&err,
			    "profile: '%s' is a file, and --named-profile asks for a name", name);
		r = 1;
	} else if (sbx_options_profile_is_file(name)) {
		r = sbx_config_read(name, p->facts, SBX_CONFIG_USER, &text, &n, &err);
		if (r == 1)
			sbx_err_set_at(&err, name, 0, 0, "there is no such profile");
		if (r == 0 && !(p->profile_file = strdup(name)))
			return -ENOMEM;
	} else if (!sbx_config_is_name(name)) {
		sbx_err_set(&err, "--profile '%s': a name has letters, digits, '.', '_' and '-'",
			    name);
		r = 1;
	} else {
		r = sbx_config_find_profile(p->facts, name, &text, &n, &p->profile_file, &err);
		if (r == 1)
			return refuse_unknown(p, name, errs);
	}
	if (r == 0)
		r = sbx_plan_sources_add(&p->sources, p->facts, p->profile_file, &err);
	if (r != 0)
		return err.msg[0] ? sbx_refuse(errs, &err) : r;
	r = sbx_profile_parse(sbx_span(text, n), p->profile_file, load_extended, &loader, errs,
			      &p->profile);
	if (loader.err.msg[0]) {
		sbx_refuse(errs, &loader.err);
		r = r < 0 ? r : SBX_EXIT_REFUSED;
	}
	return r > 0 ? SBX_EXIT_REFUSED : r;
}

/* --- flags and ceilings --- */

/* Would the network @e, allowed by a flag, be refused all the same? A flag cannot say private:
 * true. */
static bool is_unreachable(const struct sbx_plan *p, const struct sbx_net_entry *e)
{
	enum sbx_addr_class class = sbx_addr_class(&e->cidr.addr);

	if (!e->is_cidr || (class != SBX_ADDR_PRIVATE && class != SBX_ADDR_LINK_LOCAL))
		return false;
	for (size_t i = 0; i < p->system->admit.n; i++) {
		const struct sbx_cidr *admitted = &p->system->admit.v[i].cidr;

		if (sbx_cidr_contains(admitted, &e->cidr.addr) ||
		    sbx_cidr_contains(&e->cidr, &admitted->addr))
			return false;
	}
	return true;
}

static void check_allowed_by_flag(const struct sbx_plan *p, const char *flag,
				  struct sbx_err_list *errs)
{
	const struct sbx_net_list *list = &p->profile->network.allow;
	const struct sbx_net_entry *e = &list->v[list->n - 1];

	if (is_unreachable(p, e))
		sbx_err_list_add(errs, "", 0, 0,
				 "--allow %s: %s addresses are reached only where the host's owner "
				 "admits them (admit: [%s] in %s/system.yaml)%s", flag,
				 sbx_addr_class_str(sbx_addr_class(&e->cidr.addr)), flag,
				 p->facts->config_dir,
				 sbx_addr_class(&e->cidr.addr) == SBX_ADDR_PRIVATE ?
				 ", or by an entry of a profile that says private: true" : "");
}

static int merge_flags(struct sbx_plan *p, struct sbx_err_list *errs)
{
	const struct sbx_options *o = p->options;
	size_t n_before = errs->n;
	int r = 0;

	for (size_t i = 0; i < o->n_allow && r >= 0; i++) {
		struct sbx_err err = { 0 };

		r = sbx_net_list_add_pattern(&p->profile->network.allow, o->allow[i], "--allow",
					     &err);
		if (r > 0)
			sbx_refuse(errs, &err);
		if (r == 0)
			check_allowed_by_flag(p, o->allow[i], errs);
	}
	for (size_t i = 0; i < o->n_deny && r >= 0; i++) {
		struct sbx_err err = { 0 };

		r = sbx_net_list_add_pattern(&p->profile->network.deny, o->deny[i], "--deny", &err);
		if (r > 0)
			sbx_refuse(errs, &err);
	}
	for (size_t i = 0; i < o->n_secrets && r >= 0; i++) {
		struct sbx_err err = { 0 };

		r = sbx_profile_add_secret_flag(p->profile, o->secrets[i], &err);
		if (r > 0)
			sbx_refuse(errs, &err);
	}
	for (size_t i = 0; i < o->n_limits && r >= 0; i++) {
		struct sbx_err err = { 0 };

		r = sbx_limit_set(&p->profile->limits, o->limits[i], &err);
		if (r > 0) /* its message may call the limit by its name in profiles */
			sbx_err_list_add(errs, "", 0, 0, "--limit %s",
					 strncmp(err.msg, "limits.", 7) == 0 ? err.msg + 7
									     : err.msg);
	}
	if (r < 0)
		return r;
	if (errs->n > n_before)
		return SBX_EXIT_REFUSED;
	r = sbx_plan_publish_merge(p, errs);
	if (r != 0)
		return r;
	if (p->profile->network.mode != SBX_MODE_OFFLINE)
		return 0;
	if (o->n_allow)
		r = sbx_notes_add(&p->notes, "--allow changes nothing: profile '%s' is offline",
				  o->profile);
	if (o->n_secrets && r == 0)
		r = sbx_notes_add(&p->notes, "--secret changes nothing: profile '%s' is offline",
				  o->profile);
	return r;
}

static int check_ceilings(struct sbx_plan *p, struct sbx_err_list *errs)
{
	struct sbx_limit_values ceilings = p->system->ceilings;
	struct sbx_err err = { 0 };
	int r;

	if (ceilings.memory_bytes == 0)
		ceilings.memory_bytes = p->facts->machine_memory_bytes;
	if (ceilings.cpus_milli == 0)
		ceilings.cpus_milli = p->facts->machine_cpus_milli;
	r = sbx_limits_check(&p->profile->limits, &ceilings, &err);
	return r > 0 ? sbx_refuse(errs, &err) : r;
}

static bool has_name(const struct sbx_str_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], name) == 0)
			return true;
	return false;
}

static int check_seccomp(struct sbx_plan *p, struct sbx_err_list *errs)
{
	const struct sbx_str_list *asked = &p->profile->seccomp.allow;
	int r = 0;

	for (size_t i = 0; i < asked->n; i++) {
		if (has_name(&p->system->seccomp_allow, asked->v[i])) {
			p->seccomp_lifts |=
				SBX_SECCOMP_BIT((unsigned)sbx_seccomp_lift_find(asked->v[i]));
			continue;
		}
		sbx_err_list_add(
			errs, p->profile_file, 0, 0,
			"seccomp.allow: '%s' is not among the calls that this host's system "
			"policy lets a profile ask for (seccomp.allow of %s/system.yaml)",
			asked->v[i], p->facts->config_dir);
		r = SBX_EXIT_REFUSED;
	}
	return r;
}

/* Decides which hosts sbx-tls terminates. */
static int settle_secrets(struct sbx_plan *p, struct sbx_err_list *errs)
{
	struct sbx_err err = { 0 };
	int r = sbx_profile_settle_secrets(p->profile, &err);

	return r > 0 ? sbx_refuse(errs, &err) : r;
}

/* Checks that host and caller can do attach cgroup. */
static int check_host(struct sbx_plan *p, struct sbx_err *err)
{
	const struct sbx_facts *f = p->facts;

	if (!f->privileged || !f->may_attach) {
		sbx_err_set(err,
			    "network.attach: cgroup needs root or a service with its capabilities "
			    "(CAP_NET_ADMIN and those beside it in README.md): use attach netns");
		return SBX_PROFILE_E_INVALID;
	}
	if (f->landlock_abi >= SBX_LANDLOCK_ABI_SCOPES)
		return 0;
	if (p->profile->limits.strict) {
		sbx_err_set(err, "network.attach: cgroup leaves the host's abstract unix sockets "
			    "within reach on this kernel (Landlock's scopes need Linux 6.12), and "
			    "limits.enforce is strict: use attach netns");
		return SBX_PROFILE_E_INVALID;
	}
	return sbx_notes_add(
		&p->notes,
		"the host's abstract unix sockets are within the sandbox's "
		"reach: attach cgroup needs Linux 6.12 (Landlock's scopes) to close them");
}

static int check_attach(struct sbx_plan *p, struct sbx_err_list *errs)
{
	struct sbx_err err = { 0 };
	int r = sbx_profile_check_attach(p->profile, &err);

	p->attach.on = p->profile->network.attach == SBX_NET_ATTACH_CGROUP;
	if (r == 0 && p->attach.on)
		r = check_host(p, &err);
	return r > 0 ? sbx_refuse(errs, &err) : r;
}

/* Notes the system policy and the other files, besides the profiles. */
static int note_sources(struct sbx_plan *p, struct sbx_err_list *errs)
{
	struct sbx_err err = { 0 };
	int r = p->system_file ? sbx_plan_sources_add(&p->sources, p->facts, p->system_file, &err) :
				 0;

	if (r == 0)
		r = sbx_plan_sources_add_rest(&p->sources, p->options, p->facts, &err);
	return err.msg[0] ? sbx_refuse(errs, &err) : r;
}

/* The stricter of profile and system policy holds. A profile that asked for keep gets a note. */
static int choose_new_protected(struct sbx_plan *p)
{
	enum sbx_new_protected asked = p->profile->filesystem.new_protected;
	enum sbx_new_protected least = p->system->new_protected;

	p->protections.new_protected = asked < least ? asked : least;
	if (asked != SBX_NEW_PROTECTED_KEEP || least == asked)
		return 0;
	return sbx_notes_add(&p->notes, "filesystem.new_protected is %s and not keep: the host's "
			     "system policy says so", sbx_new_protected_str(least));
}

static bool asks_terminate(const struct sbx_profile *p)
{
	for (size_t i = 0; i < p->network.allow.n; i++)
		if (sbx_net_entry_asks_terminate(&p->network.allow.v[i]))
			return true;
	return p->n_secrets > 0;
}

/* --learn-allow: flows to names and ports that nothing denies are carried, as with mode full. What
 * the profile says about requests, and about its deny list, stays. Mode full has no place where
 * requests are read: where the profile needs one, `default: allow` carries names, and literal
 * addresses are refused and learned. */
static int learn(struct sbx_plan *p, struct sbx_err_list *errs)
{
	const struct sbx_options *o = p->options;
	struct sbx_err err = { 0 };

	if ((o->learn_allow || o->learn_force) && !o->learn)
		sbx_err_set(&err, "%s is for --learn FILE",
			    o->learn_allow ? "--learn-allow" : "--learn-force");
	else if (o->learn && o->air_gap)
		sbx_err_set(&err, "--learn and --air-gap: without a network nothing is learned");
	else if (o->learn_allow && p->profile->network.mode == SBX_MODE_OFFLINE)
		sbx_err_set(&err, "--learn-allow: profile '%s' is offline; without --learn-allow "
				  "the names that are asked for are learned all the same",
			    o->profile);
	if (err.msg[0])
		return sbx_refuse(errs, &err);
	if (o->learn_allow && asks_terminate(p->profile))
		p->profile->network.default_action = SBX_ALLOW;
	else if (o->learn_allow)
		p->profile->network.mode = SBX_MODE_FULL;
	return 0;
}

/* --- the live lists at the start --- */

static int refuse_live(struct sbx_err_list *errs, const char *field, const struct sbx_err *err)
{
	struct sbx_err named = { 0 };

	sbx_err_set(&named, "%s: %s", field, err->msg);
	return sbx_refuse(errs, &named);
}

/* Does the profile itself allow something of the secret's host? */
static bool is_allowed(const struct sbx_profile *p, const struct sbx_net_entry *host)
{
	for (size_t i = 0; i < p->network.allow.n; i++) {
		const struct sbx_net_entry *e = &p->network.allow.v[i];

		if (!e->asks_only &&
		    (sbx_net_entry_covers(e, host) || sbx_net_entry_covers(host, e)))
			return true;
	}
	return p->network.default_action == SBX_ALLOW;
}

/* A live entry allows a secret's host: the profile gets an entry that allows nothing, by which
 * settling has the host terminated, whatever the live list becomes later. */
static int add_asking(struct sbx_profile *p, const struct sbx_net_entry *live,
		      const struct sbx_net_entry *host)
{
	struct sbx_net_entry copy = { .n_ports = live->n_ports };
	int r = 0;

	if (live->is_cidr || (live->proto_set && live->proto == SBX_PROTO_UDP) ||
	    !(sbx_net_entry_covers(live, host) || sbx_net_entry_covers(host, live)))
		return 0;
	memcpy(copy.ports, live->ports, sizeof(copy.ports));
	r = sbx_net_entry_copy_for(live, sbx_net_entry_covers(live, host) ? host : live, &copy);
	copy.asks_only = true;
	if (r == 0)
		r = sbx_net_list_append(&p->network.allow, &copy);
	sbx_net_entry_fini(&copy);
	return r;
}

static int ask_for_secrets(struct sbx_plan *p)
{
	int r = 0;

	for (size_t i = 0; i < p->profile->n_secrets; i++) {
		const struct sbx_net_list *hosts = &p->profile->secrets[i].hosts;

		for (size_t k = 0; k < hosts->n; k++) {
			if (is_allowed(p->profile, &hosts->v[k]))
				continue;
			for (size_t j = 0; r == 0 && j < p->live.allow.n; j++)
				r = add_asking(p->profile, &p->live.allow.v[j], &hosts->v[k]);
			for (size_t j = 0; r == 0 && j < p->live.rules.n; j++)
				if (p->live.rules.v[j].action == SBX_ALLOW)
					r = add_asking(p->profile, &p->live.rules.v[j].entry,
						       &hosts->v[k]);
		}
	}
	return r;
}

/* The live lists of the flags. They are compiled into the first policy: there is no moment in which
 * the command runs without them. */
static int plan_live(struct sbx_plan *p, struct sbx_err_list *errs)
{
	const struct sbx_options *o = p->options;
	char field[SBX_LIVE_FIELD_MAX] = "";
	struct sbx_err err = { 0 };
	int r;

	p->live.air_gapped = p->air_gap;
	p->live.deny.deny = true;
	r = sbx_live_add(&p->live, SBX_ALLOW, "--live-allow", o->live_allow, o->n_live_allow,
			 field, &err);
	if (r == 0)
		r = sbx_live_add(&p->live, SBX_DENY, "--live-deny", o->live_deny, o->n_live_deny,
				 field, &err);
	if (r == 0)
		r = sbx_live_add_rules(&p->live, "--live-rule", o->live_rules, o->n_live_rules,
				       field, &err);
	if (r > 0)
		return refuse_live(errs, field, &err);
	if (r == 0 && p->profile->network.mode == SBX_MODE_OFFLINE && sbx_live_allows(&p->live))
		r = sbx_notes_add(&p->notes,
				  "the live lists allow nothing: profile '%s' is offline",
				  o->profile);
	return r < 0 ? r : ask_for_secrets(p);
}

int sbx_plan_profile(struct sbx_plan *p, struct sbx_err_list *errs)
{
	int r = sbx_config_system(p->facts, errs, &p->system, &p->system_file);

	if (r == 0)
		r = load_profile(p, errs);
	if (r == 0)
		r = note_sources(p, errs);
	if (r == 0)
		r = merge_flags(p, errs);
	if (r == 0)
		r = plan_live(p, errs);
	if (r == 0)
		r = learn(p, errs);
	if (r == 0)
		r = check_ceilings(p, errs);
	if (r == 0)
		r = check_seccomp(p, errs);
	if (r == 0)
		r = settle_secrets(p, errs);
	if (r == 0)
		r = check_attach(p, errs);
	if (r == 0)
		r = choose_new_protected(p);
	if (r == 0)
		r = sbx_plan_publish(p, errs);
	return r;
}

/* --- rules --- */

/* Without its rules no sandbox starts: a rule that denies might be among them. */
int sbx_plan_rules(struct sbx_plan *p, struct sbx_err_list *errs)
{
	struct sbx_err err = { 0 };
	int r = sbx_rules_read(p->facts, p->options->workspace, &p->rules, &err);

	if (r == 0 && p->options->draft)
		r = sbx_rules_add_draft(&p->rules, p->options->draft, &err);
	if (r != 0)
		return r == -ENOMEM ? r : sbx_refuse(errs, &err);
	return sbx_tool_rules_init(&p->tools, &p->rules);
}

/* --- network --- */

/* Reads the "nameserver ADDRESS" lines of resolv.conf(5). Leaves out addresses with a scope: the
 * broker cannot connect to them by address alone. */
static void resolvers_of_host(struct sbx_plan *p)
{
	const char *line = p->facts->resolv_conf;

	while (*line && p->n_resolvers < SBX_RESOLVERS_MAX) {
		size_t n = strcspn(line, "\n");
		char text[SBX_ADDR_STR_MAX];
		struct sbx_addr addr;

		if (strncmp(line, "nameserver", 10) == 0 && (line[10] == ' ' || line[10] == '\t')) {
			const char *s = line + 10 + strspn(line + 10, " \t");

			if (sbx_text_copy_n(text, sizeof(text), s, strcspn(s, " \t\r\n")) == 0 &&
			    sbx_addr_parse(text, &addr) == 0)
				p->resolvers[p->n_resolvers++] =
					(struct sbx_resolver){ .addr = addr, .port = 53 };
		}
		line += n + (line[n] == '\n');
	}
	if (p->n_resolvers == 0) {
		p->resolvers[0].port = 53;
		sbx_addr_parse("127.0.0.1", &p->resolvers[0].addr);
		p->n_resolvers = 1;
	}
}

static int collect_cidrs(struct sbx_plan *p, struct sbx_err_list *errs)
{
	struct sbx_policy_cidr c;
	struct sbx_nft_cidr *v;
	size_t n = 0;

	while (sbx_policy_cidr_at(p->policy, n, &c))
		n++;
	if (n > SBX_NFT_CIDRS_MAX) {
		sbx_err_list_add(errs, p->profile_file, 0, 0,
				 "network.allow, --allow and the rules allow %zu networks (each "
				 "range of ports counts), and the packet filter has room for %d: "
				 "use larger networks, or names",
				 n, SBX_NFT_CIDRS_MAX);
		return SBX_EXIT_REFUSED;
	}
	v = calloc(n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n && sbx_policy_cidr_at(p->policy, i, &c); i++)
		v[i] = (struct sbx_nft_cidr){ .cidr = c.cidr,
					      .port_first = c.port_first,
					      .port_last = c.port_last,
					      .proto = c.proto };
	p->nft.cidrs = p->cidrs = v;
	p->nft.n_cidrs = n;
	return 0;
}

/* With attach cgroup the kernel judges connections, and only DNS comes to the broker. */
static int plan_attach(struct sbx_plan *p, const struct sbx_policy_input *input,
		       struct sbx_err_list *errs)
{
	struct sbx_err err = { 0 };
	int r = sbx_attach_lists_new(input, p->policy, &p->attach.lists, &err);

	if (r != 0)
		return err.msg[0] ? sbx_refuse(errs, &err) : r;
	p->attach.stub = sbx_attach_stub_addr(p->id, 0);
	return 0;
}

static bool is_localhost(const char *host)
{
	static const char name[] = ".localhost";
	size_t n = strlen(host);

	return strcmp(host, name + 1) == 0 ||
	       (n >= sizeof(name) && strcmp(host + n - sizeof(name) + 1, name) == 0);
}

/* Refuses a proxy at an address that no connection may lead to. The broker checks the others when
 * it connects: a proxy with a name, and one at a public address of this host. */
static int check_proxy(const struct sbx_plan *p, struct sbx_err_list *errs)
{
	const char *host = p->profile->network.proxy_host;
	uint16_t port = p->profile->network.proxy_port;
	struct sbx_endpoint e = { .is_addr = true, .port = port };
	char text[SBX_ENDPOINT_STR_MAX];
	enum sbx_addr_class class;
	const char *name;

	if (!host || sbx_addr_parse(is_localhost(host) ? "127.0.0.1" : host, &e.addr) < 0 ||
	    sbx_policy_admits_proxy(p->policy, &e.addr, port, false))
		return 0;
	e.addr = sbx_addr_unmap(&e.addr);
	class = sbx_addr_class(&e.addr);
	name = sbx_addr_class_str(class);
	sbx_endpoint_format(&e, text, sizeof(text));
	if (class == SBX_ADDR_LOOPBACK || class == SBX_ADDR_PRIVATE || class == SBX_ADDR_LINK_LOCAL)
		sbx_err_list_add(errs, p->profile_file, 0, 0,
				 "network.upstream_proxy: %s is a %s address, and only the host's "
				 "owner may have a proxy there: add '%s' under admit in "
				 "%s/system.yaml",
				 text, name, text, p->facts->config_dir);
	else
		sbx_err_list_add(errs, p->profile_file, 0, 0,
				 "network.upstream_proxy: no proxy is used at %s (%s): write the "
				 "proxy's own address or name",
				 text,
				 class == SBX_ADDR_PUBLIC ? "a floor of the system policy" : name);
	return SBX_EXIT_REFUSED;
}

/* May sbx-tls judge what the live rules say of requests? The profile is settled. */
static int check_live(struct sbx_plan *p, struct sbx_err_list *errs)
{
	char field[SBX_LIVE_FIELD_MAX] = "";
	struct sbx_err err = { 0 };
	int r = sbx_live_check_requests(&p->live, NULL, p->profile, "--live-rule", field,
					&err);

	return r > 0 ? refuse_live(errs, field, &err) : r;
}

int sbx_plan_network(struct sbx_plan *p, struct sbx_err_list *errs)
{
	const struct sbx_profile *profile = p->profile;
	enum sbx_mode mode = profile->network.mode;
	const struct sbx_policy_input input = { .profile = profile,
						.system = p->system,
						.rules = &p->rules,
						.live = &p->live,
						.generation = POLICY_GENERATION };
	int r = check_live(p, errs);

	if (r != 0)
		return r;
	r = sbx_policy_compile(&input, &p->policy_blob, &p->n_policy_blob);
	if (r == 0)
		r = sbx_policy_load(sbx_span(p->policy_blob, p->n_policy_blob), &p->policy);
	if (r < 0) {
		sbx_err_list_add(errs, p->profile_file, 0, 0, "the policy cannot be compiled: %s",
				 strerror(-r));
		return r == -ENOMEM ? r : SBX_EXIT_REFUSED;
	}
	p->may_carry = mode != SBX_MODE_OFFLINE && !p->attach.on;
	p->carries = p->may_carry && (!p->air_gap || sbx_live_allows(&p->live));
	p->dns_real = mode == SBX_MODE_FULL ||
		      (mode == SBX_MODE_OFFLINE && profile->network.n_resolvers > 0);
	p->nft.all_destinations = p->carries && mode == SBX_MODE_FULL;
	p->nft.udp = p->carries && sbx_policy_carries_udp(p->policy);
	p->nft.nflog_group = SBX_PLAN_NFLOG_GROUP;
	p->nft.dns = 1;
	p->nft.shut = p->air_gap && !sbx_live_allows(&p->live);
	if (profile->network.n_resolvers > 0) {
		p->n_resolvers = (uint32_t)profile->network.n_resolvers;
		static_assert(sizeof(p->resolvers) == sizeof(profile->network.resolvers),
			      "copied as a whole");
		memcpy(p->resolvers, profile->network.resolvers, sizeof(p->resolvers));
	} else {
		resolvers_of_host(p);
	}
	if (p->attach.on)
		return plan_attach(p, &input, errs);
	r = p->may_carry ? check_proxy(p, errs) : 0;
	return r == 0 && p->carries ? collect_cidrs(p, errs) : r;
}
