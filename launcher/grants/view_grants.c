/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a sandbox is granted: the profile's mounts, the flags' and the current directory, outer ones
 * first.
 *
 * A grant is judged by sys/path and kept as the O_PATH fd that was judged; one that will be id-mapped is judged for
 * its owner too (owner.h). Two more rules are ours: it may not be the state or runtime directory of sbx, and where
 * one of those lies below a grant an empty file system covers it: it holds what other sandboxes run with (their
 * /etc) and control sockets.
 *
 * An explicit mount that is refused ends the run, and so does a current directory that is refused, unless --scratch,
 * --chdir or a home that stays say where the command works: what it made in the scratch home would be lost.
 */
#include "launcher/rootfs/view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/grants/idmap.h"
#include "launcher/grants/keep_target.h"
#include "launcher/grants/owner.h"
#include "launcher/grants/session_sockets.h"
#include "launcher/grants/view_cache.h"
#include "launcher/grants/view_grants.h"
#include "launcher/grants/view_repository.h"
#include "launcher/rootfs/draft.h"
#include "launcher/rootfs/overlay.h"
#include "launcher/rootfs/view_home.h"
#include "launcher/rootfs/view_root.h"
#include "policy/option_form.h"
#include "sys/fs/path_normalise.h"

#define GRANTS_MAX   SBX_GRANTS_MAX
#define PREFIXES_MAX 128

struct grant {
	char *source, *target; /* absolute; the target normalised. No source: an empty directory in memory */
	uint64_t size_bytes;   /* of that; 0: not said */
	const char *who;       /* what asked for it, in messages; NULL: by its origin */
	bool writable, optional;
	bool home;		 /* what stays at the home's place */
	bool idmap_or_read_only; /* a source that cannot be id-mapped is mounted read-only */
	enum sbx_mount_origin origin;
	int mount_fd; /* made already: the current directory's; else -1 */
};

/* Directories of sbx. The first two are never seen inside; none may be written from inside, by itself
 * or by way of a directory above (a mount over it does not help: what is above it can be renamed):
 * whoever writes there decides how the next sandbox is built. */
enum { OWN_STATE, OWN_RUNTIME, N_OWN_HIDDEN, OWN_CONFIG = N_OWN_HIDDEN, OWN_USER_CONFIG, OWN_LIBEXEC, OWN_DATA, N_OWN };

/* What every sandbox sees of the host in the host's root may be read in a minimal one: no prefix need say so. */
static const char *const system_dirs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };
enum { N_SYSTEM_DIRS = SBX_N_ELEMENTS(system_dirs) };

/* What the parts of this file share while the view is built. */
struct builder {
	const struct sbx_draft *d;
	struct sbx_err_list *errs;
	size_t n_grants;
	const struct grant *overlay; /* what the workspace is; NULL: it is direct, or there is none */
	struct grant grants[GRANTS_MAX];
	char *prefixes[PREFIXES_MAX + 1]; /* of the system policy, or the default ones */
	const char *read_prefixes[PREFIXES_MAX + N_SYSTEM_DIRS + 1]; /* in a minimal root: these, and the system's */
	const char *blocked[2 * PREFIXES_MAX + 1];
	char *own[N_OWN]; /* real paths */
	struct sbx_session_sockets sockets;
};

/* --- rules for grants --- */

/* "~" and "~/x" are the sandbox's user's. malloc'ed. */
static char *expand_home(const struct sbx_draft *d, const char *path)
{
	char *s;

	if (path[0] != '~' || (path[1] && path[1] != '/'))
		return strdup(path);
	return asprintf(&s, "%s%s", d->facts->home, path + 1) < 0 ? NULL : s;
}

static int collect_rules(struct builder *b)
{
	static const char *const defaults[] = { "~",	 "/tmp", "/var/tmp", "/srv",
						"/data", "/mnt", "/opt" };
	const struct sbx_str_list *prefixes = &b->d->system->allowed_prefixes;
	const struct sbx_str_list *blocked[] = { &b->d->system->blocked_segments,
						 &b->d->profile->filesystem.blocked_segments };
	const struct sbx_facts *f = b->d->facts;
	const char *const own_dirs[N_OWN] = {
		[OWN_STATE] = f->state_dir,	      [OWN_RUNTIME] = f->runtime_dir,
		[OWN_CONFIG] = f->config_dir,	      [OWN_USER_CONFIG] = f->user_config_dir,
		[OWN_LIBEXEC] = f->libexec_dir, [OWN_DATA] = f->data_dir,
	};
	size_t n = prefixes->n ? prefixes->n : SBX_N_ELEMENTS(defaults), n_blocked = 0;

	for (size_t i = 0; i < N_OWN; i++) {
		b->own[i] = sbx_path_real_location(own_dirs[i]);
		if (!b->own[i])
			return -ENOMEM;
	}
	if (n > PREFIXES_MAX) /* what is left out admits nothing */
		n = PREFIXES_MAX;
	for (size_t i = 0; i < n; i++) {
		b->prefixes[i] = expand_home(b->d, prefixes->n ? prefixes->v[i] : defaults[i]);
		if (!b->prefixes[i])
			return -ENOMEM;
	}
	memcpy(b->read_prefixes, b->prefixes, n * sizeof(b->prefixes[0]));
	memcpy(b->read_prefixes + n, system_dirs, sizeof(system_dirs));
	for (size_t l = 0; l < SBX_N_ELEMENTS(blocked); l++)
		for (size_t i = 0; i < blocked[l]->n; i++) {
			/* Cutting this list short would grant more: refuse instead. */
			if (n_blocked >= SBX_N_ELEMENTS(b->blocked) - 1) {
				sbx_err_list_add(b->errs, "", 0, 0,
						 "more than %zu blocked segments",
						 SBX_N_ELEMENTS(b->blocked) - 1);
				return SBX_EXIT_REFUSED;
			}
			b->blocked[n_blocked++] = blocked[l]->v[i];
		}
	return sbx_session_sockets_find(f, &b->sockets);
}

