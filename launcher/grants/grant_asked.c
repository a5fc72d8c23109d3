/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/grants/grant_asked.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/host/exit_status.h"
#include "launcher/host/facts.h"
#include "launcher/rootfs/view_home.h"
#include "launcher/rootfs/view_scratch.h"
#include "launcher/user/view_cache.h"
#include "launcher/view/draft.h"
#include "policy/forms/option_form.h"
#include "sys/fs/path_normalise.h"

int sbx_grant_ask(struct sbx_grants *all, const char *asked_by, const char *source,
		  const char *target, enum sbx_mount_origin origin, bool writable, bool optional)
{
	struct sbx_grant *g;
	struct sbx_err err = { 0 };
	struct sbx_grant refused = { .origin = origin, .writable = writable, .asked_by = asked_by };
	SBX_AUTO_FREE char *asked = NULL;

	if (all->n_grants >= SBX_GRANTS_MAX) {
		sbx_err_set(&err, "more than %d mounts", SBX_GRANTS_MAX);
		return sbx_grant_refuse(all, &refused, &err);
	}
	g = &all->grants[all->n_grants];
	g->source = source ? sbx_grant_expand_home(all->d, source) : NULL;
	asked = target || source ? sbx_grant_expand_home(all->d, target ? target : source) : NULL;
	if ((source && !g->source) || !asked)
		return -ENOMEM;
	g->asked_by = asked_by;
	all->n_grants++;
	g->origin = origin;
	g->writable = writable;
	g->optional = optional;
	g->mount_fd = -1;
	g->target = sbx_path_normalise(asked);
	if (!g->target) {
		sbx_err_set(&err,
			    "a mount needs a place that is an absolute path without '..', of at "
			    "most %d bytes and with names of at most %d, and not '%s'%s",
			    PATH_MAX - 1, NAME_MAX, asked,
			    origin == SBX_ORIGIN_FLAG && source && source[0] != '/' ?
				    "; one in this directory begins with ./" :
				    "");
		return sbx_grant_refuse(all, &refused, &err);
	}
	return 0;
}

static int collect_tmpfs(struct sbx_grants *all)
{
	enum sbx_mount_origin origin;
	const char *text;
	int r = 0;

	for (size_t i = 0; r == 0 && (text = sbx_view_tmpfs_at(all->d, i, &origin)); i++) {
		uint64_t size;
		SBX_AUTO_FREE char *dir = strndup(text, sbx_form_tmpfs_split(text, &size));

		if (!dir)
			return -ENOMEM;
		r = sbx_grant_ask(all, origin == SBX_ORIGIN_FLAG ? "--tmpfs" : "filesystem.tmpfs",
				  NULL, dir, origin, true, false);
		if (r == 0)
			all->grants[all->n_grants - 1].size_bytes = size;
	}
	return r;
}

static bool is_collected(const struct sbx_grants *all, const char *asked_by, const char *source)
{
	for (size_t i = 0; i < all->n_grants; i++)
		if (all->grants[i].asked_by == asked_by &&
		    strcmp(all->grants[i].source, source) == 0)
			return true;
	return false;
}

/* A file of the user's home at its own path. A profile and its base may both name the file: it is
 * granted once. */
