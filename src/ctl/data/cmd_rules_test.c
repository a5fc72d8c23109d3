/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl rules test: what the rules of a workspace and a profile say to a connection, by the
 * functions that enforce it. */
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "base/hostname.h"
#include "base/text.h"
#include "ctl/data/data.h"
#include "ctl/frame/places.h"
#include "launcher/cli/profile_list.h"
#include "launcher/host/config.h"
#include "launcher/rules/rules_load.h"
#include "policy/decide/policy.h"
#include "policy/forms/option_form.h"
#include "policy/keys/profile_parse.h"
#include "policy/profile/settle.h"

SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);
SBX_DEFINE_CLEANUP(struct sbx_profile, sbx_profile_free);
SBX_DEFINE_CLEANUP(struct sbx_system_policy, sbx_system_policy_free);
SBX_DEFINE_CLEANUP(struct sbx_policy, sbx_policy_free);

struct values {
	const char *profile;
	bool udp;
};

static const struct sbx_option options[] = {
	{ "profile", .value = "NAME|FILE", .kind = SBX_OPTION_STRING,
	  .offset = offsetof(struct values, profile), .check = sbx_form_not_empty,
	  .complete = "profile", .help = "the profile that decides where no rule does",
	  .more = " (default: default)" },
	{ "udp", .kind = SBX_OPTION_FLAG, .offset = offsetof(struct values, udp),
	  .help = "ask about UDP, not TCP" },
};

/* As sbx-run reads them: a row that is no rule gives no answer. */
static int load_rules(struct sbx_ctl *ctl, const char *workspace, struct sbx_rules *ret_rules)
{
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	int r = sbx_ctl_store(ctl, &store);

	if (r != SBX_CTL_DONE || !store)
		return r;
	r = sbx_rules_load(store, workspace, ret_rules, &ctl->err);
	return r == 0 ? SBX_CTL_DONE : (sbx_ctl_status(ctl, r, "the rules"), SBX_CTL_FAILED);
}

/* Compiles the policy that a sandbox of the workspace would start with. */
static int compile(struct sbx_ctl *ctl, const struct sbx_rules *rules, void **ret_blob,
		   struct sbx_policy **ret_policy)
{
	static struct sbx_err_list errs; /* large */
	const struct values *v = ctl->values;
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *profile = NULL;
	SBX_CLEANUP(sbx_system_policy_freep) struct sbx_system_policy *system = NULL;
	SBX_AUTO_FREE char *path = NULL, *system_file = NULL;
	struct sbx_policy_input in = { .rules = rules, .generation = 1 };
	size_t n = 0;
	int r;

	memset(&errs, 0, sizeof(errs));
	r = sbx_profile_load(&ctl->facts, v->profile ? v->profile : "default", &errs, &profile,
			     &path);
	if (r == 0)
		r = sbx_config_system(&ctl->facts, &errs, &system, &system_file);
	if (errs.n)
		ctl->err = errs.v[0];
	if (r == 0)
		r = sbx_profile_settle_secrets(profile, &ctl->err);
	in.profile = profile;
	in.system = system;
	if (r == 0)
		r = sbx_policy_compile(&in, ret_blob, &n);
	if (r == 0)
		r = sbx_policy_load(sbx_span(*ret_blob, n), ret_policy);
	return r == 0 ? SBX_CTL_DONE : (sbx_ctl_status(ctl, r, "the policy"), SBX_CTL_FAILED);
}

static int usage(struct sbx_ctl *ctl, const char *what, const char *why)
{
	sbx_err_set(&ctl->err, "%s: %s", what, why);
	return SBX_CTL_USAGE;
}

static int decide(struct sbx_ctl *ctl, const struct sbx_policy *policy, uint16_t port)
{
	const struct values *v = ctl->values;
	enum sbx_proto proto = v->udp ? SBX_PROTO_UDP : SBX_PROTO_TCP;
	char name[SBX_HOSTNAME_MAX + 1], text[2048], what[SBX_HOSTNAME_MAX + 16];
	const char *host = ctl->argv[1];
	struct sbx_verdict verdict;
	struct sbx_addr addr;
	int r = SBX_CTL_DONE;

	if (sbx_addr_parse(host, &addr) == 0)
		verdict = sbx_policy_decide_addr(policy, &addr, proto, port);
	else if (sbx_hostname_normalise(host, strlen(host), name) == 0)
		verdict = sbx_policy_decide_name(policy, name, proto, port);
	else
		return usage(ctl, host, "it is no name and no address");
	if (strchr(host, ':'))
		sbx_text_cut(what, sizeof(what), "[%s]:%u", host, port);
	else
		sbx_text_cut(what, sizeof(what), "%s:%u", host, port);
	sbx_policy_explain(policy, &verdict, what, text, sizeof(text));
	if (ctl->out.json) {
		const char *rule = sbx_policy_rule_text(policy, verdict.rule);

		r = sbx_out_json(&ctl->out,
				 json_pack("{s:s, s:s, s:o, s:o}", "verdict",
					   sbx_action_str(verdict.action), "reason",
					   sbx_reason_str(verdict.reason), "rule",
					   sbx_json_text(rule[0] ? rule : NULL), "text",
					   sbx_json_text(text)),
				 false);
	} else {
		bool allow = verdict.action == SBX_ALLOW;

		fprintf(ctl->out.f,
			"%s%s%s: ", sbx_out_begin(&ctl->out, allow ? SBX_GOOD : SBX_BAD),
			sbx_action_str(verdict.action),
			sbx_out_end(&ctl->out, allow ? SBX_GOOD : SBX_BAD));
		sbx_out_text(&ctl->out, text);
		fputc('\n', ctl->out.f);
	}
	if (r != 0)
		return sbx_ctl_status(ctl, r, "the answer");
	return verdict.action == SBX_ALLOW ? SBX_CTL_DONE : SBX_CTL_NO;
}

static int run(struct sbx_ctl *ctl)
{
	SBX_CLEANUP(sbx_rules_fini) struct sbx_rules rules = { 0 };
	SBX_CLEANUP(sbx_policy_freep) struct sbx_policy *policy = NULL;
	SBX_AUTO_FREE void *blob = NULL;
	const char *why = sbx_form_token(ctl->argv[0]);
	uint16_t port = sbx_port_parse(ctl->argv[2]);
	int r;

	if (why)
		return usage(ctl, ctl->argv[0], why);
	if (port == 0)
		return usage(ctl, ctl->argv[2], "a port is a number from 1 to 65535");
	r = sbx_ctl_places(ctl);
	if (r == SBX_CTL_DONE)
		r = load_rules(ctl, ctl->argv[0], &rules);
	if (r == SBX_CTL_DONE)
		r = compile(ctl, &rules, &blob, &policy);
	return r == SBX_CTL_DONE ? decide(ctl, policy, port) : r;
}

const struct sbx_ctl_command sbx_cmd_rules_test = {
	.name = "rules test",
	.args = "W HOST PORT",
	.n_min = 3,
	.n_max = 3,
	.complete = "workspace",
	.options = options,
	.n_options = SBX_N_ELEMENTS(options),
	.n_values = sizeof(struct values),
	.help = "say whether a sandbox of a workspace could connect, and by which rule",
	.more = "; the exit status is 0 for allow, 1 for deny. Addresses that a name has are "
		"judged "
		"when it is resolved",
	.example = "sbxctl rules test shop api.example.org 443",
	.run = run,
};