static struct sbx_path_rules rules_for(const struct builder *b, bool writable)
{
	bool system = b->d->view->root.kind == SBX_ROOT_MINIMAL && !writable;

	return (struct sbx_path_rules){ .prefixes = system ? b->read_prefixes : (const char *const *)b->prefixes,
					.blocked_segments = b->blocked,
					.home = b->d->facts->home,
					.sockets = b->sockets.v,
					.n_sockets = b->sockets.n,
					.writable = writable };
}

/* The profile's own prefixes narrow the system's. */
static int check_profile_prefixes(const struct builder *b, const char *resolved,
				  struct sbx_err *err)
{
	const struct sbx_str_list *l = &b->d->profile->filesystem.allowed_prefixes;
	const struct sbx_path_rules rules = rules_for(b, true);

	for (size_t i = 0; i < l->n; i++) {
		SBX_AUTO_FREE char *prefix = expand_home(b->d, l->v[i]);

		if (!prefix)
			return -ENOMEM;
		if (sbx_path_prefix_admits(resolved, prefix, &rules))
			return 0;
	}
	if (l->n == 0)
		return 0;
	sbx_err_set(err, "'%s' is outside the allowed_prefixes of profile '%s'", resolved,
		    b->d->options->profile);
	return SBX_PATH_E_PREFIX;
}

static int refuse_own_dirs(const struct builder *b, const char *resolved, bool writable,
			   struct sbx_err *err)
{
	for (size_t i = 0; i < N_OWN; i++) {
		if (sbx_path_in_prefix(resolved, b->own[i]) && (writable || i < N_OWN_HIDDEN)) {
			sbx_err_set(err, "'%s' is where sbx keeps its own files", resolved);
			return SBX_PATH_E_FORBIDDEN;
		}
		if (writable && sbx_path_in_prefix(b->own[i], resolved)) {
			sbx_err_set(err, "'%s' holds sbx's own '%s': grant it read-only, or a directory "
				    "below or beside it", resolved, b->own[i]);
			return SBX_PATH_E_FORBIDDEN;
		}
	}
	return 0;
}

/* A directory as root is read-only, also at another place. */
static int refuse_root_dir(const struct builder *b, const char *resolved, struct sbx_err *err)
{
	const char *root = b->d->view->root.dir.resolved, *where;

	if (!root || (!sbx_path_in_prefix(root, resolved) && !sbx_path_in_prefix(resolved, root)))
		return 0;
	where = strcmp(root, resolved) == 0 ? "is" : sbx_path_in_prefix(root, resolved) ? "holds" : "is in";
	sbx_err_set(err, "'%s' %s the sandbox's root '%s', which is read-only: grant it read-only, or a directory "
		    "beside it", resolved, where, root);
	return SBX_PATH_E_FORBIDDEN;
}

/* 0, SBX_PATH_E_* (_MISSING, too, only for what would pass; its path is handed out all the same), -errno. */
static int judge_source(const struct builder *b, const char *source, bool writable,
			struct sbx_path *ret_path, struct sbx_err *err)
{
	const struct sbx_path_rules rules = rules_for(b, writable);
	struct sbx_path path = { .fd = -1 };
	struct sbx_err why = { 0 };
	int r = sbx_path_judge(source, &rules, err, &path), more = 0;

