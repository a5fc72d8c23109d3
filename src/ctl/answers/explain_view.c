/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mounts and commands, explained by the planner. Of a refused mount it is tried whether it would be
 * granted read-only.
 */
#include "ctl/answers/explain_view.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/commands/command_names.h"
#include "launcher/host/exit_status.h"
#include "launcher/view/view.h"
#include "sys/fs/path.h"

SBX_DEFINE_CLEANUP(struct sbx_dry_plan, sbx_dry_plan_free);

#define WORDS_MAX 16

/* The base's plan with two more words, or with a command. */
static int plan_with(const struct sbx_dry_plan *base, const char *const *words, const char *flag,
		     const char *value, const char *command, struct sbx_dry_plan **ret_d)
{
	const char *all[WORDS_MAX + 3] = { NULL };
	size_t n = 0;

	while (n < WORDS_MAX && words[n]) {
		all[n] = words[n];
		n++;
	}
	if (words[n])
		return -E2BIG;
	if (flag) {
		all[n++] = flag;
		all[n++] = value;
	}
	return sbx_dry_plan_new(all, command, base->options.draft, ret_d);
}

/* The first refusal decided; the others are beside it. */
static void tell_refusals(const struct sbx_dry_plan *d, const char *layer, struct sbx_explained *e)
{
	char text[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64];

	for (size_t i = 0; i < d->errs.n; i++) {
		const struct sbx_err *err = &d->errs.v[i];
		struct sbx_explained_match *m = sbx_explained_match_add(e);

		m->decided = i == 0;
		sbx_text_cut(m->layer, sizeof(m->layer), "%s", layer);
		sbx_text_cut(m->action, sizeof(m->action), "deny");
		sbx_text_cut(m->text, sizeof(m->text), "%s", err->msg);
		if (err->file[0] && err->line)
			sbx_text_cut(m->origin, sizeof(m->origin), "%s:%d", err->file, err->line);
		else
			sbx_text_cut(m->origin, sizeof(m->origin), "%s", err->file);
		if (i == 0)
			sbx_text_cut(e->why, sizeof(e->why), "%s",
				     sbx_err_format(err, text, sizeof(text)));
	}
}

/* --- mounts --- */

static void add_op(struct sbx_explained *e, const struct sbx_mount_op *op, bool decided)
{
	struct sbx_explained_match *m = sbx_explained_match_add(e);
	bool masked = op->kind == SBX_MOUNT_MASK;

	m->decided = decided;
	sbx_text_cut(m->layer, sizeof(m->layer), "%s", sbx_mount_origin_str(op->origin));
	sbx_text_cut(m->action, sizeof(m->action), "%s",
		     masked	  ? "masked" :
		     op->writable ? "writable" :
				    "read-only");
	if (op->source.resolved && strcmp(op->source.resolved, op->dest) != 0)
		sbx_text_cut(m->text, sizeof(m->text), "%s (%s)", op->dest, op->source.resolved);
	else
		sbx_text_cut(m->text, sizeof(m->text), "%s", op->dest);
	sbx_text_cut(m->origin, sizeof(m->origin), "%s", sbx_mount_op_kind_str(op->kind));
}

/* The grant of the flag: the plan's mount that the base does not have. */
static const struct sbx_mount_op *granted(const struct sbx_plan *p)
{
	const struct sbx_mount_op *found = NULL;

	for (size_t i = 0; i < p->view.n_mounts; i++)
		if (p->view.mounts[i].origin == SBX_ORIGIN_FLAG &&
		    (p->view.mounts[i].kind == SBX_MOUNT_BIND ||
		     p->view.mounts[i].kind == SBX_MOUNT_OVERLAY))
			found = &p->view.mounts[i];
	return found;
}