static int collect_home_read(struct sbx_grants *all, const char *name)
{
	static const char asked_by[] = "filesystem.home_read";
	SBX_AUTO_FREE char *path = NULL, *source = NULL;

	if (asprintf(&path, "%s/%s", all->d->facts->home, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	source = sbx_path_normalise(path);
	return source && is_collected(all, asked_by, source)
		       ? 0
		       : sbx_grant_ask(all, asked_by, source ? source : path, NULL,
				       SBX_ORIGIN_PROFILE, false, true);
}

static int collect_homes(struct sbx_grants *all)
{
	const struct sbx_str_list *read = &all->d->profile->filesystem.home_read;
	enum sbx_mount_origin origin;
	const char *home =
		sbx_view_home_asked(all->d->options, all->d->facts, all->d->profile, &origin);
	int r = 0;

	if (home) {
		r = sbx_grant_ask(all, origin == SBX_ORIGIN_FLAG ? "--home" : "filesystem.home",
				  home, all->d->facts->home, origin, true, false);
		if (r == 0)
			all->grants[all->n_grants - 1].home = true;
	}
	if (r == 0 && !home && all->d->profile->filesystem.home && all->d->facts->throwaway_user)
		r = sbx_notes_add(all->d->notes, "a user made up for this run has no home that "
						 "stays: name a user with --user");
	if (r == 0 && read->n > 0 && all->d->facts->throwaway_user)
		return sbx_notes_add(
			all->d->notes,
			"filesystem.home_read: a user made up for this run has no home to read");
	for (size_t i = 0; i < read->n && r == 0; i++)
		r = collect_home_read(all, read->v[i]);
	return r;
}

/* "." and "./x" in a flag are relative to the caller's directory. *ret_path: malloc'ed; NULL:
 * @source is something else. 0; -ENOMEM; SBX_EXIT_REFUSED where that directory has no name. */
static int from_cwd(struct sbx_grants *all, const char *source, char **ret_path)
{
	const char *cwd = all->d->facts->cwd;

	*ret_path = NULL;
	if (strcmp(source, ".") != 0 && strncmp(source, "./", 2) != 0)
		return 0;
	if (!cwd) {
		sbx_err_list_add(all->errs, "", 0, 0,
				 "'%s': the current directory has no name (was it removed?)",
				 source);
		return SBX_EXIT_REFUSED;
	}
	return asprintf(ret_path, "%s%s", cwd, source + 1) < 0 ? -ENOMEM : 0;
}

static int collect_bind(struct sbx_grants *all, const struct sbx_bind_option *bind)
{
	SBX_AUTO_FREE char *path = NULL;
	int r = from_cwd(all, bind->source, &path);

	return r ? r
		 : sbx_grant_ask(all, NULL, path ? path : bind->source, bind->target,
				 SBX_ORIGIN_FLAG, bind->writable, false);
}

int sbx_grants_ask_all(struct sbx_grants *all)
{
	const struct sbx_profile *profile = all->d->profile;
	const struct sbx_options *o = all->d->options;
	int r = 0;

	for (size_t i = 0; i < profile->filesystem.n_mounts && r == 0; i++) {
		const struct sbx_mount_entry *m = &profile->filesystem.mounts[i];
		size_t n = all->n_grants;

		r = sbx_grant_ask(all, NULL, m->source, m->target, SBX_ORIGIN_PROFILE, m->writable,
				  m->optional);
		if (all->n_grants > n)
			all->grants[n].idmap_or_read_only = m->idmap_or_read_only;
	}
	for (size_t i = 0; i < o->n_binds && r == 0; i++)
		r = collect_bind(all, &o->binds[i]);
	if (r == 0)
		r = collect_tmpfs(all);
	return r == 0 ? collect_homes(all) : r;
}

int sbx_grants_ask_caches(struct sbx_grants *all)
{
	SBX_AUTO_FREE char *own = NULL, *dir = NULL;
	const struct sbx_view_cache *c;
	struct sbx_err err = { 0 };
	int r = 0;

	if (!all->d->options->cache)
		return 0;
	if (all->d->options->dry_run)
		return sbx_notes_add(all->d->notes,
				     "--cache: --dry-run makes and mounts none of its directories");
	/* The sandbox's user cannot reach root's state directory: take that user's own. */
	if (all->d->facts->privileged &&
	    asprintf(&own, "%s/.local/state/sbx", all->d->facts->home) < 0) {
		own = NULL;
		return -ENOMEM;
	}
	r = sbx_view_cache_dir(all->d, own ? own : all->own[SBX_OWN_STATE], &dir, &err);
	if (r > 0)
		sbx_err_list_add(all->errs, "", 0, 0, "--cache: %s", err.msg);
	for (size_t i = 0; r == 0 && (c = sbx_view_cache_at(i)); i++) {
		SBX_AUTO_FREE char *source = NULL, *target = NULL;

		if (asprintf(&source, "%s/%s", dir, c->name) < 0 ||
		    asprintf(&target, "%s/%s", all->d->facts->home, c->place) < 0)
			return -ENOMEM;
		r = sbx_grant_ask(all, "--cache", source, target, SBX_ORIGIN_CACHE, true, false);
	}
	return r;
}

bool sbx_grants_have(const struct sbx_grants *all, const char *path)
{
	for (size_t i = 0; i < all->n_grants; i++)
		if (!all->grants[i].home && sbx_path_in_prefix(path, all->grants[i].target))
			return true;
	return false;
}