	if (r == 0 || r == SBX_PATH_E_MISSING)
		more = check_profile_prefixes(b, path.resolved, &why);
	if ((r == 0 || r == SBX_PATH_E_MISSING) && more == 0)
		more = refuse_own_dirs(b, path.resolved, writable, &why);
	if ((r == 0 || r == SBX_PATH_E_MISSING) && more == 0 && writable)
		more = refuse_root_dir(b, path.resolved, &why);
	if (r == 0 && more == 0)
		more = sbx_owner_judge(b->d, &path, writable, &why);
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

/* 0, or SBX_PATH_E_FORBIDDEN. */
static int judge_target(const struct builder *b, const struct grant *g, struct sbx_err *err)
{
	const char *problem = sbx_view_target_problem(b->d->view->root.kind, g->target);

	if (!problem && strcmp(g->target, b->d->facts->home) != 0 &&
	    sbx_path_in_prefix(b->d->facts->home, g->target))
		problem = "it would hide the scratch home";
	if (!problem)
		return 0;
	sbx_err_set(err, "nothing can be mounted at '%s': %s", g->target, problem);
	return SBX_PATH_E_FORBIDDEN;
}

/* An overlay's writes do not arrive there. */
static bool is_written(const struct builder *b, const struct grant *g)
{
	return g->writable && g != b->overlay && !(g->origin == SBX_ORIGIN_CWD && sbx_draft_wants_overlay(b->d));
}

/* As judge_source(). */
static int judge(const struct builder *b, const struct grant *g, struct sbx_path *ret_path,
		 struct sbx_err *err)
{
	struct sbx_path path = { .fd = -1 };
	int r = judge_target(b, g, err);

	if (r != 0)
		return r;
	r = judge_source(b, g->source, g->writable, &path, err);
	if (r == 0 && is_written(b, g))
		r = sbx_owner_check_set_id(b->d, &path, err);
	if (r != 0 && r != SBX_PATH_E_MISSING) {
		sbx_path_fini(&path);
		return r;
	}
	*ret_path = path;
	return r;
}

/* --- collecting grants --- */

static int refuse_grant(struct builder *b, const struct grant *g, const struct sbx_err *err)
{
	const char *who = g->who			      ? g->who
			  : g->origin == SBX_ORIGIN_PROFILE ? "filesystem.mounts"
			  : g->origin == SBX_ORIGIN_CWD	    ? "the current directory"
			  : g->writable			  ? "--bind"
							  : "--ro-bind";

	sbx_err_list_add(b->errs, g->origin == SBX_ORIGIN_PROFILE ? b->d->profile_file : "", 0, 0,
			 "%s: %s", who, err->msg);
	return SBX_EXIT_REFUSED;
}

static int collect(struct builder *b, const char *who, const char *source, const char *target,
		   enum sbx_mount_origin origin, bool writable, bool optional)
{
	struct grant *g;
	struct sbx_err err = { 0 };
	struct grant said = { .origin = origin, .writable = writable, .who = who };
	SBX_AUTO_FREE char *asked = NULL;