static void tell_granted(const struct sbx_plan *p, const char *path, struct sbx_explained *e)
{
	const struct sbx_mount_op *op = granted(p);

	sbx_text_cut(e->reason, sizeof(e->reason), "granted");
	if (!op) {
		sbx_text_cut(e->why, sizeof(e->why), "'%s' may be granted", path);
		return;
	}
	sbx_text_cut(e->why, sizeof(e->why), "'%s' is granted %s, at '%s'", op->source.resolved,
		     op->writable ? "writable" : "read-only", op->dest);
	add_op(e, op, true);
	for (size_t i = 0; i < p->view.n_mounts; i++) {
		const struct sbx_mount_op *m = &p->view.mounts[i];

		if (m != op && m->dest && sbx_path_in_prefix(m->dest, op->dest) &&
		    (m->origin == SBX_ORIGIN_MASK || m->origin == SBX_ORIGIN_PROTECT))
			add_op(e, m, false);
	}
}

/* Is it in the sandbox without a flag? */
static void tell_there_already(const struct sbx_dry_plan *base, const char *path,
			       struct sbx_explained *e)
{
	const struct sbx_mount_op *op = sbx_view_covering(&base->plan->view, path);

	if (op && (op->kind == SBX_MOUNT_BIND || op->kind == SBX_MOUNT_MERGE ||
		   op->kind == SBX_MOUNT_OVERLAY))
		add_op(e, op, false);
}

int sbx_explain_mount(const struct sbx_dry_plan *base, const char *const *words, const char *path,
		      struct sbx_explained *ret_e)
{
	SBX_CLEANUP(sbx_dry_plan_freep) struct sbx_dry_plan *d = NULL, *read_only = NULL;
	struct sbx_explained *e = ret_e;
	size_t n = strlen(path);
	bool asks_read_only = n > 3 && strcmp(path + n - 3, ":ro") == 0;
	int r = plan_with(base, words, "--bind", path, NULL, &d);

	*e = (struct sbx_explained){ .allowed = r == 0 };
	sbx_text_cut(e->subject, sizeof(e->subject), "mount %s", path);
	if (r < 0)
		return r;
	if (r == 0) {
		tell_granted(d->plan, path, e);
		sbx_explained_change_add(e, "without --%s '%s' it is not granted",
					 asks_read_only ? "ro-bind" : "bind", path);
		return 0;
	}
	sbx_text_cut(e->reason, sizeof(e->reason), "refused");
	tell_refusals(d, "mount", e);
	tell_there_already(base, path, e);
	if (asks_read_only)
		return 0;
	r = plan_with(base, words, "--ro-bind", path, NULL, &read_only);
	if (r == 0)
		sbx_explained_change_add(e, "--ro-bind '%s' (read-only)", path);
	return r < 0 ? r : 0;
}

/* --- commands --- */

static void tell_command(const struct sbx_plan *p, const char *command, struct sbx_explained *e)
{
	const struct sbx_str_list *allow = &p->profile->commands.allow;
	struct sbx_explained_match *m;

	sbx_text_cut(e->reason, sizeof(e->reason), "allowed");
	sbx_text_cut(e->why, sizeof(e->why), "'%s' is '%s' in the sandbox, and %s", command,
		     p->commands.path,
		     allow->n ? "is on the commands.allow list" :
				"no entry of commands.deny means it");
	for (size_t i = 0; i < allow->n; i++) {
		if (!sbx_entry_matches(allow->v[i], p->commands.path) &&
		    !sbx_entry_matches(allow->v[i], command))
			continue;
		m = sbx_explained_match_add(e);
		m->decided = e->n_matches == 1;
		sbx_text_cut(m->layer, sizeof(m->layer), "commands.allow");
		sbx_text_cut(m->action, sizeof(m->action), "allow");
		sbx_text_cut(m->text, sizeof(m->text), "%s", allow->v[i]);
		sbx_text_cut(m->origin, sizeof(m->origin), "%s", p->profile_file);
	}
	for (size_t i = 0; i < p->commands.n_programs; i++) {
		const struct sbx_program *x = &p->commands.programs[i];

		if (x->why != SBX_PROGRAM_INTERPRETER)
			continue;
		m = sbx_explained_match_add(e);
		sbx_text_cut(m->layer, sizeof(m->layer), "%s", sbx_program_why_str(x->why));
		sbx_text_cut(m->action, sizeof(m->action), "allow");
		sbx_text_cut(m->text, sizeof(m->text), "%s", x->path);
		sbx_text_cut(m->origin, sizeof(m->origin), "%s", x->for_what);
	}
}

