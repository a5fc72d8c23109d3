/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Planning: a list of parts, each of which fills in its fields. Every refusal happens here, before
 * anything is made: planning opens no file for writing and mounts nothing that another process
 * could see. Besides memory, a plan holds O_PATH descriptors of the objects that will be bound. For
 * id-mapped grants it also holds mounts that have no place yet, because only an attempt shows
 * whether a file system supports them.
 *
 * The parts that look at files for the sandbox (mounts, the command) use the effective ids of the
 * sandbox's user. Root would find files that the user may not see, and where root follows a path
 * through a user's directory, that user can change the path meanwhile.
 */
#include "launcher/plan/planner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/commands/command.h"
#include "launcher/host/facts.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/view/view.h"
#include "policy/keys/profile_parse.h"

SBX_DEFINE_CLEANUP(struct sbx_plan, sbx_plan_free);

/* --- parts --- */

struct sbx_draft sbx_plan_draft(struct sbx_plan *p)
{
	return (struct sbx_draft){
		.options = p->options,
		.facts = p->facts,
		.profile = p->profile,
		.profile_file = p->profile_file,
		.system = p->system,
		.tools = &p->tools,
		.sources = &p->sources,
		.view = &p->view,
		.env = &p->env,
		.protections = &p->protections,
		.commands = &p->commands,
		.keep = &p->keep,
		.notes = &p->notes,
	};
}

/* The parts that look at the host's files as the sandbox's user. */
static int plan_as_user(struct sbx_plan *p, struct sbx_err_list *errs)
{
	SBX_CLEANUP(sbx_lookup_ids_restore) struct sbx_lookup_ids saved = { 0 };
	struct sbx_draft draft = sbx_plan_draft(p);
	int r = sbx_lookup_ids_use_sandbox(p->facts, &saved);

	if (r < 0) {
		sbx_err_list_add(errs, "", 0, 0, "cannot look at files as uid %u: %s",
				 p->facts->uid, strerror(-r));
		return SBX_EXIT_REFUSED;
	}
	draft.lookup_ids = &saved;
	r = sbx_plan_view(p, &draft, errs);
	if (r == 0)
		r = sbx_plan_secrets(p, &draft, errs);
	if (r == 0)
		r = sbx_plan_env(p, &draft, errs);
	if (r == 0)
		r = sbx_plan_command(&draft, errs);
	return r;
}

static struct sbx_plan *plan_start(const struct sbx_options *o, const struct sbx_facts *f)
{
	struct sbx_plan *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->self = p;
	sbx_view_init(&p->view);
	p->keep.fd = -1;
	p->options = o;
	p->facts = f;
	p->air_gap = o->air_gap;
	memcpy(p->id, f->id, sizeof(p->id));
	return p;
}

int sbx_plan_policy(const struct sbx_options *o, const struct sbx_facts *f,
		    struct sbx_err_list *errs, struct sbx_plan **ret_plan)
{
	SBX_CLEANUP(sbx_plan_freep) struct sbx_plan *p = plan_start(o, f);
	int r = p ? sbx_plan_profile(p, errs) : -ENOMEM;

	if (r == 0)
		*ret_plan = sbx_steal_ptr(&p);
	return r;
}

int sbx_plan_new(const struct sbx_options *o, const struct sbx_facts *f, struct sbx_err_list *errs,
		 const struct sbx_plan **ret_plan)
{
	SBX_CLEANUP(sbx_plan_freep) struct sbx_plan *p = plan_start(o, f);
	struct sbx_err err = { 0 };
	int r;

	if (!p)
		return -ENOMEM;
	/* Reported once, not for each path. */
	if (sbx_path_check_support(&err) != 0)
		return sbx_refuse(errs, &err);
	r = sbx_plan_profile(p, errs);
	if (r == 0)
		r = sbx_plan_rules(p, errs);
	if (r == 0)
		r = sbx_plan_network(p, errs);
	if (r == 0)
		r = sbx_plan_tls(p);
	if (r == 0)
		r = plan_as_user(p, errs);
	if (r == 0)
		r = sbx_plan_probes(p, errs);
	if (r != 0)
		return r;
	*ret_plan = sbx_steal_ptr(&p);
	return 0;
}

struct sbx_plan *sbx_plan_free(const struct sbx_plan *plan)
{
	struct sbx_plan *p = plan ? plan->self : NULL;

	if (!p)
		return NULL;
	sbx_policy_free(p->policy);
	free(p->policy_blob);
	sbx_profile_free(p->profile);
	sbx_system_policy_free(p->system);
	sbx_tool_rules_fini(&p->tools);
	sbx_rules_fini(&p->rules);
	sbx_live_fini(&p->live);
	free(p->profile_file);
	free(p->system_file);
	sbx_plan_sources_fini(&p->sources);
	free(p->cidrs);
	sbx_attach_lists_fini(&p->attach.lists);
	sbx_plan_tls_fini(&p->tls);
	sbx_view_fini(&p->view);
	sbx_environment_fini(&p->env);
	sbx_protections_fini(&p->protections);
	sbx_commands_fini(&p->commands);
	sbx_keep_target_fini(&p->keep);
	free(p->probes);
	sbx_notes_fini(&p->notes);
	free(p);
	return NULL;
}