	if (b->n_grants >= GRANTS_MAX) {
		sbx_err_set(&err, "more than %d mounts", GRANTS_MAX);
		return refuse_grant(b, &said, &err);
	}
	g = &b->grants[b->n_grants];
	g->source = source ? expand_home(b->d, source) : NULL;
	asked = target || source ? expand_home(b->d, target ? target : source) : NULL;
	if ((source && !g->source) || !asked)
		return -ENOMEM;
	g->who = who;
	b->n_grants++;
	g->origin = origin;
	g->writable = writable;
	g->optional = optional;
	g->mount_fd = -1;
	g->target = sbx_path_normalise(asked);
	if (!g->target) {
		sbx_err_set(
			&err,
			"a mount needs a place that is an absolute path without '..', of at most %d bytes and with "
			"names of at most %d, and not '%s'",
			PATH_MAX - 1, NAME_MAX, asked);
		return refuse_grant(b, &said, &err);
	}
	return 0;
}

static int collect_tmpfs(struct builder *b)
{
	enum sbx_mount_origin origin;
	const char *text;
	int r = 0;

	for (size_t i = 0; r == 0 && (text = sbx_view_tmpfs_at(b->d, i, &origin)); i++) {
		uint64_t size;
		SBX_AUTO_FREE char *dir = strndup(text, sbx_form_tmpfs_split(text, &size));

		if (!dir)
			return -ENOMEM;
		r = collect(b, origin == SBX_ORIGIN_FLAG ? "--tmpfs" : "filesystem.tmpfs", NULL, dir, origin, true,
			    false);
		if (r == 0)
			b->grants[b->n_grants - 1].size_bytes = size;
	}
	return r;
}

static bool is_collected(const struct builder *b, const char *who, const char *source)
{
	for (size_t i = 0; i < b->n_grants; i++)
		if (b->grants[i].who == who && strcmp(b->grants[i].source, source) == 0)
			return true;
	return false;
}

/* A file of the user's home at its place. A profile and the one that it extends may both name it. */
static int collect_home_read(struct builder *b, const char *name)
{
	static const char who[] = "filesystem.home_read";
	SBX_AUTO_FREE char *path = NULL, *source = NULL;

	if (asprintf(&path, "%s/%s", b->d->facts->home, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	source = sbx_path_normalise(path);
	return source && is_collected(b, who, source) ? 0 :
	       collect(b, who, source ? source : path, NULL, SBX_ORIGIN_PROFILE, false, true);
}

static int collect_homes(struct builder *b)
{
	const struct sbx_str_list *read = &b->d->profile->filesystem.home_read;
	enum sbx_mount_origin origin;
	const char *home = sbx_view_home_asked(b->d->options, b->d->facts, b->d->profile, &origin);
	int r = 0;

	if (home) {
		r = collect(b, origin == SBX_ORIGIN_FLAG ? "--home" : "filesystem.home", home, b->d->facts->home,
			    origin, true, false);
		if (r == 0)
			b->grants[b->n_grants - 1].home = true;
	}
	if (r == 0 && !home && b->d->profile->filesystem.home && b->d->facts->throwaway_user)
		r = sbx_notes_add(b->d->notes, "a user made up for this run has no home that stays: name a user with --user");
	if (r == 0 && read->n > 0 && b->d->facts->throwaway_user)
		return sbx_notes_add(b->d->notes, "filesystem.home_read: a user made up for this run has no home to read");
	for (size_t i = 0; i < read->n && r == 0; i++)
		r = collect_home_read(b, read->v[i]);
	return r;
}

/* "." and "./x" of a flag are of the caller's directory. 0; -ENOMEM; SBX_EXIT_REFUSED where it has no name. */
static int from_cwd(struct builder *b, const char *source, char **ret_path)
{
	const char *cwd = b->d->facts->cwd;

	*ret_path = NULL;
	if (strcmp(source, ".") != 0 && strncmp(source, "./", 2) != 0)
		return 0;
	if (!cwd) {
		sbx_err_list_add(b->errs, "", 0, 0, "'%s': the current directory has no name (was it removed?)", source);
		return SBX_EXIT_REFUSED;
	}
	return asprintf(ret_path, "%s%s", cwd, source + 1) < 0 ? -ENOMEM : 0;
}

static int collect_bind(struct builder *b, const struct sbx_bind_option *bind)
{
	SBX_AUTO_FREE char *path = NULL;
	int r = from_cwd(b, bind->source, &path);

	return r ? r : collect(b, NULL, path ? path : bind->source, bind->target, SBX_ORIGIN_FLAG, bind->writable, false);
}

static int collect_all(struct builder *b)
{
	const struct sbx_profile *profile = b->d->profile;
	const struct sbx_options *o = b->d->options;
	int r = 0;

	for (size_t i = 0; i < profile->filesystem.n_mounts && r == 0; i++) {
		const struct sbx_mount_entry *m = &profile->filesystem.mounts[i];

		size_t n = b->n_grants;

		r = collect(b, NULL, m->source, m->target, SBX_ORIGIN_PROFILE, m->writable, m->optional);
		if (b->n_grants > n)
			b->grants[n].idmap_or_read_only = m->idmap_or_read_only;
	}
	for (size_t i = 0; i < o->n_binds && r == 0; i++)
		r = collect_bind(b, &o->binds[i]);
	if (r == 0)
		r = collect_tmpfs(b);
	return r == 0 ? collect_homes(b) : r;
}

/* Behind all else, so that no current directory is taken for one of them. */
static int collect_caches(struct builder *b)
{
	SBX_AUTO_FREE char *own = NULL, *dir = NULL;
	const struct sbx_view_cache *c;
	struct sbx_err err = { 0 };
	int r = 0;

	if (!b->d->options->cache)
		return 0;
	if (b->d->options->dry_run)
		return sbx_notes_add(b->d->notes, "--cache: its directories are made and mounted by a run");
	/* Root's own state directory is closed to the sandbox's user, whose own is taken. */
	if (b->d->facts->privileged && asprintf(&own, "%s/.local/state/sbx", b->d->facts->home) < 0) {
		own = NULL;
		return -ENOMEM;
	}
	r = sbx_view_cache_dir(b->d, own ? own : b->own[OWN_STATE], &dir, &err);
	if (r > 0)
		sbx_err_list_add(b->errs, "", 0, 0, "--cache: %s", err.msg);
	for (size_t i = 0; r == 0 && (c = sbx_view_cache_at(i)); i++) {
		SBX_AUTO_FREE char *source = NULL, *target = NULL;

		if (asprintf(&source, "%s/%s", dir, c->name) < 0 || asprintf(&target, "%s/%s", b->d->facts->home, c->place) < 0)
			return -ENOMEM;
		r = collect(b, "--cache", source, target, SBX_ORIGIN_CACHE, true, false);
	}
	return r;
}

/* Outer targets before what lies below them: a byte order does that, '/' sorts low enough among the
 * descendants of one directory. */
static int compare_targets(const void *a, const void *b)
{
	const struct grant *x = a, *y = b;

	return strcmp(x->target, y->target);
}

/* --- mounting grants --- */

/* A place to mount on can be made in it without leaving anything on the host. */
static bool is_fresh(const struct sbx_mount_op *op)
{
	return (op->kind == SBX_MOUNT_TMPFS || op->kind == SBX_MOUNT_SCRATCH) && op->origin != SBX_ORIGIN_MASK;
}

/* Something to mount on must be there already where a grant lies inside another one: it would be made on the
 * host. */
static int check_mount_point(struct builder *b, const struct grant *g, mode_t mode,
			     struct sbx_err *err)
{
	struct sbx_view_hit hit;
	bool inside = false, in_home = false;
	int r = sbx_view_root_make_room(b->d, g->target, mode, err);

	if (r != 0)
		return r;
	for (size_t i = 0; i < b->d->view->n_mounts; i++) {
		const struct sbx_mount_op *op = &b->d->view->mounts[i];

		if (op->origin == SBX_ORIGIN_VIEW || !sbx_path_in_prefix(g->target, op->dest))
			continue;
		if (strcmp(op->dest, g->target) == 0) {
			sbx_err_set(err, "two mounts at '%s'", g->target);
			return SBX_EXIT_REFUSED;
		}
		in_home = op->is_home;
		inside = !is_fresh(op);
	}
	if (in_home)
		return sbx_view_home_check_place(b->d, g->target, mode, err);
	if (!inside)
		return 0;
	r = sbx_view_resolve(b->d, g->target, NULL, NULL, &hit);
	if (r < 0)
		return r;
	if (r == 0 && strcmp(hit.path, g->target) == 0 && S_ISDIR(hit.mode) == S_ISDIR(mode))
		return 0;
	sbx_err_set(err, "'%s' lies inside another mount, which has no such %s to mount on",
		    g->target, S_ISDIR(mode) ? "directory" : "file");
	return SBX_EXIT_REFUSED;
}

/* Cover the directories of sbx below a grant. 0, SBX_EXIT_REFUSED with @err, -ENOMEM. */
static int mask_own_dirs(struct builder *b, const char *source, const char *target, struct sbx_err *err)
{
	for (size_t i = 0; i < N_OWN_HIDDEN; i++) {
		SBX_AUTO_FREE char *dest = NULL;
		const char *other = b->own[N_OWN_HIDDEN - 1 - i];

		if (!sbx_path_in_prefix(b->own[i], source))
			continue;
		/* Under the cover of the other already: there is nothing left to mount on. */
		if (sbx_path_in_prefix(b->own[i], other) && (i > 0 || strcmp(b->own[i], other) != 0))
			continue;
		if (asprintf(&dest, "%s%s", target, b->own[i] + strlen(source)) < 0)
			return -ENOMEM;
		if (strlen(dest) >= PATH_MAX) {
			sbx_err_set(err, "nothing can be mounted at '%s': sbx's own '%s' is below '%s' and could not "
				    "be covered there: the path is too long", target, b->own[i], source);
			return SBX_EXIT_REFUSED;
		}
		if (sbx_view_add_tmpfs(b->d, dest, 4096, 0500) < 0)
			return -ENOMEM;
		b->d->view->mounts[b->d->view->n_mounts - 1].origin = SBX_ORIGIN_MASK;
		if (sbx_view_add_plain(b->d, SBX_MOUNT_REMOUNT_RO, dest) < 0)
			return -ENOMEM;
		b->d->view->mounts[b->d->view->n_mounts - 1].origin = SBX_ORIGIN_MASK;
	}
	return 0;
}

/* The mount of an id-mapped grant, or what becomes of one that cannot be. *ret_fd -1: it is bound as it is.
 * 0, SBX_EXIT_REFUSED with @err, -errno. */
static int map_grant(struct builder *b, struct grant *g, const struct sbx_path *path, int *ret_fd,
		     struct sbx_err *err)
{
	int r;

	*ret_fd = g->mount_fd;
	g->mount_fd = -1;
	if (*ret_fd >= 0 || !sbx_facts_idmap(b->d->facts))
		return 0;
	r = sbx_idmap_grant(b->d, path, g->writable, ret_fd, err);
	if (r != SBX_IDMAP_E_UNABLE)
		return r;
	if (!g->idmap_or_read_only)
		return SBX_EXIT_REFUSED;
	g->writable = false;
	r = sbx_notes_add(b->d->notes, "%s; so it is mounted read-only and as it is", err->msg);
	*err = (struct sbx_err){ 0 };
	return r;
}

/* Is it the home that stays, of a profile or flag that asks for one? */
static bool is_home(const struct sbx_draft *d, const struct sbx_mount_op *op)
{
	enum sbx_mount_origin origin;

	return sbx_view_home_asked(d->options, d->facts, d->profile, &origin) && op->kind == SBX_MOUNT_BIND && op->writable &&
	       strcmp(op->dest, d->facts->home) == 0;
}

/* Takes @path. */
static int mount_grant(struct builder *b, struct grant *g, struct sbx_path *path, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int mount_fd = -1;
	struct sbx_mount_op *op;
	int r = check_mount_point(b, g, path->st.st_mode, err);

	if (r == 0 && g == b->overlay && sbx_overlay_has_mounts_below(path->resolved)) {
		sbx_err_set(err, "'%s' cannot be an overlay: another file system is mounted below it",
			    path->resolved);
		r = SBX_EXIT_REFUSED;
	}
	if (r == 0)
		r = map_grant(b, g, path, &mount_fd, err);
	op = r == 0 ? sbx_view_add(b->d, g == b->overlay && g->writable ? SBX_MOUNT_OVERLAY : SBX_MOUNT_BIND,
				   g->target) : NULL;
	if (!op) {
		sbx_path_fini(path);
		return r ? r : -ENOMEM;
	}
	op->origin = g->origin;
	op->writable = g->writable;
	op->is_home = is_home(b->d, op);
	op->idmap = mount_fd >= 0;
	op->mount_fd = sbx_fd_steal(&mount_fd);
	op->source = *path;
	path->fd = -1;
	path->resolved = NULL;
	return mask_own_dirs(b, op->source.resolved, g->target, err);
}

/* A cache at a place that something else has is not mounted, and a line says so. 0, > 0 with @err, -errno. */
static int mount_cache(struct builder *b, struct grant *g, struct sbx_err *err)
{
	struct sbx_path path = { .fd = -1 };
	struct sbx_err why = { 0 };
	int r = check_mount_point(b, g, S_IFDIR, &why);

	if (r > 0)
		return sbx_notes_add(b->d->notes, "--cache: none at '%s': %s", g->target, why.msg);
	if (r == 0)
		r = sbx_view_cache_open(b->d, g->source, &path, err);
	return r == 0 ? mount_grant(b, g, &path, err) : r;
}

/* A home that is not there yet, in the place that was judged. --dry-run makes none. 0, SBX_PATH_E_* with @err, -errno. */
static int make_home(struct builder *b, struct grant *g, struct sbx_path *path, struct sbx_err *err)
{
	int r;

	*err = (struct sbx_err){ 0 };
	if (b->d->options->dry_run) {
		free(g->source);
		g->source = NULL; /* nothing is there: an empty directory stands for it */
		r = sbx_notes_add(b->d->notes, "the home '%s' will be made", path->resolved);
		sbx_path_fini(path);
		return r == 0 ? sbx_view_add_tmpfs_asked(b->d, g->target, 0, g->origin) : r;
	}
	r = sbx_view_make_dirs(path->resolved, err);
	sbx_path_fini(path);
	path->fd = -1;
	return r == 0 ? judge(b, g, path, err) : r;
}

static int mount_tmpfs(struct builder *b, const struct grant *g, struct sbx_err *err)
{
	int r = judge_target(b, g, err);

	if (r == 0)
		r = check_mount_point(b, g, S_IFDIR, err);
	return r == 0 ? sbx_view_add_tmpfs_asked(b->d, g->target, g->size_bytes, g->origin) : r;
}

/* A user made up for this run gets the directory of somebody else by an id-map, or not at all. */
static int map_cwd(struct builder *b, const struct sbx_path *path, int *ret_mount_fd, struct sbx_err *err)
{
	struct sbx_err why = { 0 };
	int r;

	if (!sbx_facts_idmap(b->d->facts))
		return 0;
	r = sbx_idmap_grant(b->d, path, true, ret_mount_fd, &why);
	/* A user with a name may not write either where root is the owner. */
	if (r > 0 && (path->st.st_uid == 0 || path->st.st_gid == 0))
		*err = why;
	else if (r > 0)
		sbx_err_set(err, "'%s' is not granted to a user made up for this run (%s): name one with --user",
			    path->resolved, why.msg);
	return r;
}

/* May @g be granted at its own path, as the directory to work in? 0; > 0 with @err; -errno. */
static int judge_work_dir(struct builder *b, const struct grant *g, struct sbx_path *ret_path, int *ret_mount_fd,
			  struct sbx_err *err)
{
	int r = judge(b, g, ret_path, err);

	if (r == 0 && (ret_path->st.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH)) {
		sbx_err_set(err, "'%s' is everybody's: work in a directory below it", g->source);
		r = SBX_PATH_E_FORBIDDEN;
	}
	if (r == 0)
		r = sbx_view_root_make_room(b->d, g->target, S_IFDIR, err);
	if (r == 0)
		r = map_cwd(b, ret_path, ret_mount_fd, err);
	if (r != 0) {
		sbx_path_fini(ret_path);
		ret_path->fd = -1;
	}
	return r;
}

/* The repository that the current directory is in, whole, so that git works there. *ret_top NULL: that is not granted, or
 * there is none. 0 or -errno. */
static int consider_repository(struct builder *b, struct sbx_path *ret_path, int *ret_mount_fd, char **ret_top)
{
	SBX_AUTO_FREE char *top = NULL;
	struct grant g = { .writable = true, .origin = SBX_ORIGIN_CWD };
	struct sbx_err err = { 0 };
	int r = sbx_view_repository(b->d->facts->cwd, &top);

	if (r < 0 || !top)
		return r;
	g.source = g.target = top;
	r = judge_work_dir(b, &g, ret_path, ret_mount_fd, &err);
	if (r < 0)
		return r;
	if (r > 0)
		return sbx_notes_add(b->d->notes, "git finds no repository here: '%s', which the current directory is in, is not granted: "
				     "%s", top, err.msg);
	r = sbx_notes_add(b->d->notes, "'%s' is granted, the git repository that the current directory is in (--bind \"$PWD\" grants "
			  "that directory alone)", top);
	*ret_top = sbx_steal_ptr(&top);
	return r;
}

/* What is granted as the current directory, in *ret_dir; NULL: nothing. Why not goes to @why: places where nobody expects
 * their work, such as /. One that would be granted but for what is in it is refused: results would be lost in the scratch
 * home. */
static int consider_cwd(struct builder *b, struct sbx_path *ret_path, int *ret_mount_fd, char *why, size_t n_why,
			char **ret_dir)
{
	const struct sbx_facts *f = b->d->facts;
	struct grant g = {
		.source = f->cwd, .target = f->cwd, .writable = true, .origin = SBX_ORIGIN_CWD
	};
	struct sbx_err err = { 0 };
	int r;

	if (!f->cwd) {
		snprintf(why, n_why, "the current directory has no name (was it removed?)");
		return 0;
	}
	r = consider_repository(b, ret_path, ret_mount_fd, ret_dir);
	if (r != 0 || *ret_dir)
		return r;
	r = judge_work_dir(b, &g, ret_path, ret_mount_fd, &err);
	if (r < 0)
		return r;
	if (r == SBX_PATH_E_SET_ID)
		return refuse_grant(b, &g, &err);
	/* Said once, and not by each of the command's tools. */
	if (r == 0 && f->privileged && ret_path->st.st_uid != f->uid && !sbx_facts_idmap(f) && !sbx_draft_wants_overlay(b->d) &&
	    faccessat(ret_path->fd, "", W_OK, AT_EACCESS | AT_EMPTY_PATH) < 0 && errno == EACCES)
		r = sbx_notes_add(b->d->notes, "'%s' belongs to uid %u, and '%s', the sandbox's user, may not write there: give it to that user "
				  "once (chown -R %s: '%s')", ret_path->resolved, ret_path->st.st_uid, f->user_name, f->user_name,
				  ret_path->resolved);
	if (r < 0)
		return r;
	sbx_text_cut(why, n_why, "%s", err.msg);
	if (r == 0 && !(*ret_dir = strdup(f->cwd)))
		return -ENOMEM;
	return 0;
}

static bool covered_by_grant(const struct builder *b, const char *path)
{
	for (size_t i = 0; i < b->n_grants; i++)
		if (!b->grants[i].home && sbx_path_in_prefix(path, b->grants[i].target))
			return true;
	return false;
}

/* The grant the current directory is in: the innermost, if it is writable. When they are sorted. */
static void choose_overlay(struct builder *b)
{
	const char *cwd = b->d->facts->cwd;
	const struct grant *innermost = NULL;

	for (size_t i = 0; i < b->n_grants && cwd; i++)
		if (!b->grants[i].home && b->grants[i].origin != SBX_ORIGIN_CACHE &&
		    sbx_path_in_prefix(cwd, b->grants[i].target))
			innermost = &b->grants[i];
	if (sbx_draft_wants_overlay(b->d) && innermost && innermost->source && innermost->writable)
		b->overlay = innermost;
}

/* Judge and mount all grants in order, @cwd_path (fd -1: none) among them. */
static int mount_all(struct builder *b, struct sbx_path *cwd_path)
{
	size_t n_before = b->errs->n;
	struct sbx_err overlap = { 0 };

	qsort(b->grants, b->n_grants, sizeof(b->grants[0]), compare_targets);
	choose_overlay(b);
	for (size_t i = 0; i < b->n_grants; i++) {
		struct grant *g = &b->grants[i];
		struct sbx_path path = { .fd = -1 };
		struct sbx_err err = { 0 };
		int r = 0;

		if (g->origin == SBX_ORIGIN_CWD) {
			path = *cwd_path;
			cwd_path->fd = -1;
			cwd_path->resolved = NULL;
		} else if (g->origin == SBX_ORIGIN_CACHE) {
			r = mount_cache(b, g, &err);
		} else {
			r = g->source ? judge(b, g, &path, &err) : mount_tmpfs(b, g, &err);
		}
		if (r == SBX_PATH_E_MISSING && g->optional) {
			sbx_path_fini(&path);
			continue;
		}
		if (r == SBX_PATH_E_MISSING && g->home)
			r = make_home(b, g, &path, &err);
		if (r == 0 && g->home && g->source)
			r = sbx_view_home_judge(b->d, &path, &err);
		if (r != 0)
			sbx_path_fini(&path);
		if (r == 0 && g->source && g->origin != SBX_ORIGIN_CACHE)
			r = mount_grant(b, g, &path, &err);
		if (r == -ENAMETOOLONG) {
			sbx_err_set(&err, "what leads to '%s' is too long", g->target);
			r = SBX_EXIT_REFUSED;
		}
		if (r < 0)
			return r;
		if (r > 0)
			refuse_grant(b, g, &err);
	}
	if (b->errs->n == n_before && sbx_view_home_check_overlap(b->d, &overlap) != 0)
		sbx_err_list_add(b->errs, "", 0, 0, "%s", overlap.msg);
	return b->errs->n > n_before ? SBX_EXIT_REFUSED : 0;
}

/* --- where --keep goes: judged as a writable grant is, by whoever the sandbox runs as --- */

static int judge_keep(struct builder *b, const char *why)
{
	const char *asked = b->d->options->keep;
	struct sbx_path path = { .fd = -1 };
	struct sbx_err err = { 0 };
	SBX_AUTO_FREE char *absolute = NULL;
	bool overlay = false;
	int r = SBX_EXIT_REFUSED;

	for (size_t i = 0; i < b->d->view->n_mounts; i++)
		overlay = overlay || b->d->view->mounts[i].kind == SBX_MOUNT_OVERLAY;
	if (asprintf(&absolute, "%s%s%s", asked[0] == '/' ? "" : b->d->facts->cwd ? b->d->facts->cwd : "",
		     asked[0] == '/' ? "" : "/", asked) < 0)
		return -ENOMEM;
	if (!overlay) {
		sbx_err_set(&err, "there is nothing to keep: %s", why[0] ? why :
			    "the current directory is not granted writable");
	} else {
		r = judge_source(b, absolute, true, &path, &err);
		if (r == 0 || r == SBX_PATH_E_MISSING) {
			err = (struct sbx_err){ 0 };
			r = sbx_keep_target_open(b->d, &path, &err);
		}
	}
	sbx_path_fini(&path);
	if (r > 0)
		sbx_err_list_add(b->errs, "", 0, 0, "--keep: %s", err.msg);
	return r > 0 ? SBX_EXIT_REFUSED : r;
}

static void builder_free(struct builder *b)
{
	for (size_t i = 0; i < b->n_grants; i++) {
		sbx_fd_close(b->grants[i].mount_fd);
		free(b->grants[i].source);
		free(b->grants[i].target);
	}
	for (size_t i = 0; i < PREFIXES_MAX; i++)
		free(b->prefixes[i]);
	for (size_t i = 0; i < N_OWN; i++)
		free(b->own[i]);
	sbx_session_sockets_fini(&b->sockets);
	free(b);
}
SBX_DEFINE_CLEANUP(struct builder, builder_free);

int sbx_view_add_grants(const struct sbx_draft *d, struct sbx_err_list *errs, char *why, size_t n_why)
{
	SBX_CLEANUP(builder_freep) struct builder *b = calloc(1, sizeof(*b));
	struct sbx_path cwd = { .fd = -1 };
	SBX_AUTO_CLOSE int cwd_mount_fd = -1;
	SBX_AUTO_FREE char *dir = NULL;
	int r;

	if (!b)
		return -ENOMEM;
	b->d = d;
	b->errs = errs;
	r = collect_rules(b);
	if (r == 0)
		r = collect_all(b);
	/* An explicit mount there says more than the default does: --ro-bind of it stays
	 * read-only. */
	if (r == 0 && !d->options->scratch && !(b->d->facts->cwd && covered_by_grant(b, b->d->facts->cwd)))
		r = consider_cwd(b, &cwd, &cwd_mount_fd, why, n_why, &dir);
	if (r == 0 && dir)
		r = collect(b, NULL, dir, NULL, SBX_ORIGIN_CWD, true, false);
	if (r == 0 && dir)
		b->grants[b->n_grants - 1].mount_fd = sbx_fd_steal(&cwd_mount_fd);
	if (r == 0)
		r = collect_caches(b);
	if (r == 0)
		r = mount_all(b, &cwd);
	if (r == 0 && d->options->keep)
		r = judge_keep(b, why);
	sbx_path_fini(&cwd);
	return r;
}

/* What sbx keeps of other sandboxes is in no root: it is not masked there, as it is below a grant. */
static int refuse_own_below(const struct builder *b, const struct sbx_path *path, struct sbx_err *err)
{
	for (size_t i = 0; i < N_OWN_HIDDEN; i++)
		if (sbx_path_in_prefix(b->own[i], path->resolved)) {
			sbx_err_set(err, "'%s' holds sbx's own '%s'", path->resolved, b->own[i]);
			return SBX_PATH_E_FORBIDDEN;
		}
	if (S_ISDIR(path->st.st_mode))
		return 0;
	sbx_err_set(err, "'%s' is no directory", path->resolved);
	return SBX_PATH_E_FORBIDDEN;
}

int sbx_view_judge_root(const struct sbx_draft *d, const char *source, struct sbx_path *ret_path, struct sbx_err_list *errs)
{
	SBX_CLEANUP(builder_freep) struct builder *b = calloc(1, sizeof(*b));
	SBX_AUTO_FREE char *path = expand_home(d, source);
	struct sbx_err err = { 0 };
	int r;

	if (!b || !path)
		return -ENOMEM;
	b->d = d;
	b->errs = errs;
	r = collect_rules(b);
	if (r != 0)
		return r;
	r = judge_source(b, path, false, ret_path, &err);
	if (r == 0)
		r = refuse_own_below(b, ret_path, &err);
	if (r > 0)
		sbx_err_list_add(errs, d->options->root ? "" : d->profile_file, 0, 0, "%s: %s",
				 d->options->root ? "--root" : "filesystem.root", err.msg);
	return r > 0 ? SBX_EXIT_REFUSED : r;
}