static const char *reason_of(int status)
{
	return status == SBX_EXIT_NOT_EXECUTABLE ? "refused" :
	       status == SBX_EXIT_NOT_FOUND	 ? "not_found" :
						   "not_planned";
}

/* The list in the profile that has to change, where it is one of the profile's. */
static void tell_change(const struct sbx_dry_plan *base, const char *command, int status,
			struct sbx_explained *e)
{
	const struct sbx_profile *p = base->plan->profile;

	if (status != SBX_EXIT_NOT_EXECUTABLE)
		return;
	for (size_t i = 0; i < p->commands.deny.n; i++) {
		if (!strstr(e->why, "denied by profile") ||
		    !sbx_entry_matches(p->commands.deny.v[i], command))
			continue;
		sbx_explained_change_add(e, "remove '%s' from commands.deny (%s)",
					 p->commands.deny.v[i], base->plan->profile_file);
	}
	if (p->commands.allow.n && strstr(e->why, "is not on the commands.allow list"))
		sbx_explained_change_add(e, "commands.allow: ['%s'] (%s)", command,
					 base->plan->profile_file);
}

/* Would the command be allowed without the draft? 1 or 0, or -errno. */
static int allowed_without(const char *const *words, const char *command)
{
	SBX_CLEANUP(sbx_dry_plan_freep) struct sbx_dry_plan *d = NULL;
	int r = sbx_dry_plan_new(words, command, NULL, &d);

	return r < 0 ? r : r == 0;
}

/* A draft of a tool rule. One that denies is named by the refusal. One that allows decides where
 * the command was refused without it. */
static int tell_draft(const struct sbx_dry_plan *base, const char *const *words,
		      const char *command, struct sbx_explained *e)
{
	const struct sbx_rule_draft *draft = base->options.draft;
	int r = e->allowed ? allowed_without(words, command) : 0;

	if (r < 0)
		return r;
	e->draft.asked = true;
	e->draft.decides = draft->action == SBX_ALLOW ?
				   e->allowed && r == 0 :
				   strstr(e->why, "denied by " SBX_DENIED_BY_DRAFT ":") != NULL;
	e->draft.matches = e->draft.decides || sbx_entry_matches(draft->pattern, command);
	sbx_explained_draft_why(e);
	return 0;
}

int sbx_explain_command(const struct sbx_dry_plan *base, const char *const *words,
			const char *command, struct sbx_explained *ret_e)
{
	SBX_CLEANUP(sbx_dry_plan_freep) struct sbx_dry_plan *d = NULL;
	struct sbx_explained *e = ret_e;
	int r = plan_with(base, words, NULL, NULL, command, &d);

	*e = (struct sbx_explained){ .allowed = r == 0 };
	sbx_text_cut(e->subject, sizeof(e->subject), "command %s", command);
	if (r < 0)
		return r;
	if (r == 0) {
		tell_command(d->plan, command, e);
		sbx_explained_change_add(e, "commands.deny: ['%s'] (%s)", command,
					 d->plan->profile_file);
		return base->options.draft ? tell_draft(base, words, command, e) : 0;
	}
	sbx_text_cut(e->reason, sizeof(e->reason), "%s", reason_of(r));
	tell_refusals(d, "command", e);
	tell_change(base, command, r, e);
	return base->options.draft ? tell_draft(base, words, command, e) : 0;
}
