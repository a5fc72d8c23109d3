/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Judges the source and the target of a grant.
 *
 * sys/fs/path.h judges a source by the rules of the policies; the O_PATH fd that was judged is the
 * one that is mounted. An id-mapped source is judged for its owner as well (owner.h). Two rules are
 * sbx's own: the sandbox may not have the state or runtime directory of sbx, which hold the files
 * and control sockets of other sandboxes, and may not write any directory of sbx.
 */
#include "launcher/grants/grant_judge.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/host/facts.h"
#include "launcher/user/owner.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"
#include "sys/fs/path_normalise.h"

static struct sbx_path_rules rules_for(const struct sbx_grants *all, bool writable)
{
	bool system = all->d->view->root.kind == SBX_ROOT_MINIMAL && !writable;

	return (struct sbx_path_rules){ .prefixes = system ? all->read_prefixes
							   : (const char *const *)all->prefixes,
					.blocked_segments = all->blocked,
					.home = all->d->facts->home,
					.sockets = all->sockets.v,
					.n_sockets = all->sockets.n,
					.writable = writable };
}

/* The profile's own prefixes narrow the system's. */
static int check_profile_prefixes(const struct sbx_grants *all, const char *resolved,
				  struct sbx_err *err)
{
	const struct sbx_str_list *l = &all->d->profile->filesystem.allowed_prefixes;
	const struct sbx_path_rules rules = rules_for(all, true);

	for (size_t i = 0; i < l->n; i++) {
		SBX_AUTO_FREE char *prefix = sbx_grant_expand_home(all->d, l->v[i]);

		if (!prefix)
			return -ENOMEM;
		if (sbx_path_prefix_admits(resolved, prefix, &rules))
			return 0;
	}
	if (l->n == 0)
		return 0;
	sbx_err_set(err, "'%s' is outside the allowed_prefixes of profile '%s'", resolved,
		    all->d->options->profile);
	return SBX_PATH_E_PREFIX;
}

static int refuse_own_dirs(const struct sbx_grants *all, const char *resolved, bool writable,
			   struct sbx_err *err)
{
	for (size_t i = 0; i < SBX_N_OWN; i++) {
		if (sbx_path_in_prefix(resolved, all->own[i]) &&
		    (writable || i < SBX_N_OWN_HIDDEN)) {
			sbx_err_set(err, "'%s' is where sbx keeps its own files", resolved);
			return SBX_PATH_E_FORBIDDEN;
		}
		if (writable && sbx_path_in_prefix(all->own[i], resolved)) {
			sbx_err_set(err,
				    "'%s' holds sbx's own '%s': grant it read-only, or a directory "
				    "below or beside it",
				    resolved, all->own[i]);
			return SBX_PATH_E_FORBIDDEN;
		}
	}
	return 0;
}

/* A directory that is the sandbox's root stays read-only, also where a grant shows it at another
 * place. */
static int refuse_root_dir(const struct sbx_grants *all, const char *resolved, struct sbx_err *err)
{
	const char *root = all->d->view->root.dir.resolved, *where;

	if (!root || (!sbx_path_in_prefix(root, resolved) && !sbx_path_in_prefix(resolved, root)))
		return 0;
	where = strcmp(root, resolved) == 0	     ? "is"
		: sbx_path_in_prefix(root, resolved) ? "holds"
						     : "is in";
	sbx_err_set(err,
		    "'%s' %s the sandbox's root '%s', which is read-only: grant it read-only, or a "
		    "directory beside it",
		    resolved, where, root);
	return SBX_PATH_E_FORBIDDEN;
}

int sbx_grant_judge_source(const struct sbx_grants *all, const char *source, bool writable,
			   struct sbx_path *ret_path, struct sbx_err *err)
{
	const struct sbx_path_rules rules = rules_for(all, writable);
	struct sbx_path path = { .fd = -1 };
	struct sbx_err why = { 0 };
	int r = sbx_path_judge(source, &rules, err, &path), more = 0;

	if (r == 0 || r == SBX_PATH_E_MISSING)
		more = check_profile_prefixes(all, path.resolved, &why);
	if ((r == 0 || r == SBX_PATH_E_MISSING) && more == 0)
		more = refuse_own_dirs(all, path.resolved, writable, &why);
	if ((r == 0 || r == SBX_PATH_E_MISSING) && more == 0 && writable)
		more = refuse_root_dir(all, path.resolved, &why);
	if (r == 0 && more == 0)
		more = sbx_owner_judge(all->d, &path, writable, &why);
	if (more != 0) {
		*err = why;
		r = more;
	}
	if (r != 0 && r != SBX_PATH_E_MISSING)
		sbx_path_fini(&path);
	else
		*ret_path = path;
	return r;
}

int sbx_grant_judge_target(const struct sbx_grants *all, const struct sbx_grant *g,
			   struct sbx_err *err)
{
	const char *problem = sbx_view_target_problem(all->d->view->root.kind, g->target);

	if (!problem && strcmp(g->target, all->d->facts->home) != 0 &&
	    sbx_path_in_prefix(all->d->facts->home, g->target))
		problem = "it would hide the scratch home";
	if (!problem)
		return 0;
	sbx_err_set(err, "nothing can be mounted at '%s': %s", g->target, problem);
	return SBX_PATH_E_FORBIDDEN;
}

/* Does the sandbox write to the source itself? With an overlay it does not. */
static bool is_written(const struct sbx_grants *all, const struct sbx_grant *g)
{
	return g->writable && g != all->overlay &&
	       !(g->origin == SBX_ORIGIN_CWD && sbx_draft_wants_overlay(all->d));
}

int sbx_grant_judge(const struct sbx_grants *all, const struct sbx_grant *g,
		    struct sbx_path *ret_path, struct sbx_err *err)
{
	struct sbx_path path = { .fd = -1 };
	int r = sbx_grant_judge_target(all, g, err);

	if (r != 0)
		return r;
	r = sbx_grant_judge_source(all, g->source, g->writable, &path, err);
	if (r == 0 && is_written(all, g))
		r = sbx_owner_check_set_id(all->d, &path, err);
	if (r != 0 && r != SBX_PATH_E_MISSING) {
		sbx_path_fini(&path);
		return r;
	}
	*ret_path = path;
	return r;
}
