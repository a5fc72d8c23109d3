/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/fuzz/launcher/plan_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/plan/planner.h"
#include "launcher/setup/bwrap_argv.h"
#include "launcher/setup/plan_json.h"
#include "policy/lists/protected_path.h"
#include "sys/fs/path_normalise.h"

static void must(bool fine, const char *what, const char *path)
{
	if (fine)
		return;
	fprintf(stderr, "plan_check: %s: %s\n", what, path);
	abort();
}

/* --- paths --- */

/* The rest of @path below @top: "" where they are equal, NULL where @path is not below it. */
static const char *below(const char *path, const char *top)
{
	size_t n = top[1] ? strlen(top) : 0;

	if (strncmp(path, top, n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	return path + n + (path[n] == '/');
}

static bool is_cover(const struct sbx_mount_op *op)
{
	return op->kind == SBX_MOUNT_SELF_BIND || op->kind == SBX_MOUNT_MASK;
}

/* The mount that holds @path of the sandbox; self-binds and masks do not count. NULL: none. */
static const struct sbx_mount_op *shown_at(const struct sbx_plan *p, const char *path)
{
	for (size_t i = p->view.n_mounts; i > 0; i--) {
		const struct sbx_mount_op *op = &p->view.mounts[i - 1];

		if (op->kind != SBX_MOUNT_REMOUNT_RO && !is_cover(op) && below(path, op->dest))
			return op;
	}
	return NULL;
}

/* The innermost self-bind or mask on that mount that @path is in; the mount itself where there is
 * none. */
static const struct sbx_mount_op *mount_of(const struct sbx_plan *p, const char *path)
{
	const struct sbx_mount_op *found = shown_at(p, path);

	for (size_t i = 0; found && i < p->view.n_mounts; i++) {
		const struct sbx_mount_op *op = &p->view.mounts[i];

		if (is_cover(op) && below(path, op->dest) &&
		    strlen(op->dest) >= strlen(found->dest))
			found = op;
	}
	return found;
}

static bool is_grant(const struct sbx_mount_op *op)
{
	return (op->kind == SBX_MOUNT_BIND || op->kind == SBX_MOUNT_OVERLAY) &&
	       op->origin != SBX_ORIGIN_VIEW;
}

bool plan_check_is_writable(const struct sbx_mount_op *op)
{
	return op->kind == SBX_MOUNT_BIND && op->writable && is_grant(op) &&
	       S_ISDIR(op->source.st.st_mode);
}

/* The check does not search a home that stays: sandboxes made the files in it. */
static bool is_home(const struct sbx_plan *p, const struct sbx_mount_op *op)
{
	return strcmp(op->dest, p->facts->home) == 0;
}

/* The path in the sandbox of the host's @path by way of @grant. malloc'ed; NULL: it has none, or
 * another mount hides it. */
static char *place_of(const struct sbx_plan *p, const struct sbx_mount_op *grant, const char *path)
{
	const char *rest = below(path, grant->source.resolved);
	char *place;

	if (!rest)
		return NULL;
	must(asprintf(&place, "%s%s%s", strcmp(grant->dest, "/") == 0 ? "" : grant->dest,
		      *rest ? "/" : "", rest) >= 0,
	     "out of memory", path);
	if (strlen(place) < PATH_MAX && shown_at(p, *place ? place : "/") == grant)
		return place;
	free(place);
	return NULL;
}

/* A self-bind shows what is below it with all that is mounted there, and never makes it writable.
 * So one that is read-only holds whatever else is bound above it or below, in any order. */
static bool is_writable_at(const struct sbx_plan *p, const char *path)
{
	const struct sbx_mount_op *shown = shown_at(p, path);

	if (!shown || !shown->writable)
		return false;
	for (size_t i = 0; i < p->view.n_mounts; i++) {
		const struct sbx_mount_op *op = &p->view.mounts[i];

		if (is_cover(op) && !op->writable && below(path, op->dest) &&
		    strlen(op->dest) >= strlen(shown->dest))
			return false;
	}
	return true;
}

bool plan_check_changes(const struct sbx_plan *p, const struct sbx_mount_op *grant,
			const char *path)
{
	SBX_AUTO_FREE char *place = place_of(p, grant, path);

	return place && is_writable_at(p, place);
}

void plan_check_held(const struct sbx_plan *p, const char *path)
{
	for (size_t i = 0; i < p->view.n_mounts; i++)
		if (plan_check_is_writable(&p->view.mounts[i]) && !is_home(p, &p->view.mounts[i]))
			must(!plan_check_changes(p, &p->view.mounts[i], path), "can be changed",
			     path);
}

/* --- each mount --- */

static void check_source(const struct sbx_mount_op *op)
{
	struct stat st;

	must(op->source.fd >= 0 && fstat(op->source.fd, &st) == 0 &&
		     st.st_dev == op->source.st.st_dev && st.st_ino == op->source.st.st_ino,
	     "is not what was judged", op->dest);
	must(lstat(op->source.resolved, &st) == 0 && st.st_dev == op->source.st.st_dev &&
		     st.st_ino == op->source.st.st_ino,
	     "is not where it is said to be", op->source.resolved);
}

static const struct sbx_str_list *blocked_names(const struct sbx_plan *p, size_t i)
{
	return i == 0 ? &p->system->blocked_segments : &p->profile->filesystem.blocked_segments;
}

static bool is_blocked(const struct sbx_plan *p, const char *name, size_t n)
{
	for (size_t l = 0; l < 2; l++)
		for (size_t i = 0; i < blocked_names(p, l)->n; i++)
			if (strlen(blocked_names(p, l)->v[i]) == n &&
			    strncmp(blocked_names(p, l)->v[i], name, n) == 0)
				return true;
	return false;
}

static void check_grant(const struct sbx_plan *p, const char *play, const struct sbx_mount_op *op)
{
	const char *source = op->source.resolved, *rest = below(source, play);

	check_source(op);
	must(!op->writable || (rest && (below(rest, "ws") || below(rest, "more"))),
	     "is granted outside of the prefixes", source);
	for (const char *s = source; *s; s += strcspn(s, "/")) {
		s += strspn(s, "/");
		must(!is_blocked(p, s, strcspn(s, "/")), "is granted and has a blocked segment",
		     source);
	}
}

static void check_op(const struct sbx_plan *p, const char *play, const struct sbx_mount_op *op)
{
	SBX_AUTO_FREE char *normal = sbx_path_normalise(op->dest);

	must(op->kind < SBX_N_MOUNT_OP_KINDS && op->origin < SBX_N_ORIGINS, "is of no kind",
	     op->dest);
	must(normal && strcmp(normal, op->dest) == 0, "is not normal", op->dest);
	if (is_grant(op))
		check_grant(p, play, op);
	else
		must(op->kind != SBX_MOUNT_BIND || !op->writable,
		     "can be written and nobody asked for it", op->dest);
}

/* Nothing later hides a self-bind or mask, and what is above it in a writable grant keeps its
 * place. */
static void check_way(const struct sbx_plan *p, const struct sbx_mount_op *op)
{
	SBX_AUTO_FREE char *way = strdup(op->dest);
	char *slash;

	must(way != NULL, "out of memory", op->dest);
	if (is_cover(op))
		must(strcmp(mount_of(p, way)->dest, way) == 0, "is hidden", way);
	while ((slash = strrchr(way, '/')) && slash > way) {
		*slash = '\0';
		if (!is_writable_at(p, way) || !plan_check_is_writable(shown_at(p, way)) ||
		    is_home(p, shown_at(p, way)))
			return;
		must(strcmp(mount_of(p, way)->dest, way) == 0, "can be moved", way);
	}
}

/* --- below each grant --- */

/* In a writable git directory names are those of branches: the plan masks none of them. */
static void search(const struct sbx_plan *p, const struct sbx_mount_op *grant, const char *path,
		   unsigned int depth)
{
	SBX_AUTO_CLOSEDIR DIR *list = opendir(path);
	const struct dirent *e;

	while (list && (e = readdir(list))) {
		SBX_AUTO_FREE char *sub = NULL, *place = NULL;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		must(asprintf(&sub, "%s/%s", path, e->d_name) >= 0, "out of memory", path);
		place = place_of(p, grant, sub);
		if (!place)
			continue;
		if (is_blocked(p, e->d_name, strlen(e->d_name)))
			must(mount_of(p, place)->kind == SBX_MOUNT_MASK, "is blocked and shown",
			     place);
		else if (e->d_type == DT_DIR && depth > 1 &&
			 !(grant->writable && strcmp(e->d_name, ".git") == 0))
			search(p, grant, sub, depth - 1);
	}
}

/* A pattern protects what is there. An absent path is covered only in part, and only where
 * new_protected is `refuse`. */
static bool is_covered(const struct sbx_plan *p, const char *entry, bool shipped, const char *path)
{
	struct stat st;

	if (sbx_protected_path_is_pattern(entry))
		return false;
	if (lstat(path, &st) == 0 && !sbx_placeholder_is_one(&st))
		return true;
	return p->protections.new_protected == SBX_NEW_PROTECTED_REFUSE &&
	       (!shipped || sbx_protected_path_covers_absent(entry));
}

/* Listed paths at the top of the grant are read-only. */
static void check_lists(const struct sbx_plan *p, const struct sbx_mount_op *grant)
{
	const struct sbx_str_list *lists[] = { &p->system->protected_paths,
					       &p->profile->filesystem.protected_paths };

	for (size_t l = 0; l < SBX_N_ELEMENTS(lists); l++)
		for (size_t i = 0; i < lists[l]->n; i++) {
			SBX_AUTO_FREE char *path = NULL;

			if (strncmp(lists[l]->v[i], ".git/", 5) == 0 ||
			    strcmp(lists[l]->v[i], "HEAD") == 0)
				continue;
			must(asprintf(&path, "%s/%s", grant->source.resolved, lists[l]->v[i]) >= 0,
			     "out of memory", grant->dest);
			must(!is_covered(p, lists[l]->v[i],
					 l == 0 && i >= p->system->n_own_protected_paths, path) ||
				     !plan_check_changes(p, grant, path),
			     "is protected and can be changed", path);
		}
}

static void check_below(const struct sbx_plan *p, const struct sbx_mount_op *op)
{
	unsigned int depth = p->profile->filesystem.mask_depth ? p->profile->filesystem.mask_depth :
								 SBX_MASK_DEPTH;

	if (!is_grant(op) || !S_ISDIR(op->source.st.st_mode) || is_home(p, op))
		return;
	search(p, op, op->source.resolved, depth);
	if (plan_check_is_writable(op))
		check_lists(p, op);
}

/* --- the rest --- */

static void check_text(const struct sbx_plan *p)
{
	static const struct sbx_setup first;
	SBX_AUTO_FREE char *text = sbx_plan_json(p, NULL), *args = NULL;
	size_t n = 0;
	json_t *json = text ? json_loads(text, 0, NULL) : NULL;

	must(json_is_object(json), "its JSON is none", text ? text : "");
	json_decref(json);
	must(sbx_bwrap_args(p, &first, &args, &n) == 0 && n > 0, "has no arguments", "bwrap");
}

static void check_scalars(const struct sbx_plan *p)
{
	must(p->view.n_mounts > 0 && p->view.n_mounts <= SBX_MOUNTS_MAX, "is no number of mounts",
	     "plan");
	must(p->view.chdir && p->view.chdir[0] == '/', "is no place to start in",
	     p->view.chdir ? p->view.chdir : "");
	must(p->commands.path && p->commands.path[0] == '/', "has no command", "plan");
	for (size_t i = 0; i < p->env.n; i++)
		must(strchr(p->env.v[i], '=') > p->env.v[i], "is no variable", p->env.v[i]);
	for (size_t i = 0; i < p->notes.n; i++)
		must(p->notes.v[i][0] && !strchr(p->notes.v[i], '\n'), "is no line", p->notes.v[i]);
}

void plan_check(const struct sbx_plan *p, const char *play)
{
	check_scalars(p);
	for (size_t i = 0; i < p->view.n_mounts; i++)
		check_op(p, play, &p->view.mounts[i]);
	for (size_t i = 0; i < p->view.n_mounts; i++) {
		check_way(p, &p->view.mounts[i]);
		check_below(p, &p->view.mounts[i]);
	}
	for (size_t i = 0; i < p->sources.n; i++)
		plan_check_held(p, p->sources.v[i].path);
	check_text(p);
}
